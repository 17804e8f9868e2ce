//! Columns of the kinds that are built in, as kubectl shows them.

use concert_model::{GroupKind, Object, Timestamp, time};
use concert_schema::columns::age;
use serde_json::{Value, json};

/// A column whose cells are computed.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) priority: i32,
    pub(super) cell: fn(&Object, Timestamp) -> Value,
}

const fn column(name: &'static str, cell: fn(&Object, Timestamp) -> Value) -> Column {
    Column { name, kind: "string", priority: 0, cell }
}

const fn wide(name: &'static str, cell: fn(&Object, Timestamp) -> Value) -> Column {
    Column { name, kind: "string", priority: 1, cell }
}

const NAME: Column = column("Name", |object, _| json!(object.name()));
const AGE: Column = column("Age", |object, now| json!(since(object.created_at(), now)));
const CREATED_AT: Column =
    column("Created At", |object, _| json!(object.created_at().map(time::seconds).unwrap_or_default()));
const DATA: Column =
    column("Data", |object, _| json!(entries(object, "data") + entries(object, "binaryData")));

/// The columns of a kind; none if it is not one of these.
pub(super) fn columns(kind: &GroupKind) -> Option<&'static [Column]> {
    match (&*kind.group, &*kind.kind) {
        ("", "Namespace") => Some(NAMESPACE),
        ("", "Secret") => Some(SECRET),
        ("", "ConfigMap") => Some(CONFIG_MAP),
        ("", "Event") => Some(EVENT),
        ("", "ServiceAccount") => Some(SERVICE_ACCOUNT),
        ("coordination.k8s.io", "Lease") => Some(LEASE),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(CREATED),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => Some(CREATED),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => Some(BINDING),
        _ => None,
    }
}

const NAMESPACE: &[Column] = &[NAME, column("Status", |object, _| at(object, "/status/phase")), AGE];

const SECRET: &[Column] = &[NAME, column("Type", |object, _| object.get("type").clone()), DATA, AGE];

const CONFIG_MAP: &[Column] = &[NAME, DATA, AGE];

const SERVICE_ACCOUNT: &[Column] =
    &[NAME, column("Secrets", |object, _| json!(object.get("secrets").as_array().map_or(0, Vec::len))), AGE];

const LEASE: &[Column] = &[NAME, column("Holder", |object, _| at(object, "/spec/holderIdentity")), AGE];

const CREATED: &[Column] = &[NAME, CREATED_AT];

const BINDING: &[Column] = &[
    NAME,
    column("Role", |object, _| {
        let reference = object.get("roleRef");
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        json!(format!("{}/{}", text("kind"), text("name")))
    }),
    AGE,
    wide("Users", |object, _| subjects(object, "User")),
    wide("Groups", |object, _| subjects(object, "Group")),
    wide("ServiceAccounts", |object, _| subjects(object, "ServiceAccount")),
];

const EVENT: &[Column] = &[
    column("Last Seen", |object, now| {
        let seen = [object.pointer("/series/lastObservedTime"), object.pointer("/lastTimestamp")];
        let seen = seen.into_iter().flatten().find_map(moment);
        json!(since(seen.or_else(|| first_seen(object)), now))
    }),
    column("Type", |object, _| object.get("type").clone()),
    column("Reason", |object, _| object.get("reason").clone()),
    column("Object", |object, _| {
        let involved = object.get("involvedObject");
        let text = |field: &str| involved[field].as_str().unwrap_or_default();
        let kind = text("kind").to_lowercase();
        json!(if text("name").is_empty() { kind } else { format!("{kind}/{}", text("name")) })
    }),
    wide("Subobject", |object, _| at(object, "/involvedObject/fieldPath")),
    wide("Source", |object, _| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let component = match text("/source/component") {
            "" => text("/reportingComponent"),
            component => component,
        };
        let host = text("/source/host");
        json!(if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") })
    }),
    column("Message", |object, _| json!(object.get("message").as_str().unwrap_or_default().trim())),
    wide("First Seen", |object, now| json!(since(first_seen(object), now))),
    wide("Count", |object, _| {
        let count = [object.pointer("/series/count"), object.pointer("/count")];
        json!(count.into_iter().flatten().find_map(Value::as_i64).filter(|n| *n > 0).unwrap_or(1))
    }),
    wide("Name", |object, _| json!(object.name())),
];

fn at(object: &Object, pointer: &str) -> Value {
    object.pointer(pointer).cloned().unwrap_or_else(|| json!(""))
}

fn entries(object: &Object, field: &str) -> usize {
    object.get(field).as_object().map_or(0, serde_json::Map::len)
}

fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str().and_then(time::parse)
}

fn first_seen(event: &Object) -> Option<Timestamp> {
    let seen = [event.pointer("/firstTimestamp"), event.pointer("/eventTime")];
    seen.into_iter().flatten().find_map(moment)
}

fn since(time: Option<Timestamp>, now: Timestamp) -> String {
    time.map_or_else(|| "<unknown>".to_owned(), |time| age(time, now))
}

fn subjects(binding: &Object, kind: &str) -> Value {
    let all = binding.get("subjects").as_array().into_iter().flatten();
    let name = |subject: &Value| {
        let text = |field: &str| subject[field].as_str().unwrap_or_default().to_owned();
        match text("namespace") {
            namespace if kind == "ServiceAccount" => format!("{namespace}/{}", text("name")),
            _ => text("name"),
        }
    };
    let names: Vec<String> = all.filter(|subject| subject["kind"] == *kind).map(name).collect();
    json!(names.join(", "))
}
