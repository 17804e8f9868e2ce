use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::Store;
use serde_json::json;

use super::world::{DEFINITIONS, World, by, class_ref, documents};

fn definition(name: &str) -> ObjectKey {
    ObjectKey::cluster(GroupKind::new("concert.dev", "ClaimDefinition"), name)
}

#[tokio::test(start_paused = true)]
async fn controllers_come_and_go_with_their_definition() {
    let world = World::bare().await;
    assert!(world.claims.controllers().is_empty());
    world.class("ha", json!({}), json!({})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("ha")})).await;
    assert_eq!(world.phase(&claim).await, "", "nobody plays yet");
    let redis =
        documents(DEFINITIONS).into_iter().find(|it| it["metadata"]["name"] == "rediscluster").unwrap();
    let key = world.create(redis).await.key().clone();
    world.settle().await;
    assert_eq!(world.claims.controllers().len(), 5);
    assert_eq!(world.said(&key, "Ready").await.0, "True");
    assert_eq!(world.phase(&claim).await, "Bound");
    world.delete(&key).await;
    let (_, reason, message) = world.said(&key, "Ready").await;
    assert_eq!(reason, "Deleting");
    assert!(message.starts_with("1 claim is bound by it"), "{message}");
    world.delete(&claim).await;
    assert!(!world.has(&claim).await, "its controllers were there to let it go");
    assert!(!world.has(&key).await);
    assert!(world.claims.controllers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_nothing_is_bound_by_goes_at_once() {
    let world = World::new().await;
    world.redis("app", json!({"classRef": class_ref("none")})).await;
    let redis = definition("rediscluster");
    world.delete(&redis).await;
    assert!(!world.has(&redis).await);
    assert!(!world.claims.controllers().iter().any(|it| it.contains("rediscluster")));
}

#[tokio::test(start_paused = true)]
async fn a_definition_waits_for_its_kinds_and_says_so() {
    let world = World::new().await;
    let spec = json!({"claim": {"apiVersion": "new.dev/v1", "kind": "Thing"}, "implementations": [
        {"class": {"apiVersion": "new.dev/v1", "kind": "ThingClass"},
         "managed": {"apiVersion": "new.dev/v1", "kind": "Made"}}]});
    let key = world
        .create(json!({"apiVersion": "concert.dev/v1alpha1", "kind": "ClaimDefinition",
            "metadata": {"name": "thing"}, "spec": spec}))
        .await
        .key()
        .clone();
    world.settle().await;
    let (status, reason, message) = world.said(&key, "Ready").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaitingForKinds"));
    assert!(message.contains("Thing.new.dev is not defined"), "{message}");
    for (kind, plural, scope) in [
        ("Thing", "things", "Namespaced"),
        ("ThingClass", "thingclasses", "Cluster"),
        ("Made", "mades", "Cluster"),
    ] {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "specTemplate": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"bindingPhase": {"type": "string"}}}}});
        world
            .create(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.new.dev")},
                "spec": {"group": "new.dev", "scope": scope, "names": {"kind": kind, "plural": plural},
                    "versions": [{"name": "v1", "served": true, "storage": true,
                        "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}}))
            .await;
    }
    world.settle().await;
    assert_eq!(world.said(&key, "Ready").await.0, "True");
    assert!(world.claims.controllers().iter().any(|it| &**it == "claims/thing.new.dev/made.new.dev"));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_wrong_says_where_and_harms_nobody() {
    let world = World::new().await;
    let redis = definition("rediscluster");
    let mut broken = world.get(&redis).await.into_value();
    broken["spec"]["implementations"][0]["mapping"][0]["expression"] = json!("claim.spec.engineVersoin");
    let bad = json!({"spec": broken["spec"]});
    world.patch(&redis, bad).await;
    let (status, reason, message) = world.said(&redis, "Ready").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Invalid"));
    assert!(message.contains("spec.implementations[0].mapping[0].expression"), "{message}");
    assert!(message.contains("undefined field 'engineVersoin'"), "{message}");
    assert_eq!(world.said(&definition("bucket"), "Ready").await.0, "True");
}

/// Also by a kube-apiserver, which has nothing but the kind to judge by.
#[tokio::test(start_paused = true)]
async fn a_mapping_that_fits_no_kind_is_refused_by_the_kind_of_definitions() {
    let world = World::bare().await;
    let mut definition = documents(DEFINITIONS).remove(0);
    let at = "spec.implementations[0].mapping[0]";
    for (rule, field, words) in [
        (json!({"to": "metadata.name", "value": 1}), ".to", "must start with \"spec.\""),
        (json!({"to": "spec.claimRef", "value": 1}), ".to", "not for a mapping to set"),
        (json!({"to": "spec.classRef.name", "value": 1}), ".to", "not for a mapping to set"),
        (json!({"to": "spec.reclaimPolicy", "value": 1}), ".to", "not for a mapping to set"),
        (
            json!({"to": "spec.writeConnectionSecretToRef.name", "value": 1}),
            ".to",
            "not for a mapping to set",
        ),
        (json!({"to": "spec.list[0]", "value": 1}), ".to", "use an expression"),
        (json!({"to": "spec..a", "value": 1}), ".to", "empty part"),
        (
            json!({"to": "spec.a", "from": "managed.spec.b"}),
            ".from",
            "must start with \"claim.\" or \"class.\"",
        ),
        (json!({"to": "spec.a", "from": "claim.spec.b."}), ".from", "empty part"),
        (json!({"to": "spec.a"}), "", "oneOf"),
        (json!({"to": "spec.a", "from": "claim.spec.b", "value": 1}), "", "oneOf"),
    ] {
        definition["spec"]["implementations"][0]["mapping"] = json!([rule]);
        let object = Object::from_value(definition.clone()).unwrap();
        let refused = world.local.create(object, &by()).await;
        let error = refused.expect_err("it is refused").to_string();
        assert!(error.contains(&format!("{at}{field}: ")) && error.contains(words), "{rule}: {error}");
    }
    // What only begins like a protected field is another field.
    definition["spec"]["implementations"][0]["mapping"] =
        json!([{"to": "spec.classRefs", "value": {"a": 1}}, {"to": "spec.a", "from": "class.metadata.name"}]);
    world.create(definition).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_of_claims_shows_phase_class_and_resource() {
    let world = World::bare().await;
    for name in [
        "buckets.storage.crossplane.io",
        "redisclusters.cache.crossplane.io",
        "kubernetesclusters.compute.crossplane.io",
        "mysqlinstances.database.crossplane.io",
        "postgresqlinstances.database.crossplane.io",
    ] {
        let kind = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        let shown = world.get(&ObjectKey::cluster(kind, name)).await;
        for version in shown.spec()["versions"].as_array().unwrap() {
            let columns = version["additionalPrinterColumns"].as_array().unwrap().iter();
            let columns = columns.map(|it| [it["name"].as_str().unwrap(), it["jsonPath"].as_str().unwrap()]);
            let expected = [
                ["STATUS", ".status.bindingPhase"],
                ["CLASS-KIND", ".spec.classRef.kind"],
                ["CLASS-NAME", ".spec.classRef.name"],
                ["RESOURCE-KIND", ".spec.resourceRef.kind"],
                ["RESOURCE-NAME", ".spec.resourceRef.name"],
                ["AGE", ".metadata.creationTimestamp"],
            ];
            assert_eq!(columns.collect::<Vec<_>>(), expected, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_that_are_shipped_are_as_they_must_be() {
    let world = World::new().await;
    for name in ["bucket", "rediscluster", "kubernetescluster", "mysqlinstance", "postgresqlinstance"] {
        let said = world.said(&definition(name), "Ready").await;
        assert_eq!(said, ("True".into(), "Available".into(), String::new()), "{name}");
    }
    // Buckets have two implementations, the others one; each has those who choose, one who
    // binds and one who lets go of what is left behind.
    assert_eq!(world.claims.controllers().len(), 5 + 6 * 4);
}
