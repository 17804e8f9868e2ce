//! Which class a claim gets. Touches nothing: `run.rs` has the hands.

use concert_model::{FieldPath, LabelSelector, Object};
use serde_json::Value;

use super::super::reference;
use super::super::vocabulary::annotation;
use super::super::way::Way;

/// What is asked of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The labels that the claim selects by.
    Select,
    /// That it is said to be the default. Only where no policy has a say.
    Default,
}

/// What was found out.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Whether there is a policy in the claim's namespace.
    pub has_policy: Option<bool>,
    /// The classes of the one kind that is looked at.
    pub classes: Option<Vec<Object>>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The claim is none of our business, or no longer.
    Rest,
    /// Find out whether a policy has a say.
    LookForPolicies,
    /// List the classes.
    ListClasses,
    /// Nothing fits: wait.
    Wait,
    /// Write this reference into the claim.
    Choose {
        /// What to write.
        class: Value,
        /// The names of all that would have done.
        among: Vec<String>,
    },
}

/// Whether a claim is one for this manner.
pub fn concerns(manner: Manner, claim: &Object) -> bool {
    let is_meant = match Way::of(claim) {
        Way::Selector(_) => manner == Manner::Select,
        Way::Open => manner == Manner::Default,
        Way::Resource(_) | Way::Class(_) => false,
    };
    is_meant && claim.deleted_at().is_none()
}

/// What to do next about `claim`. `dice` chooses among several.
pub fn decide(manner: Manner, claim: &Object, seen: &Seen, dice: u64) -> Step {
    if !concerns(manner, claim) {
        return Step::Rest;
    }
    match (manner, seen.has_policy) {
        (Manner::Default, None) => return Step::LookForPolicies,
        (Manner::Default, Some(true)) => return Step::Rest,
        _ => {}
    }
    let Some(classes) = &seen.classes else { return Step::ListClasses };
    let fitting = fitting(manner, claim, classes);
    let Ok(count) = u64::try_from(fitting.len()) else { return Step::Wait };
    if count == 0 {
        return Step::Wait;
    }
    let chosen = usize::try_from(dice % count).unwrap_or_default();
    let among = fitting.iter().map(|it| it.name().to_owned()).collect();
    Step::Choose { class: reference::to(fitting[chosen]), among }
}

/// The classes that would do. None where the selector cannot be read.
pub fn fitting<'c>(manner: Manner, claim: &Object, classes: &'c [Object]) -> Vec<&'c Object> {
    let selector = match manner {
        Manner::Default => Ok(LabelSelector::everything()),
        Manner::Select => selector(claim),
    };
    let Ok(selector) = selector else { return Vec::new() };
    let fits = |class: &&Object| {
        let is_default = class.annotation(annotation::DEFAULT_CLASS) == Some("true");
        class.deleted_at().is_none()
            && selector.matches(&class.labels())
            && (manner == Manner::Select || is_default)
    };
    classes.iter().filter(fits).collect()
}

