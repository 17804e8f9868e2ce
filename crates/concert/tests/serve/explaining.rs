//! Why an object is not ready, where that is about others.

use serde_json::{Value, json};

use crate::cloud::{BUCKETS, World, bucket};
use crate::wait::eventually;

/// The sentence, and the links of these relations as `NAME STATE`.
fn explained(world: &World, name: &str, relation: &str) -> (String, Vec<String>) {
    let told = world.json("GET", &format!("{BUCKETS}/{name}/explain"), &Value::Null);
    let links = told["chain"].as_array().cloned().unwrap_or_default();
    let text = |link: &Value, field: &str| link[field].as_str().unwrap_or_default().to_owned();
    let shown = |link: &Value| format!("{} {}", text(link, "name"), text(link, "state"));
    let links = links.iter().filter(|it| it["relation"] == relation).map(shown).collect();
    (told["sentence"].as_str().unwrap_or_default().to_owned(), links)
}

#[test]
fn a_reference_and_a_configuration_that_are_missing_are_named() {
    let world = World::new(7);
    world.apply(&bucket("a", &json!({"size": 1, "networkIdRef": {"name": "n"}})), "");
    let expected = "it waits for Network default/n, which does not exist";
    eventually("the reference is missed", || match explained(&world, "a", "reference") {
        (sentence, links) if sentence.contains(expected) && links == ["Network default/n missing"] => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let (_, configs) = explained(&world, "a", "config");
    assert_eq!(configs, ["ClusterProviderConfig default present"]);

    let network = json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "Network",
        "metadata": {"name": "n", "namespace": "default"}, "spec": {"forProvider": {"region": "here"}}});
    let networks = BUCKETS.replace("buckets", "networks");
    world.json("POST", &networks, &network);
    eventually("it goes on", || match explained(&world, "a", "reference") {
        (sentence, links) if sentence.contains("is ready") && links == ["Network default/n ready"] => Ok(()),
        other => Err(format!("{other:?}")),
    });

    let mut lost = bucket("b", &json!({"size": 1}));
    lost["spec"]["providerConfigRef"] = json!({"kind": "ClusterProviderConfig", "name": "nobody"});
    world.apply(&lost, "");
    let expected = "it waits for ClusterProviderConfig nobody, which does not exist";
    eventually("the configuration is missed", || match explained(&world, "b", "config") {
        (sentence, links)
            if sentence.contains(expected) && links == ["ClusterProviderConfig nobody missing"] =>
        {
            Ok(())
        }
        other => Err(format!("{other:?}")),
    });
}
