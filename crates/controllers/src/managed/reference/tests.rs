use concert_store::By;

use super::*;
use crate::managed::connection::fixtures::{World, gvk};

fn one() -> Reference {
    Reference {
        field: "spec.forProvider.networkId".into(),
        reference_field: "spec.forProvider.networkIdRef".into(),
        selector_field: "spec.forProvider.networkIdSelector".into(),
        to: gvk("Network"),
        extract: String::new(),
        is_many: false,
    }
}

fn many() -> Reference {
    Reference {
        field: "spec.forProvider.networkIds".into(),
        reference_field: "spec.forProvider.networkIdRefs".into(),
        selector_field: "spec.forProvider.networkIdSelector".into(),
        is_many: true,
        ..one()
    }
}

/// A network with a label and, unless it is empty, an external name.
async fn network(world: &World, name: &str, label: &str, external_name: &str) -> Object {
    let mut metadata = json!({"labels": {"net": label}});
    if !external_name.is_empty() {
        metadata["annotations"] = json!({EXTERNAL_NAME: external_name});
    }
    world.object("Network", name, json!({"metadata": metadata, "status": {"arn": "arn"}})).await
}

async fn bucket(world: &World, for_provider: Value) -> Object {
    world.object("Bucket", "a", json!({"spec": {"forProvider": for_provider}})).await
}

/// What `spec.forProvider` is afterwards; none if nothing changed.
async fn resolved(
    world: &World,
    object: &Object,
    reference: Reference,
) -> Result<Option<Value>, ReferenceError> {
    let changed = resolve(&*world.store, object, &[reference]).await?;
    Ok(changed.map(|it| it.spec()["forProvider"].clone()))
}

async fn refused(world: &World, object: &Object, reference: Reference) -> (String, Vec<Wait>) {
    match resolved(world, object, reference).await {
        Err(ReferenceError::NotReady { message, waits }) => (message, waits),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn nothing_happens_without_a_reference_or_with_a_value() {
    let world = World::new().await;
    network(&world, "n", "x", "net-1").await;
    for (index, spec) in [
        json!({}),
        json!({"networkId": "mine", "networkIdRef": {"name": "n"}}),
        json!({"networkId": "mine", "networkIdSelector": {"matchLabels": {"net": "x"}}}),
        // The policy of the selector is the one that counts.
        json!({"networkId": "mine", "networkIdSelector": {},
            "networkIdRef": {"name": "n", "policy": {"resolve": "Always"}}}),
    ]
    .into_iter()
    .enumerate()
    {
        let spec = json!({"spec": {"forProvider": spec}});
        let object = world.object("Bucket", &format!("b{index}"), spec).await;
        assert_eq!(resolved(&world, &object, one()).await.unwrap(), None, "{index}");
    }
}

#[tokio::test]
async fn a_name_gives_the_external_name_or_a_field() {
    let world = World::new().await;
    let network = network(&world, "n", "x", "net-1").await;
    let mut with_status = network.clone();
    with_status.set("status", json!({"atProvider": {"arn": "arn:1", "ports": [1]}}));
    world.store.update_status(with_status, &By::actor("test")).await.unwrap();
    let object = bucket(&world, json!({"networkIdRef": {"name": "n"}})).await;
    let expected = json!({"networkId": "net-1", "networkIdRef": {"name": "n"}});
    assert_eq!(resolved(&world, &object, one()).await.unwrap(), Some(expected));

    let by_field = Reference { extract: "status.atProvider.arn".into(), ..one() };
    let found = resolved(&world, &object, by_field).await.unwrap().unwrap();
    assert_eq!(found["networkId"], json!("arn:1"));

    let list = Reference { extract: "status.atProvider.ports".into(), ..one() };
    let error = resolved(&world, &object, list).await.unwrap_err().to_string();
    assert!(error.ends_with("is not a single value"), "{error}");
}

#[tokio::test]
async fn what_is_missing_by_name_says_what_to_wait_for() {
    let world = World::new().await;
    let object = bucket(&world, json!({"networkIdRef": {"name": "n"}})).await;
    let (message, waits) = refused(&world, &object, one()).await;
    let key = ObjectKey::namespaced(gvk("Network").group_kind, "default", "n");
    assert_eq!(
        message,
        "spec.forProvider.networkId: cannot get referenced resource: \
         Network.example.com default/n does not exist"
    );
    assert_eq!(waits, [Wait::existence_of(key.clone())]);

    network(&world, "n", "x", "").await;
    let (message, waits) = refused(&world, &object, one()).await;
    assert_eq!(
        message,
        "spec.forProvider.networkId: referenced field was empty (referenced resource may not yet be ready)"
    );
    assert_eq!(waits, [Wait::change_of(&world.store.get(&key).await.unwrap())]);
}

#[tokio::test]
async fn another_namespace_must_be_named() {
    let world = World::new().await;
    world.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})).await;
    let metadata = json!({"namespace": "far", "annotations": {EXTERNAL_NAME: "net-far"}});
    world.object("Network", "n", json!({"metadata": metadata})).await;
    let near = bucket(&world, json!({"networkIdRef": {"name": "n"}})).await;
    refused(&world, &near, one()).await;
    let spec = json!({"forProvider": {"networkIdRef": {"name": "n", "namespace": "far"}}});
    let far = world.object("Bucket", "far", json!({"spec": spec})).await;
    assert_eq!(resolved(&world, &far, one()).await.unwrap().unwrap()["networkId"], json!("net-far"));

    let spec = json!({"spec": {"forProvider": {"networkIdRef": {"name": "n"}}}});
    let outside = world.object("ClusterBucket", "c", spec).await;
    let error = resolved(&world, &outside, one()).await.unwrap_err();
    assert_eq!(error.to_string(), "spec.forProvider.networkIdRef.namespace must not be empty");
    let spec = json!({"spec": {"forProvider": {"networkIdSelector": {}}}});
    let outside = world.object("ClusterBucket", "d", spec).await;
    let found = resolved(&world, &outside, one()).await.unwrap().unwrap();
    assert_eq!(found["networkIdRef"], json!({"name": "n", "namespace": "far"}));
}

