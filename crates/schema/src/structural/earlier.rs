//! What there was before a change: which element was which, and what stayed the same.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::order::{compare, compare_fields};
use super::path::Path;
use super::schema::{ListType, Schema};

impl Schema {
    /// What tells an element of this list apart from the others.
    pub(crate) fn element_key(&self, element: &Value) -> String {
        let keys = self.list_map_keys().iter().map(|key| {
            let default = || self.items()?.property(key)?.default_value();
            element.get(key).or_else(default).cloned().unwrap_or_default()
        });
        Value::Array(keys.collect()).to_string()
    }

    /// The elements of this list as it was, by what tells them apart; none where nothing does.
    pub(crate) fn earlier_elements<'a>(&self, old: Option<&'a Value>) -> BTreeMap<String, &'a Value> {
        match old {
            Some(Value::Array(olds)) if self.list_type() == ListType::Map => {
                olds.iter().map(|element| (self.element_key(element), element)).collect()
            }
            _ => BTreeMap::new(),
        }
    }
}

/// Whether what is at `path` is as it was. In which version a whole object is told does not count, nor what
/// its metadata holds beside its name: schemas and rules see no more of that.
pub(crate) fn is_unchanged(path: &Path<'_>, old: Option<&Value>, new: &Value) -> bool {
    match (path, old, new) {
        (Path::Root(root), Some(Value::Object(old)), Value::Object(new)) if root.is_root() => {
            is_same_object(old, new)
        }
        (_, Some(old), new) => compare(old, new).is_eq(),
        (_, None, _) => false,
    }
}

fn is_same_object(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let is_ours = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata");
    let count = |fields: &Map<String, Value>| fields.keys().filter(|name| is_ours(name)).count();
    let name = |fields: &Map<String, Value>, field: &str| fields.get("metadata")?.get(field).cloned();
    count(old) == count(new)
        && ["name", "generateName"].iter().all(|field| name(old, field) == name(new, field))
        && old
            .iter()
            .filter(|(field, _)| is_ours(field))
            .all(|(field, value)| compare_fields(Some(value), new.get(field)).is_eq())
}
