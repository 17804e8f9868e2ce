//! Which managed resources mention which names: so that a change of what a provider watches for their
//! sake wakes exactly those that refer to it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concert_model::ObjectKey;
use serde_json::Value;

/// From names to the objects whose spec refers to them. Empty, and free, unless somebody watches.
#[derive(Debug, Default)]
pub struct Mentions {
    is_used: bool,
    index: Mutex<Index>,
}

#[derive(Debug, Default)]
struct Index {
    by_name: HashMap<Arc<str>, HashSet<ObjectKey>>,
    by_object: HashMap<ObjectKey, Vec<Arc<str>>>,
}

/// How deep references are looked for.
const DEPTH_MAX: usize = 16;

impl Mentions {
    /// An index that is kept only if it `is_used`.
    pub fn new(is_used: bool) -> Self {
        Self { is_used, index: Mutex::default() }
    }

    /// Notes what the spec of an object refers to now.
    pub fn note(&self, key: &ObjectKey, spec: &Value) {
        if !self.is_used {
            return;
        }
        let mut names = Vec::new();
        collect(spec, false, DEPTH_MAX, &mut names);
        names.sort_unstable();
        names.dedup();
        let mut index = self.lock();
        if index
            .by_object
            .get(key)
            .is_some_and(|known| known.iter().map(|it| &**it).eq(names.iter().copied()))
        {
            return;
        }
        index.forget(key);
        let names: Vec<Arc<str>> = names.into_iter().map(Into::into).collect();
        for name in &names {
            index.by_name.entry(name.clone()).or_default().insert(key.clone());
        }
        index.by_object.insert(key.clone(), names);
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &ObjectKey) {
        if self.is_used {
            self.lock().forget(key);
        }
    }

    /// The objects that refer to `name`, in a namespace from which they can mean it.
    pub fn of(&self, name: &str, namespace: &str) -> Vec<ObjectKey> {
        let index = self.lock();
        let all = index.by_name.get(name).into_iter().flatten();
        let can_mean = |key: &&ObjectKey| {
            namespace.is_empty() || key.namespace.is_empty() || *key.namespace == *namespace
        };
        let mut keys: Vec<ObjectKey> = all.filter(can_mean).cloned().collect();
        keys.sort_unstable();
        keys
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn forget(&mut self, key: &ObjectKey) {
        for name in self.by_object.remove(key).into_iter().flatten() {
            if let Some(keys) = self.by_name.get_mut(&name) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_name.remove(&name);
                }
            }
        }
    }
}

/// The names in `value` that stand in a field which ends like a reference.
fn collect<'a>(value: &'a Value, is_reference: bool, depth: usize, names: &mut Vec<&'a str>) {
    if depth == 0 {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|it| collect(it, is_reference, depth - 1, names)),
        Value::Object(fields) => {
            for (field, value) in fields {
                let is_name = is_reference && field == "name";
                match value {
                    Value::String(name) if is_name => names.push(name),
                    _ => {
                        let ends = ["Ref", "Refs", "Reference", "References"];
                        collect(value, ends.iter().any(|end| field.ends_with(end)), depth - 1, names);
                    }
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use concert_model::GroupKind;
    use serde_json::json;

    use super::*;

    fn key(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::namespaced(GroupKind::new("example.com", "Thing"), namespace, name)
    }

    #[test]
    fn those_that_refer_to_a_name_are_found_and_forgotten() {
        let mentions = Mentions::new(true);
        let spec = json!({"providerConfigRef": {"name": "main"}, "forProvider": {"name": "not-a-reference",
            "subnetRefs": [{"name": "a"}, {"name": "b"}]}});
        mentions.note(&key("x", "one"), &spec);
        mentions.note(&key("y", "two"), &json!({"vpcRef": {"name": "a"}}));
        assert_eq!(mentions.of("a", ""), [key("x", "one"), key("y", "two")]);
        assert_eq!(mentions.of("a", "y"), [key("y", "two")]);
        assert!(mentions.of("not-a-reference", "").is_empty());
        mentions.note(&key("x", "one"), &json!({}));
        mentions.forget(&key("y", "two"));
        assert!(mentions.of("a", "").is_empty() && mentions.lock().by_name.is_empty());
    }

    #[test]
    fn nothing_is_kept_where_nobody_watches() {
        let mentions = Mentions::new(false);
        mentions.note(&key("x", "one"), &json!({"aRef": {"name": "a"}}));
        assert!(mentions.of("a", "").is_empty());
    }
}
