//! How entries and sections are shown.

use concert_model::Object;
use concert_model::inventory::{Entry, Section, names};
use concert_model::time;
use serde_json::{Map, Value, json};

/// An entry without its sections.
pub(super) fn entry(object: &Object, revision: u64) -> Value {
    let entry = Entry(object);
    let text = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
    json!({
        "id": entry.id(), "kind": entry.kind(), "tenant": text(entry.tenant()),
        "labels": object.labels(), "paused": entry.is_paused(), "deleting": entry.is_deleting(),
        "revision": revision, "created_at": object.created_at().map(time::seconds),
        "status": shown_status(object),
    })
}

fn shown_status(object: &Object) -> Value {
    if object.status().is_null() { json!({}) } else { object.status().clone() }
}

/// A section, with its contents unless they are secret.
pub(super) fn section(object: &Object) -> Value {
    let section = Section(object);
    let mut shown = Map::new();
    if section.is_secret() {
        shown.insert("secret".into(), json!(true));
    } else {
        shown.insert("data".into(), section.data().clone());
    }
    shown.insert("version".into(), json!(section.version()));
    shown.insert("writer".into(), json!(section.writer()));
    shown.insert("updated_at".into(), json!(section.updated_at().map(time::micros)));
    Value::Object(shown)
}

/// Labels that are ours to set, by name.
pub(super) fn is_ours(label: &str) -> bool {
    label.starts_with(&format!("{}/", names::GROUP))
}
