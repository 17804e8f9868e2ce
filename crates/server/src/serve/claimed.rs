//! What can be told of claims: what they hang on.

use concert_controllers::claims::bind::decide::phase_of;
use concert_controllers::claims::ensemble::Ensemble;
use concert_controllers::claims::reference::Reference;
use concert_controllers::claims::vocabulary::phase;
use concert_model::{Object, ObjectKey};

use crate::explain::Relation;

/// The class and the managed resource that a claim names, if they are of the kinds that play for it: what
/// else somebody writes there is not looked up for them.
pub(super) fn chain(claim: &Object, ensemble: &Ensemble) -> Vec<(Relation, ObjectKey)> {
    let named = |field| Reference::read(claim.spec(), field);
    let class = named("classRef").filter(|it| ensemble.has_class(&it.kind));
    let managed = named("resourceRef").filter(|it| ensemble.has_managed(&it.kind));
    let class = class.map(|it| (Relation::Class, it.cluster_key()));
    class.into_iter().chain(managed.map(|it| (Relation::Managed, it.cluster_key()))).collect()
}

/// Whether a claim may be told of a managed resource that it names: its own, and those that are free. What
/// was somebody's is not: it was released with all that it holds, and says no more whose it was.
pub(super) fn may_know(claim: &Object, managed: &Object) -> bool {
    match Reference::read(managed.spec(), "claimRef") {
        Some(whose) => whose.uid.is_some() && whose.uid == claim.uid(),
        None => ![phase::BOUND, phase::RELEASED].contains(&phase_of(managed)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn managed(claim: &Value, phase: &str) -> Object {
        Object::from_value(json!({"apiVersion": "cloud.dev/v1", "kind": "Store", "metadata": {"name": "s"},
            "spec": {"claimRef": claim}, "status": {"bindingPhase": phase}}))
        .unwrap()
    }

    #[test]
    fn a_claim_is_told_of_its_own_and_of_what_was_never_anybodys() {
        let claim = Object::from_value(json!({"apiVersion": "cache.dev/v1", "kind": "Redis",
            "metadata": {"name": "app", "namespace": "team", "uid": "u1"}}))
        .unwrap();
        let of = |uid: &str| {
            json!({"apiVersion": "cache.dev/v1", "kind": "Redis", "name": "app",
            "namespace": "team", "uid": uid})
        };
        for (claimed, phase, expected) in [
            (of("u1"), "Bound", true),
            (of("u1"), "Released", true),
            (of("u2"), "Bound", false),
            (Value::Null, "Unbound", true),
            (Value::Null, "", true),
            (Value::Null, "Released", false),
            (Value::Null, "Bound", false),
        ] {
            assert_eq!(may_know(&claim, &managed(&claimed, phase)), expected, "{claimed} {phase}");
        }
    }
}
