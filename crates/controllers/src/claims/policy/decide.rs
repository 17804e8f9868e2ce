//! What a policy means for a claim, and why a claim gets no class. Touches nothing: `run.rs` has the hands.

use concert_model::Object;
use serde_json::Value;

use super::super::ensemble::Ensemble;
use super::super::reference::{Reference, shown};
use super::super::schedule::Manner;
use super::super::schedule::decide::{fitting, selector};
use super::super::verdict::{CLASS_WAIT, Next, Verdict};
use super::super::vocabulary::message;
use super::super::way::Way;

/// What was found out.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The policies in the claim's namespace; an error if they cannot be listed.
    pub policies: Option<Result<Vec<Object>, String>>,
    /// All classes of all kinds.
    pub classes: Option<Vec<Object>>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// List the policies in the claim's namespace.
    ListPolicies,
    /// List the classes of all kinds.
    ListClasses,
    /// Write this reference into the claim.
    Set(Value),
    /// Say this, or nothing.
    Rest(Verdict),
}

/// What to do next about `claim`.
pub fn decide(claim: &Object, ensemble: &Ensemble, seen: &Seen) -> Step {
    if claim.deleted_at().is_some() {
        return Step::Rest(Verdict::nothing());
    }
    match Way::of(claim) {
        Way::Resource(it) => named(&it, "resourceRef", ensemble.has_managed(&it.kind), &ensemble.managed()),
        Way::Class(it) => named(&it, "classRef", ensemble.has_class(&it.kind), &ensemble.classes()),
        Way::Selector(_) => selecting(claim, ensemble, seen),
        Way::Open => open(claim, ensemble, seen),
    }
}

/// A claim that names something: those who bind see to it, unless it is of a kind that nobody binds.
fn named(it: &Reference, field: &str, is_known: bool, known: &str) -> Step {
    if is_known {
        return Step::Rest(Verdict::nothing());
    }
    let why = format!(
        "spec.{field} names {}, and no ClaimDefinition has {}: name a {known}",
        shown(&it.kind, "", &it.name),
        it.kind
    );
    Step::Rest(Verdict::failed(why, Next::OnChange))
}

fn selecting(claim: &Object, ensemble: &Ensemble, seen: &Seen) -> Step {
    if let Err(why) = selector(claim) {
        return Step::Rest(Verdict::failed(why, Next::OnChange));
    }
    let Some(classes) = &seen.classes else { return Step::ListClasses };
    if !fitting(Manner::Select, claim, classes).is_empty() {
        return Step::Rest(Verdict::nothing());
    }
    let why = format!(
        "no class matches spec.classSelector: label a {}, or ask for other labels",
        ensemble.classes()
    );
    Step::Rest(Verdict::failed(why, Next::After(CLASS_WAIT)))
}

fn open(claim: &Object, ensemble: &Ensemble, seen: &Seen) -> Step {
    let policies = match (&ensemble.policy, &seen.policies) {
        (None, _) => &[][..],
        (Some(_), None) => return Step::ListPolicies,
        (Some(_), Some(Err(why))) => {
            let why = format!("{}: {why}", message::CANNOT_LIST_POLICIES);
            return Step::Rest(Verdict::failed(why, Next::Retry));
        }
        (Some(_), Some(Ok(policies))) => policies,
    };
    match policies {
        [] => without_policy(claim, ensemble, seen),
        [policy] => by_policy(policy, ensemble),
        several => {
            let names: Vec<&str> = several.iter().map(Object::name).collect();
            let why = format!("{}: {}; delete all but one", message::MANY_POLICIES, names.join(", "));
            Step::Rest(Verdict::failed(why, Next::After(CLASS_WAIT)))
        }
    }
}

fn by_policy(policy: &Object, ensemble: &Ensemble) -> Step {
    let bad =
        |why: String| Step::Rest(Verdict::failed(format!("{}: {why}", message::BAD_POLICY), Next::OnChange));
    let value = policy.get("defaultClassRef");
    let Some(class) = Reference::read(&serde_json::json!({"ref": value}), "ref") else {
        return bad(format!("defaultClassRef of {} names no class", policy.name()));
    };
    if !ensemble.has_class(&class.kind) {
        return bad(format!(
            "defaultClassRef of {} names a {}, and no ClaimDefinition has that: name a {}",
            policy.name(),
            class.kind,
            ensemble.classes()
        ));
    }
    Step::Set(value.clone())
}

fn without_policy(claim: &Object, ensemble: &Ensemble, seen: &Seen) -> Step {
    let Some(classes) = &seen.classes else { return Step::ListClasses };
    if !fitting(Manner::Default, claim, classes).is_empty() {
        return Step::Rest(Verdict::nothing());
    }
    let policy = match &ensemble.policy {
        Some(policy) => format!("create a {}, ", policy.group_kind.kind),
        None => String::new(),
    };
    let why = format!(
        "{}: {policy}annotate a {} as the default, or set spec.classRef or spec.classSelector",
        message::NO_POLICY,
        ensemble.classes()
    );
    Step::Rest(Verdict::failed(why, Next::After(CLASS_WAIT)))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