/// The labels that a claim asks for.
///
/// # Errors
/// What is wrong with `spec.classSelector`.
pub fn selector(claim: &Object) -> Result<LabelSelector, String> {
    let field = FieldPath::new("spec").child("classSelector");
    let parsed = LabelSelector::from_json(&field, &claim.spec()["classSelector"]);
    parsed.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(spec: Value) -> Object {
        Object::from_value(json!({"apiVersion": "cache.dev/v1", "kind": "Redis",
            "metadata": {"name": "a", "namespace": "team"}, "spec": spec}))
        .unwrap()
    }

    fn class(name: &str, grade: &str, is_default: bool) -> Object {
        let annotations = json!({annotation::DEFAULT_CLASS: if is_default { "true" } else { "false" }});
        Object::from_value(json!({"apiVersion": "cloud.dev/v1", "kind": "StoreClass",
            "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"grade": grade},
                "annotations": annotations}}))
        .unwrap()
    }

    fn selecting(grade: &str) -> Object {
        claim(json!({"classSelector": {"matchLabels": {"grade": grade}}}))
    }

    fn classes() -> Seen {
        let classes = vec![class("a", "prod", false), class("b", "prod", true), class("c", "dev", true)];
        Seen { classes: Some(classes), has_policy: Some(false) }
    }

    fn chosen(step: &Step) -> &str {
        match step {
            Step::Choose { class, .. } => class["name"].as_str().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_manner_is_for_claims_of_its_own() {
        let class = json!({"apiVersion": "cloud.dev/v1", "kind": "StoreClass", "name": "a"});
        let selector = json!({"matchLabels": {}});
        for (spec, select, default) in [
            (json!({"classSelector": selector}), true, false),
            (json!({}), false, true),
            (json!({"classSelector": selector, "classRef": class}), false, false),
            (json!({"classRef": class}), false, false),
            (json!({"resourceRef": class}), false, false),
            (json!({"classSelector": selector, "resourceRef": class}), false, false),
        ] {
            let claim = claim(spec.clone());
            assert_eq!(concerns(Manner::Select, &claim), select, "{spec}");
            assert_eq!(concerns(Manner::Default, &claim), default, "{spec}");
        }
    }

    #[test]
    fn one_that_is_being_deleted_gets_no_class() {
        let mut claim = selecting("prod");
        claim.set_metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        assert_eq!(decide(Manner::Select, &claim, &classes(), 0), Step::Rest);
    }

    #[test]
    fn a_class_with_the_labels_is_chosen_by_chance() {
        assert_eq!(decide(Manner::Select, &selecting("prod"), &Seen::default(), 0), Step::ListClasses);
        assert_eq!(chosen(&decide(Manner::Select, &selecting("prod"), &classes(), 0)), "a");
        assert_eq!(chosen(&decide(Manner::Select, &selecting("prod"), &classes(), 1)), "b");
        assert_eq!(chosen(&decide(Manner::Select, &selecting("dev"), &classes(), 7)), "c");
        let Step::Choose { class, .. } = decide(Manner::Select, &selecting("dev"), &classes(), 0) else {
            panic!("none")
        };
        let expected =
            json!({"apiVersion": "cloud.dev/v1", "kind": "StoreClass", "name": "c", "uid": "uid-c"});
        assert_eq!(class, expected);
    }

    #[test]
    fn without_a_class_that_fits_it_waits() {
        assert_eq!(decide(Manner::Select, &selecting("test"), &classes(), 0), Step::Wait);
        let none = Seen { classes: Some(Vec::new()), has_policy: Some(false) };
        assert_eq!(decide(Manner::Default, &claim(json!({})), &none, 0), Step::Wait);
    }

    #[test]
    fn expressions_count_and_what_cannot_be_read_selects_nothing() {
        let by = |selector: Value| claim(json!({"classSelector": selector}));
        let notin =
            by(json!({"matchExpressions": [{"key": "grade", "operator": "NotIn", "values": ["prod"]}]}));
        assert_eq!(chosen(&decide(Manner::Select, &notin, &classes(), 5)), "c");
        for bad in [json!({"matchLabels": {"a b": "c"}}), json!({"labels": {}}), json!("prod")] {
            assert_eq!(decide(Manner::Select, &by(bad), &classes(), 0), Step::Wait);
        }
    }

    #[test]
    fn a_default_is_used_only_where_no_policy_has_a_say() {
        let claim = claim(json!({}));
        assert_eq!(decide(Manner::Default, &claim, &Seen::default(), 0), Step::LookForPolicies);
        let policy = Seen { has_policy: Some(true), ..classes() };
        assert_eq!(decide(Manner::Default, &claim, &policy, 0), Step::Rest);
        assert_eq!(chosen(&decide(Manner::Default, &claim, &classes(), 0)), "b");
    }

    #[test]
    fn of_several_defaults_one_is_chosen_and_all_are_named() {
        let Step::Choose { class, among } = decide(Manner::Default, &claim(json!({})), &classes(), 1) else {
            panic!("none")
        };
        assert_eq!((class["name"].as_str(), among), (Some("c"), vec!["b".to_owned(), "c".to_owned()]));
    }

    #[test]
    fn a_class_that_is_being_deleted_is_not_chosen() {
        let mut going = class("a", "prod", false);
        going.set_metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        let seen = Seen { classes: Some(vec![going]), has_policy: None };
        assert_eq!(decide(Manner::Select, &selecting("prod"), &seen, 0), Step::Wait);
    }
}