#[tokio::test]
async fn a_selector_takes_the_first_and_writes_down_which() {
    let world = World::new().await;
    for (name, label) in [("c", "x"), ("b", "x"), ("a", "y")] {
        network(&world, name, label, &format!("net-{name}")).await;
    }
    let selector = json!({"matchLabels": {"net": "x"}});
    let object = bucket(&world, json!({"networkIdSelector": selector})).await;
    let expected =
        json!({"networkId": "net-b", "networkIdRef": {"name": "b"}, "networkIdSelector": selector});
    assert_eq!(resolved(&world, &object, one()).await.unwrap(), Some(expected));
}

#[tokio::test]
async fn a_selector_without_match_waits_for_nothing_in_particular() {
    let world = World::new().await;
    let object = bucket(&world, json!({"networkIdSelector": {"matchLabels": {"net": "x"}}})).await;
    for reference in [one(), many()] {
        let (message, waits) = refused(&world, &object, reference).await;
        assert!(message.ends_with(": no resources matched selector"), "{message}");
        assert!(waits.is_empty());
    }
}

#[tokio::test]
async fn a_selector_may_ask_for_the_same_controller() {
    let world = World::new().await;
    let owner =
        |uid: &str| json!([{"apiVersion": "v1", "kind": "A", "name": "o", "uid": uid, "controller": true}]);
    for (name, uid) in [("a", "other"), ("b", "mine")] {
        let metadata = json!({"ownerReferences": owner(uid), "annotations": {EXTERNAL_NAME: name}});
        world.object("Network", name, json!({"metadata": metadata})).await;
    }
    network(&world, "c", "x", "c").await;
    let spec = json!({"forProvider": {"networkIdSelector": {"matchControllerRef": true}}});
    let metadata = json!({"ownerReferences": owner("mine")});
    let object = world.object("Bucket", "owned", json!({"metadata": metadata, "spec": spec})).await;
    assert_eq!(resolved(&world, &object, one()).await.unwrap().unwrap()["networkId"], json!("b"));
    let alone = world.object("Bucket", "alone", json!({"spec": spec})).await;
    assert!(refused(&world, &alone, one()).await.0.ends_with(NO_MATCH));
}

