//! An entry: one cluster of the fleet.

use std::collections::BTreeMap;

use serde_json::Value;

use super::names;
use crate::key::Uid;
use crate::object::Object;
use crate::owner::OwnerReference;

/// An object read as an entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a>(pub &'a Object);

impl<'a> Entry<'a> {
    /// What it is called.
    pub fn id(self) -> &'a str {
        self.0.name()
    }

    /// Which incarnation.
    pub fn uid(self) -> Uid {
        self.0.uid().unwrap_or_else(|| Uid("".into()))
    }

    /// What it is: `runtime`, `byoc` or any other word.
    pub fn kind(self) -> &'a str {
        self.0.spec()["kind"].as_str().unwrap_or_default()
    }

    /// Whom it belongs to; empty if nobody was said.
    pub fn tenant(self) -> &'a str {
        self.0.spec()["tenant"].as_str().unwrap_or_default()
    }

    /// Whether nobody is to work on it.
    pub fn is_paused(self) -> bool {
        self.0.spec()["paused"].as_bool().unwrap_or_default()
    }

    /// Whether it is to go.
    pub fn is_deleting(self) -> bool {
        self.0.deleted_at().is_some()
    }

    /// By section, what its next version must be above, where sections have gone.
    pub fn floors(self) -> BTreeMap<String, u64> {
        let text = self.0.annotation(names::FLOORS).unwrap_or("{}");
        // What cannot be read was not written by us, and says nothing.
        let floors: BTreeMap<String, Value> = serde_json::from_str(text).unwrap_or_default();
        floors.into_iter().filter_map(|(name, floor)| Some((name, floor.as_u64()?))).collect()
    }

    /// What the next version of a section must be above; 0 if it never went.
    pub fn floor(self, section: &str) -> u64 {
        self.floors().get(section).copied().unwrap_or_default()
    }

    /// The annotation that has `floor` for a section beside those that are there; none if it has it.
    pub fn with_floor(self, section: &str, floor: u64) -> Option<String> {
        let mut floors = self.floors();
        if floors.get(section).is_some_and(|it| *it >= floor) {
            return None;
        }
        floors.insert(section.to_owned(), floor);
        serde_json::to_string(&floors).ok()
    }

    /// What makes something live and die with the entry.
    pub fn owner(self) -> OwnerReference {
        OwnerReference {
            api_version: names::versioned(&names::entry_kind()).api_version(),
            kind: "Cluster".into(),
            name: self.id().into(),
            uid: self.uid(),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(annotations: Value) -> Object {
        Object::from_value(json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "rt-1", "annotations": annotations},
            "spec": {"kind": "runtime", "tenant": "acme", "paused": true}}))
        .unwrap()
    }

    #[test]
    fn parts_are_where_they_should_be() {
        let object = entry(json!({}));
        let entry = Entry(&object);
        assert_eq!((entry.id(), entry.kind(), entry.tenant()), ("rt-1", "runtime", "acme"));
        assert!(entry.is_paused() && !entry.is_deleting());
    }

    #[test]
    fn floors_only_rise() {
        let mut object = entry(json!({}));
        let floors = Entry(&object).with_floor("network", 3).unwrap();
        object.set_annotation(names::FLOORS, &floors);
        assert_eq!(Entry(&object).floor("network"), 3);
        assert_eq!(Entry(&object).with_floor("network", 3), None);
        assert_eq!(Entry(&object).with_floor("network", 2), None);
        assert!(Entry(&object).with_floor("network", 4).unwrap().contains('4'));
        assert_eq!(Entry(&object).floor("other"), 0);
        assert_eq!(Entry(&entry(json!({names::FLOORS: "?"}))).floors().len(), 0);
    }
}
