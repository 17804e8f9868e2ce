//! Why an object is not ready, where that is about others.

use serde_json::{Value, json};

use crate::cloud::{BUCKETS, World, bucket};
use crate::managed::{account, provider};
use crate::plane::Plane;
use crate::wait::eventually;
use crate::wire::call;

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

/// The attempt in `(provider example, attempt 3, next try in 42s)` at the end of a sentence.
pub fn attempt(sentence: &str, provider: &str) -> Option<u32> {
    let (_, end) = sentence.split_once(&format!("(provider {provider}, attempt "))?;
    let (attempt, due) = end.split_once(", next try in ")?;
    due.contains(')').then(|| attempt.parse().ok())?
}

/// The whole answer, once its sentence names a try that failed and the next one.
fn failing(world: &World, start: &str) -> Value {
    eventually(&format!("it fails: {start}"), || {
        let told = world.json("GET", &format!("{BUCKETS}/a/explain"), &Value::Null);
        let sentence = told["sentence"].as_str().unwrap_or_default();
        let is_told = sentence.starts_with(start) && attempt(sentence, "example").is_some_and(|it| it > 0);
        if is_told { Ok(told) } else { Err(told.to_string()) }
    })
}

#[test]
fn what_fails_is_told_with_its_provider_the_attempt_and_the_next_try() {
    let world = World::new(11);
    world.set_cloud(&json!({"errorRate": 1.0}));
    world.apply(&bucket("a", &json!({"size": 1})), "");
    let told = failing(&world, "Bucket default/a is not ready: ");
    assert_eq!(told["isReady"], false);
    let next = told["nextTry"].as_str().unwrap_or_default();
    assert!(next.len() >= 20 && next.ends_with('Z'), "{told}");
    let item = told["chain"].as_array().unwrap().iter().find(|it| it["relation"] == "item").unwrap();
    assert!(item["name"].as_str().is_some_and(|it| it.to_lowercase().contains("bucket")), "{item}");
    let state = item["state"].as_str().unwrap_or_default();
    assert!(state.contains("attempt ") && state.contains("next run "), "{item}");
    assert!(item["detail"].as_str().is_some_and(|it| !it.is_empty()), "{item}");
    let provider = told["chain"].as_array().unwrap().iter().find(|it| it["relation"] == "provider").unwrap();
    assert_eq!((&provider["name"], &provider["state"]), (&json!("example"), &json!("up")));

    world.set_cloud(&json!({"errorRate": 0.0}));
    eventually("it is ready", || match explained(&world, "a", "").0 {
        sentence if sentence.starts_with("Bucket default/a is ready") => Ok(()),
        sentence => Err(sentence),
    });

    world.set_cloud(&json!({"errorRate": 1.0}));
    world.json("DELETE", &format!("{BUCKETS}/a"), &json!({}));
    failing(&world, "Bucket default/a is being deleted (asked ");
    world.set_cloud(&json!({"errorRate": 0.0}));
    eventually("it is gone", || match call(&world.address, "GET", &format!("{BUCKETS}/a"), "") {
        Some((404, _)) => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

#[test]
fn a_pause_is_told_with_what_ends_it() {
    let world = World::new(12);
    let mut paused = bucket("a", &json!({"size": 1}));
    paused["metadata"]["annotations"] = json!({"crossplane.io/paused": "true"});
    world.apply(&paused, "");
    let expected = "Bucket default/a is not ready: it is paused by the annotation crossplane.io/paused: \"true\", \
                    so nothing is done about it";
    eventually("it is paused", || match explained(&world, "a", "").0 {
        sentence if sentence.starts_with(expected) => Ok(()),
        sentence => Err(sentence),
    });
    world.apply(&bucket("a", &json!({"size": 1})), "");
    eventually("it goes on", || match explained(&world, "a", "").0 {
        sentence if sentence.starts_with("Bucket default/a is ready") => Ok(()),
        sentence => Err(sentence),
    });
}

#[test]
fn a_provider_that_cannot_be_reached_is_named() {
    let Some(plane) = Plane::start() else { return };
    let running = provider(&plane);
    let crds = concert_testbed::workspace().join("providers/example/crds");
    plane.kubectl(&["apply", "-f", crds.to_str().unwrap()]);
    plane.apply(&account());
    plane.apply(
        &json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider", "metadata": {"name": "cloud"},
        "spec": {"endpoint": running.1}}),
    );
    plane.apply(&crate::managed::bucket("a"));
    plane.kubectl(&["wait", "--for=condition=Ready", "bucket/a", "--timeout=60s"]);
    drop(running);
    plane.kubectl(&["patch", "bucket", "a", "--type=merge", "-p", r#"{"spec":{"forProvider":{"size":3}}}"#]);
    eventually("it is missed", || {
        let said = plane.concert(&["explain", "bucket/a"]);
        let sentence = said.lines().next().unwrap_or_default();
        let link = said.lines().skip(1).map(|it| it.split_whitespace().collect::<Vec<_>>());
        let is_down =
            |it: &Vec<&str>| it.starts_with(&["provider", "cloud"]) && it[2].starts_with("unreachable");
        let is_told = sentence.contains("provider cloud cannot be reached");
        if is_told && link.into_iter().any(|it| is_down(&it)) { Ok(()) } else { Err(said) }
    });
}
