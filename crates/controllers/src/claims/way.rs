//! How a claim says what it is to be made of. The first that it says counts.

use concert_model::Object;
use serde_json::Value;

use super::reference::{Reference, is_set};

/// How a claim says what it is to be made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// It names a managed resource: its own, or one that was there before.
    Resource(Reference),
    /// It names a class, or one was chosen for it.
    Class(Reference),
    /// It says which labels its class must have.
    Selector(Value),
    /// It leaves that to a policy, or to a default.
    Open,
}

impl Way {
    /// The way of `claim`.
    pub fn of(claim: &Object) -> Self {
        let spec = claim.spec();
        if let Some(resource) = Reference::read(spec, "resourceRef") {
            return Way::Resource(resource);
        }
        if let Some(class) = Reference::read(spec, "classRef") {
            return Way::Class(class);
        }
        if is_set(spec, "classSelector") {
            return Way::Selector(spec["classSelector"].clone());
        }
        Way::Open
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_that_a_claim_says_counts() {
        let resource = json!({"apiVersion": "c.dev/v1", "kind": "Store", "name": "s"});
        let class = json!({"apiVersion": "c.dev/v1", "kind": "StoreClass", "name": "c"});
        let selector = json!({"matchLabels": {"a": "b"}});
        let all = json!({"resourceRef": resource, "classRef": class, "classSelector": selector});
        let way = |fields: &[&str]| {
            let spec = fields.iter().map(|it| ((*it).to_owned(), all[*it].clone()));
            let spec: Value = Value::Object(spec.collect());
            let claim = json!({"apiVersion": "a.dev/v1", "kind": "Redis", "metadata": {}, "spec": spec});
            match Way::of(&Object::from_value(claim).unwrap()) {
                Way::Resource(_) => "resource",
                Way::Class(_) => "class",
                Way::Selector(_) => "selector",
                Way::Open => "open",
            }
        };
        assert_eq!(way(&["resourceRef", "classRef", "classSelector"]), "resource");
        assert_eq!(way(&["classRef", "classSelector"]), "class");
        assert_eq!(way(&["classSelector"]), "selector");
        assert_eq!(way(&[]), "open");
    }
}
