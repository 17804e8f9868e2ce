//! Roles, bindings and questions in a line each.

use std::sync::Arc;

use concert_model::{Body, Encoded, Head, Object, Revision, Timestamp, Uid};
use serde_json::{Value, json};

use super::index::{GROUP, Index};
use super::{Access, User};

pub(super) fn encoded(value: Value) -> Encoded {
    let object = Object::from_value(value).unwrap();
    let head = Head {
        version: "v1".into(),
        uid: Uid::from_random(1),
        generation: 0,
        created_at: Timestamp::UNIX_EPOCH,
        deleted_at: None,
        labels: object.labels(),
        owners: Vec::new(),
        fields: std::collections::BTreeMap::new(),
    };
    let body = Body::encode(object.key().unwrap(), head, &object);
    Encoded::new(Arc::new(body), Revision(5).into())
}

pub(super) fn index(objects: &[Value]) -> Index {
    Index::build(Revision(5), objects.iter().cloned().map(encoded))
}

/// `default/reader`, or `reader` for what belongs to no namespace.
fn named(kind: &str, place: &str) -> Value {
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    let cluster = if namespace.is_empty() { "Cluster" } else { "" };
    let mut metadata = json!({ "name": name });
    if !namespace.is_empty() {
        metadata["namespace"] = namespace.into();
    }
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": format!("{cluster}{kind}"), "metadata": metadata})
}

pub(super) fn role(place: &str, rules: Value) -> Value {
    let mut role = named("Role", place);
    role["rules"] = rules;
    role
}

/// `role` is `Role/reader` or `ClusterRole/reader`, `subject` is `User/ann`, `Group/staff` or
/// `ServiceAccount/default/robot`.
pub(super) fn binding(place: &str, role: &str, subject: &str) -> Value {
    let mut binding = named("RoleBinding", place);
    let (kind, name) = role.split_once('/').unwrap();
    binding["roleRef"] = json!({"apiGroup": GROUP, "kind": kind, "name": name});
    let (kind, name) = subject.split_once('/').unwrap();
    let subject = match name.split_once('/') {
        Some((namespace, name)) => json!({"kind": kind, "namespace": namespace, "name": name}),
        None if kind == "ServiceAccount" => json!({"kind": kind, "name": name}),
        None => json!({"apiGroup": GROUP, "kind": kind, "name": name}),
    };
    binding["subjects"] = json!([subject]);
    binding
}

pub(super) fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": [group], "resources": resources})
}

pub(super) fn user(name: &str) -> User {
    User::known(name, [])
}

/// `get a.dev/buckets default/one`; a lone `-` is nothing.
pub(super) fn access<'a>(verb: &'a str, what: &'a str, place: &'a str) -> Access<'a> {
    let (group, resource) = what.split_once('/').unwrap();
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    Access::Resource { verb, group, resource, subresource: "", namespace, name }
}
