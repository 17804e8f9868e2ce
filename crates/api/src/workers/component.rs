//! What a component reconciler says of itself when it registers.

use std::collections::BTreeSet;

use concert_model::inventory::{Grant, names};
use concert_model::name;
use serde_json::{Value, json};

use crate::rest::Fields;

/// Watches of one reconciler.
const WATCHES_MAX: usize = 1000;
/// Kinds of target clusters that one reconciler is woken by.
const EVENTS_MAX: usize = 100;
/// Longest JSON pointer.
const PATH_MAX: usize = 1024;

/// Reads watches, cluster events and grants into the spec of a worker; the grant that it asks for.
pub(super) fn read(fields: &mut Fields<'_>, spec: &mut Value) -> Option<Grant> {
    let is_component =
        spec["handles"].as_array().is_some_and(|it| it.iter().any(|it| it["entryKind"].is_string()));
    let watches = list(
        fields,
        "watches",
        WATCHES_MAX,
        watch,
        "each must have a section, and perhaps a path such as /a/b",
    );
    let events =
        list(fields, "cluster_events", EVENTS_MAX, interest, "each must have a group, a version and a kind");
    let grant = grant(fields);
    let is_told = watches.is_some() || events.is_some() || grant.is_some();
    if is_told && !is_component && !fields.is_noted("handles") {
        fields.refuse(
            "handles",
            "watches, cluster_events and grants are for those who handle kinds of entries",
        );
    }
    if let Some(watches) = watches {
        spec["watches"] = json!(watches);
    }
    if let Some(events) = events {
        spec["clusterEvents"] = json!(events);
    }
    grant
}

/// The sections that wake a reconciler.
pub(super) fn watched(spec: &Value) -> BTreeSet<&str> {
    let watches = spec["watches"].as_array().map_or(&[][..], Vec::as_slice);
    watches.iter().filter_map(|it| it["section"].as_str()).collect()
}

/// Adds them to what is shown of a worker.
pub(super) fn show(spec: &Value, shown: &mut Value) {
    for (field, stored) in [("watches", "watches"), ("cluster_events", "clusterEvents")] {
        if let Some(list) = spec[stored].as_array() {
            shown[field] = json!(list);
        }
    }
}

fn list(
    fields: &mut Fields<'_>,
    field: &str,
    max: usize,
    read: fn(&Value) -> Option<Value>,
    rule: &str,
) -> Option<Vec<Value>> {
    let list = fields.list(field)?;
    let read: Option<Vec<Value>> = list.iter().map(read).collect();
    match read {
        Some(read) if read.len() <= max => Some(read),
        _ => {
            fields.refuse(field, rule);
            None
        }
    }
}

fn watch(value: &Value) -> Option<Value> {
    let section = value["section"].as_str().filter(|it| names::check_section(it).is_ok())?;
    match &value["path"] {
        Value::Null => Some(json!({"section": section})),
        Value::String(path) if is_path(path) => Some(json!({"section": section, "path": path})),
        _ => None,
    }
}

/// Whether a text is a JSON pointer to something within.
pub(super) fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.len() <= PATH_MAX
}

fn interest(value: &Value) -> Option<Value> {
    let text = |field: &str| value[field].as_str().filter(|it| !it.is_empty() && it.len() <= 253);
    let group = value["group"].as_str().unwrap_or_default();
    if !group.is_empty() && name::check_subdomain(group).is_err() {
        return None;
    }
    let mut interest = json!({"group": group, "version": text("version")?, "kind": text("kind")?});
    match &value["namespace"] {
        Value::Null => {}
        Value::String(namespace) if name::check_label(namespace).is_ok() => {
            interest["namespace"] = json!(namespace);
        }
        _ => return None,
    }
    Some(interest)
}

fn grant(fields: &mut Fields<'_>) -> Option<Grant> {
    let wanted = fields.object("grants")?;
    let mut is_wrong = false;
    let mut set = |field: &str| match wanted.get(field) {
        None | Some(Value::Null) => Default::default(),
        Some(Value::Array(list)) => {
            let names = list.iter().map(|it| it.as_str().filter(|it| names::check_section(it).is_ok()));
            let names: Option<BTreeSet<String>> = names.map(|it| it.map(str::to_owned)).collect();
            is_wrong |= names.is_none();
            names.unwrap_or_default()
        }
        Some(_) => {
            is_wrong = true;
            Default::default()
        }
    };
    let grant = Grant { read: set("read"), write: set("write") };
    if is_wrong {
        fields.refuse("grants", "grants must be lists of sections to read and to write");
    }
    Some(grant)
}