#[tokio::test]
async fn many_are_sorted_by_value_when_selected_and_kept_in_order_when_named() {
    let world = World::new().await;
    for (name, value) in [("a", "3"), ("b", "1"), ("c", "2"), ("d", "2")] {
        network(&world, name, "x", value).await;
    }
    let object = bucket(&world, json!({"networkIdSelector": {"matchLabels": {"net": "x"}}})).await;
    let found = resolved(&world, &object, many()).await.unwrap().unwrap();
    assert_eq!(found["networkIds"], json!(["1", "2", "3"]));
    assert_eq!(found["networkIdRefs"], json!([{"name": "b"}, {"name": "d"}, {"name": "a"}]));

    let spec = json!({"forProvider": {"networkIdRefs": [{"name": "a"}, {"name": "b"}]}});
    let named = world.object("Bucket", "named", json!({"spec": spec})).await;
    let found = resolved(&world, &named, many()).await.unwrap().unwrap();
    assert_eq!(found["networkIds"], json!(["3", "1"]));
    assert_eq!(found["networkIdRefs"], json!([{"name": "a"}, {"name": "b"}]));
}

#[tokio::test]
async fn always_selects_again_and_settles() {
    let world = World::new().await;
    network(&world, "b", "x", "net-b").await;
    let selector = json!({"matchLabels": {"net": "x"}, "policy": {"resolve": "Always"}});
    let spec = json!({"networkId": "old", "networkIdRef": {"name": "gone"}, "networkIdSelector": selector});
    let object = bucket(&world, spec).await;
    let changed = resolve(&*world.store, &object, &[one()]).await.unwrap().unwrap();
    assert_eq!(changed.pointer("/spec/forProvider/networkId"), Some(&json!("net-b")));
    assert_eq!(changed.pointer("/spec/forProvider/networkIdRef"), Some(&json!({"name": "b"})));
    assert_eq!(resolved(&world, &changed, one()).await.unwrap(), None);

    let reference = json!({"name": "b", "policy": {"resolve": "Always"}});
    let spec = json!({"forProvider": {"networkId": "old", "networkIdRef": reference}});
    let named = world.object("Bucket", "named", json!({"spec": spec})).await;
    let found = resolved(&world, &named, one()).await.unwrap().unwrap();
    assert_eq!((&found["networkId"], &found["networkIdRef"]), (&json!("net-b"), &reference));
}

#[tokio::test]
async fn optional_references_fail_silently() {
    let world = World::new().await;
    let policy = json!({"resolution": "Optional"});
    for (name, spec) in [
        ("named", json!({"networkIdRef": {"name": "gone", "policy": policy}})),
        ("selected", json!({"networkIdSelector": {"matchLabels": {"net": "x"}, "policy": policy}})),
    ] {
        let object = world.object("Bucket", name, json!({"spec": {"forProvider": spec}})).await;
        assert_eq!(resolved(&world, &object, one()).await.unwrap(), None, "{name}");
    }
    // What was selected before goes when nothing matches any more.
    let policy = json!({"resolution": "Optional", "resolve": "Always"});
    let selector = json!({"matchLabels": {"net": "x"}, "policy": policy});
    let spec = json!({"networkId": "old", "networkIdRef": {"name": "gone"}, "networkIdSelector": selector});
    let object = bucket(&world, spec).await;
    let expected = json!({"networkIdSelector": selector});
    assert_eq!(resolved(&world, &object, one()).await.unwrap(), Some(expected));
}

#[tokio::test]
async fn what_makes_no_sense_is_invalid() {
    let world = World::new().await;
    let object = bucket(&world, json!({"networkIdRef": {"name": ""}})).await;
    let error = resolved(&world, &object, one()).await.unwrap_err();
    assert!(
        matches!(&error, ReferenceError::Invalid(it) if it.ends_with("networkIdRef.name must not be empty"))
    );
    let listed = Reference { field: "spec.subnets[*].id".into(), ..one() };
    let error = resolved(&world, &object, listed).await.unwrap_err();
    assert!(matches!(&error, ReferenceError::Invalid(it) if it.contains("leads into a list")), "{error}");
    let unknown = Reference { to: gvk("Unknown"), ..one() };
    let spec = json!({"forProvider": {"networkIdRef": {"name": "n"}}});
    let object = world.object("Bucket", "b", json!({"spec": spec})).await;
    let error = resolved(&world, &object, unknown).await.unwrap_err();
    assert!(matches!(error, ReferenceError::Store(Error::UnknownKind { .. })));
}
