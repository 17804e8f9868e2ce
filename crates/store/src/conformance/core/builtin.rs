//! The kinds that are always there.

use concert_model::{Encoded, GroupKind, Object, ObjectKey};
use serde_json::{Value, json};

use crate::conformance::Subject;
use crate::conformance::expect::refused;
use crate::contract::{By, Delete, Deleted, Result};
use crate::error::Error;

fn object(kind: &str, namespace: &str, name: &str) -> Object {
    Object::new(&GroupKind::new("", kind).at_version("v1"), namespace, name)
}

async fn create(subject: &Subject, object: Object) -> Result<Encoded> {
    subject.store.create(object, &By::actor("suite")).await
}

async fn create_with(subject: &Subject, kind: &str, fields: Value) -> Result<Encoded> {
    let mut object = object(kind, &subject.namespace().await, "a");
    for (field, value) in fields.as_object().unwrap() {
        object.set(field, value.clone());
    }
    create(subject, object).await
}

/// A namespace is active from the start and held by a finalizer of its own.
pub async fn namespaces_are_active(subject: &Subject) {
    let name = subject.namespace().await;
    let key = ObjectKey::cluster(GroupKind::new("", "Namespace"), name);
    let stored = subject.store.get(&key).await.unwrap().decode();
    assert_eq!(stored.status()["phase"], "Active");
    assert_eq!(stored.spec()["finalizers"], json!(["kubernetes"]));
}

/// The namespace `default` is always there.
pub async fn the_default_namespace_is_there(subject: &Subject) {
    let key = ObjectKey::cluster(GroupKind::new("", "Namespace"), "default");
    assert_eq!(subject.store.get(&key).await.unwrap().decode().status()["phase"], "Active");
}

/// A namespace cannot be called what a DNS label cannot.
pub async fn namespaces_have_names_without_dots(subject: &Subject) {
    refused!(create(subject, object("Namespace", "", "a.b")).await, Error::Invalid { .. });
    refused!(create(subject, object("Namespace", "", &"x".repeat(64))).await, Error::Invalid { .. });
}

/// `stringData` of a Secret is stored in `data`, and never shown.
pub async fn secrets_take_string_data(subject: &Subject) {
    let fields = json!({"data": {"a": "b2xk", "b": "a2VlcA=="}, "stringData": {"a": "new", "ü": ""}});
    // Keys of a secret are plain: the odd one is refused, the rest taken.
    refused!(create_with(subject, "Secret", fields).await, Error::Invalid { .. });
    let fields = json!({"data": {"a": "b2xk", "b": "a2VlcA=="}, "stringData": {"a": "new", "c": ""}});
    let stored = create_with(subject, "Secret", fields).await.unwrap().decode();
    assert_eq!(*stored.get("data"), json!({"a": "bmV3", "b": "a2VlcA==", "c": ""}));
    assert!(stored.get("stringData").is_null());
    assert_eq!(stored.get("type"), "Opaque");
}

/// `data` of a Secret must be base64.
pub async fn secrets_refuse_what_is_not_base64(subject: &Subject) {
    let bad = create_with(subject, "Secret", json!({"data": {"a": "not base64!"}})).await;
    refused!(bad, Error::Invalid { .. });
}

/// A ConfigMap holds texts and nothing else.
pub async fn config_maps_hold_texts(subject: &Subject) {
    let stored = create_with(subject, "ConfigMap", json!({"data": {"a": "ü", "b": ""}})).await.unwrap();
    assert_eq!(*stored.decode().get("data"), json!({"a": "ü", "b": ""}));
    refused!(create_with(subject, "ConfigMap", json!({"data": {"a": 1}})).await, Error::Invalid { .. });
}

/// What is marked immutable stays as it is, and can only be deleted.
pub async fn immutable_ones_cannot_change(subject: &Subject) {
    for (kind, field, values) in [("ConfigMap", "data", ["x", "y"]), ("Secret", "data", ["eA==", "eQ=="])] {
        let fields = json!({field: {"a": values[0]}, "immutable": true});
        let stored = create_with(subject, kind, fields).await.unwrap();
        for (field, value) in
            [(field, json!({"a": values[1]})), ("immutable", json!(false)), ("immutable", json!(null))]
        {
            let mut changed = stored.decode();
            changed.set(field, value);
            refused!(subject.store.update(changed, &By::actor("suite")).await, Error::Invalid { .. });
        }
        let mut labelled = stored.decode();
        labelled.set_metadata("labels", json!({"a": "b"}));
        subject.store.update(labelled, &By::actor("suite")).await.unwrap();
        let gone = subject.store.delete(stored.key(), &Delete::default(), &By::actor("suite")).await;
        assert!(matches!(gone.unwrap(), Deleted::Gone(_)));
    }
}

