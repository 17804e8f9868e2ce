use serde_json::json;

use super::*;

const LARGE: i64 = 9_007_199_254_740_993;

fn ours() -> Object {
    Object::from_value(json!({
        "apiVersion": "example.dev/v1", "kind": "Bucket",
        "metadata": {"name": "a", "namespace": "n", "uid": "u-1", "labels": {"team": "x"},
            "finalizers": ["f"], "annotations": {"kept": "1"}, "generation": LARGE},
        "spec": {"size": LARGE, "tags": ["a"], "nested": {"set": 1}},
        "status": {"id": LARGE, "list": [LARGE, 2], "unknownToThem": true,
            "conditions": [{"type": "Ready", "status": "False"}, {"type": "Synced", "status": "True"}]},
    }))
    .unwrap()
}

/// What a provider sends that changed its copy so.
fn reply(change: impl FnOnce(&mut Value)) -> Option<Struct> {
    let mut object = sent(&ours());
    object.change(change);
    Some(structs::to_struct(object.as_map()))
}

#[test]
fn an_echo_changes_nothing() {
    assert!(received(&ours(), reply(|_| {}), true).unwrap().is_empty());
}

#[test]
fn another_or_no_object_is_misbehaviour() {
    for field in ["/metadata/name", "/metadata/namespace", "/metadata/uid", "/kind", "/apiVersion"] {
        let foreign = reply(|whole| *whole.pointer_mut(field).unwrap() = json!("foreign"));
        let error = received(&ours(), foreign, false).unwrap_err();
        assert_eq!(error.class, Class::Misbehaved);
        assert!(error.message.contains(&field[1..].replace('/', ".")), "{error}");
    }
    assert_eq!(received(&ours(), None, false).unwrap_err().class, Class::Misbehaved);
    assert_eq!(received(&ours(), Some(Struct::default()), false).unwrap_err().class, Class::Misbehaved);
}

#[test]
fn a_missing_field_deletes_nothing_and_large_integers_survive() {
    let delta = received(
        &ours(),
        reply(|whole| {
            let status = whole["status"].as_object_mut().unwrap();
            status.remove("unknownToThem");
            status.insert("new".into(), json!(1));
            whole["metadata"].as_object_mut().unwrap().remove("annotations");
            whole.as_object_mut().unwrap().remove("spec");
        }),
        true,
    )
    .unwrap();
    let status = delta.status.unwrap();
    assert_eq!(status["id"], json!(LARGE));
    assert_eq!(status["list"], json!([LARGE, 2]));
    assert_eq!((&status["unknownToThem"], &status["new"]), (&json!(true), &json!(1)));
    assert!(delta.annotations.is_empty() && delta.spec.is_none());
}

#[test]
fn what_is_not_the_providers_is_ignored() {
    let delta = received(
        &ours(),
        reply(|whole| {
            whole["metadata"]["labels"] = json!({"team": "stolen"});
            whole["metadata"]["finalizers"] = json!([]);
            whole["metadata"]["ownerReferences"] = json!([{"uid": "x"}]);
            whole["spec"]["size"] = json!(1);
            whole["spec"]["tags"] = json!(["a", "b"]);
        }),
        true,
    )
    .unwrap();
    assert!(delta.is_empty(), "{delta:?}");
}

#[test]
fn new_spec_fields_count_only_when_late_initialised() {
    let change = |whole: &mut Value| {
        whole["spec"]["region"] = json!("eu");
        whole["spec"]["nested"]["also"] = json!(2);
    };
    assert_eq!(received(&ours(), reply(change), false).unwrap().spec, None);
    let spec = received(&ours(), reply(change), true).unwrap().spec.unwrap();
    assert_eq!(Value::Object(spec), json!({"region": "eu", "nested": {"also": 2}}));
}

#[test]
fn the_external_name_is_taken_from_its_annotation() {
    let delta = received(
        &ours(),
        reply(|whole| whole["metadata"]["annotations"] = json!({EXTERNAL_NAME: "b-1", "other": "2"})),
        false,
    )
    .unwrap();
    assert_eq!(delta.external_name.as_deref(), Some("b-1"));
    assert_eq!(delta.annotations, [("other".to_owned(), "2".to_owned())].into());
}

#[test]
fn conditions_merge_by_type() {
    let delta = received(
        &ours(),
        reply(|whole| {
            whole["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}, {"type": "New"}]);
        }),
        false,
    )
    .unwrap();
    assert_eq!(
        delta.status.unwrap()["conditions"],
        json!([{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "True"}, {"type": "New"}])
    );
}

#[test]
fn applied_and_received_are_inverse() {
    let delta = Delta {
        status: Some(json!({"id": 7}).as_object().unwrap().clone()),
        annotations: [("x".to_owned(), "y".to_owned())].into(),
        external_name: Some("b-2".into()),
        spec: Some(json!({"region": "eu"}).as_object().unwrap().clone()),
    };
    let whole = applied(&ours(), &delta);
    let back = received(&ours(), Some(structs::to_struct(whole.as_map())), true).unwrap();
    assert_eq!(back.spec, delta.spec);
    assert_eq!((back.annotations, back.external_name), (delta.annotations, delta.external_name));
    assert_eq!(back.status.unwrap()["id"], json!(7));
}
