//! What becomes of a managed resource that is bound to a claim, given what is known of that claim. Touches
//! nothing: `run.rs` has the hands.
//!
//! A uid is never used again, so a claim that is certainly not there never will be. Certain is only what the
//! store says when it is asked past its caches, while the kind of the claim is there to stay: objects also
//! vanish with their kind, and that is no reason to end what they stood for.

use concert_model::{GroupKind, Object, ObjectKey, Uid};

use super::super::bind::decide::phase_of;
use super::super::parting::{self, Parting};
use super::super::reference::Reference;
use super::super::vocabulary::phase;

/// What was seen at the place of the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Nothing, by a read that may be too old.
    Perhaps(Option<Uid>),
    /// This or nothing, for certain.
    Certainly(Option<Uid>),
    /// Nothing can be said: its kind is gone, or about to go.
    Untold,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read the claim.
    Look(ObjectKey),
    /// Ask the store anew whether it is there.
    Confirm(ObjectKey),
    /// Let go of the managed resource.
    Part(Parting),
    /// Nothing.
    Rest,
}

/// The claim that a managed resource is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    /// Where it is.
    pub claim: ObjectKey,
    /// Which incarnation.
    pub uid: Uid,
}

/// To which claim of this kind a managed resource is bound; none if to none.
///
/// What was set aside by name waits for a claim to come. What was never bound stays, too: where objects were
/// put back without their status, nothing but a reference tells of a claim that has another uid now.
pub fn bond(managed: &Object, claims: &GroupKind) -> Option<Bond> {
    if ![phase::BOUND, phase::RELEASED].contains(&phase_of(managed)) {
        return None;
    }
    let it = Reference::read(managed.spec(), "claimRef").filter(|it| it.kind == *claims)?;
    if it.namespace.is_empty() {
        return None;
    }
    Some(Bond { claim: ObjectKey::namespaced(it.kind, it.namespace, it.name), uid: it.uid? })
}

/// What to do next with `managed`.
pub fn decide(managed: &Object, claims: &GroupKind, seen: Option<&Sight>) -> Step {
    let Some(bond) = bond(managed, claims) else { return Step::Rest };
    match seen {
        None => Step::Look(bond.claim),
        Some(Sight::Untold) => Step::Rest,
        Some(Sight::Perhaps(uid) | Sight::Certainly(uid)) if uid.as_ref() == Some(&bond.uid) => Step::Rest,
        Some(Sight::Perhaps(_)) => Step::Confirm(bond.claim),
        Some(Sight::Certainly(_)) => Step::Part(parting::next(managed)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claims() -> GroupKind {
        GroupKind::new("cache.dev", "Redis")
    }

    fn managed(phase: &str, policy: Value) -> Object {
        Object::from_value(json!({"apiVersion": "cloud.dev/v1", "kind": "Store",
            "metadata": {"name": "s", "uid": "m1", "resourceVersion": "9"},
            "spec": {"reclaimPolicy": policy, "claimRef": {"apiVersion": "cache.dev/v1", "kind": "Redis",
                "namespace": "team", "name": "app", "uid": "u1"}},
            "status": {"bindingPhase": phase}}))
        .unwrap()
    }

    fn key() -> ObjectKey {
        ObjectKey::namespaced(claims(), "team", "app")
    }

    fn step(managed: &Object, seen: &Sight) -> Step {
        decide(managed, &claims(), Some(seen))
    }

    fn uid(text: &str) -> Option<Uid> {
        Some(Uid(text.into()))
    }

    #[test]
    fn nothing_is_done_before_the_claim_is_certainly_gone() {
        let bound = managed("Bound", json!("Delete"));
        assert_eq!(decide(&bound, &claims(), None), Step::Look(key()));
        for there in [Sight::Perhaps(uid("u1")), Sight::Certainly(uid("u1"))] {
            assert_eq!(step(&bound, &there), Step::Rest, "{there:?}");
        }
        for unseen in [Sight::Perhaps(None), Sight::Perhaps(uid("u2"))] {
            assert_eq!(step(&bound, &unseen), Step::Confirm(key()), "{unseen:?}");
        }
        // Another of the same name is not the one that it is bound to.
        for gone in [Sight::Certainly(None), Sight::Certainly(uid("u2"))] {
            assert_eq!(step(&bound, &gone), Step::Part(Parting::Release), "{gone:?}");
        }
    }

    #[test]
    fn a_claim_whose_kind_is_gone_ends_nothing() {
        for phase in ["Bound", "Released"] {
            assert_eq!(step(&managed(phase, json!("Delete")), &Sight::Untold), Step::Rest);
        }
    }

    #[test]
    fn it_is_released_then_deleted_if_its_policy_says_so_and_then_forgotten() {
        let gone = Sight::Certainly(None);
        for (policy, then) in [
            (json!("Delete"), Parting::Delete),
            (json!("Retain"), Parting::Forget),
            (json!(null), Parting::Forget),
        ] {
            assert_eq!(step(&managed("Bound", policy.clone()), &gone), Step::Part(Parting::Release));
            assert_eq!(step(&managed("Released", policy.clone()), &gone), Step::Part(then), "{policy}");
        }
        let mut going = managed("Released", json!("Delete"));
        going.set_metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        assert_eq!(step(&going, &gone), Step::Part(Parting::Forget));
        parting::forget(&mut going);
        assert_eq!(step(&going, &gone), Step::Rest);
    }

    #[test]
    fn what_is_not_bound_to_a_claim_of_the_kind_is_left_alone() {
        let mut aside = managed("Bound", json!("Delete"));
        aside.get_mut("spec")["claimRef"]["uid"] = json!(null);
        let mut other = managed("Bound", json!("Delete"));
        other.get_mut("spec")["claimRef"]["kind"] = json!("Memcached");
        let mut nowhere = managed("Bound", json!("Delete"));
        nowhere.get_mut("spec")["claimRef"]["namespace"] = json!(null);
        let mut never = managed("", json!("Delete"));
        never.set("status", json!(null));
        let unbound = [managed("", json!("Delete")), managed("Unbound", json!("Delete"))];
        for managed in [aside, other, nowhere, never].iter().chain(&unbound) {
            assert_eq!(decide(managed, &claims(), None), Step::Rest, "{managed:?}");
            assert_eq!(step(managed, &Sight::Certainly(None)), Step::Rest, "{managed:?}");
        }
    }
}