/// An Event is stored as it is told.
pub async fn events_are_stored(subject: &Subject) {
    let space = subject.namespace().await;
    let mut event = object("Event", &space, "a.1");
    let fields = json!({
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": &*space},
        "reason": "Created", "message": "made it", "type": "Normal", "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "suite"},
    });
    for (field, value) in fields.as_object().unwrap() {
        event.set(field, value.clone());
    }
    let stored = create(subject, event).await.unwrap().decode();
    for (field, value) in fields.as_object().unwrap() {
        assert_eq!(stored.get(field), value, "{field}");
    }
}

/// A Lease changes hands by compare and set.
pub async fn leases_change_hands_by_compare_and_set(subject: &Subject) {
    let kind = GroupKind::new("coordination.k8s.io", "Lease").at_version("v1");
    let mut lease = Object::new(&kind, &subject.namespace().await, "leader");
    let renewed = "2026-01-01T00:00:00.000001Z";
    lease.set("spec", json!({"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": renewed}));
    let stored = create(subject, lease).await.unwrap();
    assert_eq!(stored.decode().spec()["renewTime"], renewed);
    let take = |holder: &str| {
        let mut lease = stored.decode();
        lease.get_mut("spec")["holderIdentity"] = json!(holder);
        lease
    };
    subject.store.update(take("b"), &By::actor("b")).await.unwrap();
    refused!(subject.store.update(take("c"), &By::actor("c")).await, Error::Conflict { .. });
    assert_eq!(subject.store.get(stored.key()).await.unwrap().decode().spec()["holderIdentity"], "b");
}

fn access(kind: &str, namespace: &str, name: &str) -> Object {
    Object::new(&GroupKind::new("rbac.authorization.k8s.io", kind).at_version("v1"), namespace, name)
}

/// A Role says what may be done with what; one that does not is refused.
pub async fn roles_have_rules(subject: &Subject) {
    let mut role = access("Role", &subject.namespace().await, "a:reader");
    role.set("rules", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]));
    let stored = create(subject, role.clone()).await.unwrap().decode();
    assert_eq!(stored.get("rules"), role.get("rules"));
    role.set_metadata("name", json!("b"));
    for rules in [
        json!([{"apiGroups": [""], "resources": ["configmaps"]}]),
        json!([{"resources": ["configmaps"], "verbs": ["get"]}]),
        json!([{"nonResourceURLs": ["/version"], "verbs": ["get"]}]),
    ] {
        role.set("rules", rules);
        refused!(create(subject, role.clone()).await, Error::Invalid { .. });
    }
}

/// A RoleBinding stays with its role; whom it is for can change.
pub async fn bindings_keep_their_role(subject: &Subject) {
    let space = subject.namespace().await;
    let mut binding = access("RoleBinding", &space, "readers");
    binding.set("subjects", json!([{"kind": "User", "name": "ada"}]));
    refused!(create(subject, binding.clone()).await, Error::Invalid { .. });
    binding
        .set("roleRef", json!({"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}));
    let stored = create(subject, binding).await.unwrap();
    assert_eq!(stored.decode().get("subjects")[0]["apiGroup"], "rbac.authorization.k8s.io");
    let mut changed = stored.decode();
    changed.get_mut("roleRef")["name"] = json!("writer");
    refused!(subject.store.update(changed, &By::actor("suite")).await, Error::Invalid { .. });
    let mut changed = stored.decode();
    changed.set("subjects", json!([{"kind": "ServiceAccount", "name": "robot", "namespace": &*space}]));
    subject.store.update(changed, &By::actor("suite")).await.unwrap();
}

/// A ServiceAccount is somebody that programs can be.
pub async fn service_accounts_are_stored(subject: &Subject) {
    let fields = json!({"secrets": [{"name": "key"}], "automountServiceAccountToken": false});
    let stored = create_with(subject, "ServiceAccount", fields.clone()).await.unwrap().decode();
    for (field, value) in fields.as_object().unwrap() {
        assert_eq!(stored.get(field), value, "{field}");
    }
}
