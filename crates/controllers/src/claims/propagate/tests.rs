use super::*;

fn object(kind: &str, namespace: &str, name: &str, rest: Value) -> Object {
    let mut value = json!({"apiVersion": "x.dev/v1", "kind": kind,
        "metadata": {"name": name, "uid": format!("uid-{name}")}});
    if !namespace.is_empty() {
        value["metadata"]["namespace"] = json!(namespace);
    }
    for (field, rest) in rest.as_object().unwrap() {
        value[field] = rest.clone();
    }
    Object::from_value(value).unwrap()
}

fn claim() -> Object {
    let reference = json!({"name": "conn", "namespace": "elsewhere"});
    object("Redis", "team", "claim", json!({"spec": {"writeConnectionSecretToRef": reference}}))
}

fn managed() -> Object {
    let reference = json!({"name": "src", "namespace": "system"});
    object("Store", "", "managed", json!({"spec": {"writeConnectionSecretToRef": reference}}))
}

fn secret(namespace: &str, name: &str, owner: &str, data: Value) -> Object {
    let mut secret = object("Secret", namespace, name, json!({"data": data, "type": SECRET_TYPE}));
    secret.set("apiVersion", json!("v1"));
    if !owner.is_empty() {
        let owner = json!({"apiVersion": "x.dev/v1", "kind": "Redis", "name": owner,
            "uid": format!("uid-{owner}"), "controller": true});
        secret.set_metadata("ownerReferences", json!([owner]));
    }
    secret
}

fn source() -> Object {
    secret("system", "src", "managed", json!({"password": "cHc="}))
}

fn key() -> ObjectKey {
    route(&claim(), &managed()).unwrap().1
}

/// The claim's secret as it is first written.
fn empty() -> Object {
    let mut empty = target(&claim(), &managed(), &source(), None, &key()).unwrap().unwrap();
    empty.set_metadata("uid", json!("uid-conn"));
    empty
}

fn agreed() -> Object {
    consenting(&source(), &empty()).unwrap()
}

/// The claim's secret once its source has agreed.
fn copied() -> Object {
    target(&claim(), &managed(), &agreed(), Some(&empty()), &key()).unwrap().unwrap()
}

#[test]
fn both_must_name_a_secret_and_the_claims_is_in_its_own_namespace() {
    let (from, to) = route(&claim(), &managed()).unwrap();
    assert_eq!((from.to_string(), to.to_string()), ("Secret system/src".into(), "Secret team/conn".into()));
    let silent = object("Redis", "team", "claim", json!({"spec": {}}));
    assert_eq!(route(&silent, &managed()), None);
    assert_eq!(route(&claim(), &object("Store", "", "managed", json!({"spec": {}}))), None);
}

#[test]
fn the_copy_belongs_to_the_claim_and_says_where_it_is_from() {
    let copied = copied();
    assert_eq!((copied.namespace(), copied.name()), ("team", "conn"));
    assert_eq!(copied.get("data"), &json!({"password": "cHc="}));
    assert_eq!(controller_of(&copied).unwrap().uid, Uid("uid-claim".into()));
    let (key, uid) = source_of(&copied).unwrap();
    assert_eq!((key.to_string(), uid), ("Secret system/src".into(), Uid("uid-src".into())));
    assert_eq!(target(&claim(), &managed(), &agreed(), Some(&copied), &key_of(&copied)), Ok(None));
}

#[test]
fn nothing_is_copied_before_the_source_has_agreed() {
    let empty = empty();
    assert_eq!(empty.get("data"), &Value::Null);
    assert!(source_of(&empty).is_some());
    let next = |source: &Object, stored: &Object| copying(&claim(), &managed(), source, Some(stored), &key());
    assert_eq!(next(&source(), &empty), Ok(Copying::Agree(agreed())));
    assert_eq!(next(&agreed(), &empty), Ok(Copying::Put(copied())));
    assert_eq!(next(&agreed(), &copied()), Ok(Copying::Done));
    // A source that was made anew has agreed to nothing, whatever the one before it did.
    let mut anew = secret("system", "src", "managed", json!({"password": "bmV3"}));
    anew.set_metadata("uid", json!("uid-again"));
    let kept = target(&claim(), &managed(), &anew, Some(&copied()), &key()).unwrap().unwrap();
    assert_eq!(kept.get("data"), copied().get("data"));
    assert_eq!(source_of(&kept).unwrap().1, Uid("uid-again".into()));
}

fn key_of(object: &Object) -> ObjectKey {
    object.key().unwrap()
}

#[test]
fn a_source_that_is_not_the_managed_resources_own_is_refused() {
    for owner in ["", "somebody"] {
        let foreign = secret("system", "src", owner, json!({}));
        let error = target(&claim(), &managed(), &foreign, None, &key()).unwrap_err();
        assert!(error.starts_with("cannot establish control of existing connection secret"), "{error}");
    }
}

#[test]
fn a_secret_that_was_there_before_is_refused() {
    for owner in ["", "somebody"] {
        let foreign = secret("team", "conn", owner, json!({"mine": "eA=="}));
        let error = target(&claim(), &managed(), &source(), Some(&foreign), &key()).unwrap_err();
        assert!(error.starts_with("cannot establish control of existing connection secret"), "{error}");
        assert!(error.contains("name another"), "{error}");
    }
}

#[test]
fn the_source_says_where_it_may_go_once() {
    let agreed = agreed();
    assert_eq!(agreed.annotation("to.propagate.crossplane.io/uid-conn"), Some("team/conn"));
    assert_eq!(consenting(&agreed, &copied()), None);
    assert_eq!(targets_of(&agreed), [key()]);
    let mut second = copied();
    second.set_metadata("uid", json!("uid-other"));
    second.set_metadata("name", json!("other"));
    assert_eq!(targets_of(&consenting(&agreed, &second).unwrap()).len(), 2);
}

#[test]
fn later_changes_follow_while_both_agree() {
    let mut changed = agreed();
    changed.set("data", json!({"password": "bmV3"}));
    let followed = follow(&copied(), &changed).unwrap().unwrap();
    assert_eq!(followed.get("data"), &json!({"password": "bmV3"}));
    assert_eq!(follow(&followed, &changed), Ok(None));
}

#[test]
fn who_names_a_source_that_has_not_agreed_gets_nothing() {
    let error = follow(&copied(), &source()).unwrap_err();
    assert!(error.starts_with("unexpected propagate to uid uid-conn"), "{error}");
    let mut stranger = copied();
    stranger.set_metadata("uid", json!("uid-stranger"));
    assert!(follow(&stranger, &agreed()).unwrap_err().starts_with("unexpected propagate to uid"));
}

#[test]
fn a_source_of_the_same_name_is_not_the_same() {
    let mut other = agreed();
    other.set_metadata("uid", json!("uid-again"));
    assert!(follow(&copied(), &other).unwrap_err().starts_with("unexpected propagate from uid uid-src"));
}

#[test]
fn a_secret_that_does_not_say_all_of_its_source_is_no_copy() {
    for missing in [annotation::FROM_NAMESPACE, annotation::FROM_NAME, annotation::FROM_UID] {
        let mut copied = copied();
        copied.remove_annotation(missing);
        assert_eq!(source_of(&copied), None);
        assert_eq!(follow(&copied, &agreed()), Ok(None));
    }
}
