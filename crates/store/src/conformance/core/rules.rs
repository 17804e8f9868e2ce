//! Rules in the schema of a kind (`x-kubernetes-validations`).

use serde_json::{Value, json};

use crate::conformance::{Definition, Subject, Widgets, invalid_fields};
use crate::contract::{By, Part};
use crate::error::Error;

async fn widgets(subject: &Subject, rules: Value) -> Widgets {
    let number = json!({"type": "integer"});
    let text = json!({"type": "string", "maxLength": 100});
    subject
        .widgets_of(Definition::of(json!({"type": "object", "x-kubernetes-validations": rules,
            "properties": {"min": number, "max": number, "colour": text}})))
        .await
}

fn in_order() -> Value {
    json!([{"rule": "!has(self.min) || !has(self.max) || self.min <= self.max",
        "message": "min must not be greater than max"}])
}

/// A new object that breaks a rule is refused, with the words of the rule.
pub async fn must_hold_for_new_objects(subject: &Subject) {
    let widgets = widgets(subject, in_order()).await;
    widgets.create("a", json!({"min": 1, "max": 2})).await;
    widgets.create("b", json!({"min": 1})).await;
    let refusal = widgets.try_create(widgets.object("c", json!({"min": 2, "max": 1}))).await;
    let Err(Error::Invalid { errors, .. }) = &refusal else { panic!("not refused") };
    assert!(errors[0].detail.contains("min must not be greater than max"), "{errors:?}");
    assert_eq!(invalid_fields(refusal), ["spec"]);
}

/// A change is held to the rules as a new object is.
pub async fn must_hold_after_a_change(subject: &Subject) {
    let widgets = widgets(subject, in_order()).await;
    let stored = widgets.create("a", json!({"min": 1, "max": 2})).await;
    let refusal = widgets.try_merge("a", Part::Main, json!({"spec": {"min": 3}})).await;
    assert_eq!(invalid_fields(refusal), ["spec"]);
    let refusal = widgets.try_update(&stored, |object| object.get_mut("spec")["max"] = json!(0)).await;
    assert_eq!(invalid_fields(refusal), ["spec"]);
    assert_eq!(widgets.get("a").await, stored);
    widgets.merge("a", json!({"spec": {"min": 2}})).await;
}

/// A rule with `oldSelf` compares a change with what was there, and says nothing of new objects.
pub async fn may_look_at_the_state_before(subject: &Subject) {
    let rule = json!([{"rule": "!has(oldSelf.colour) || (has(self.colour) && self.colour == oldSelf.colour)",
        "message": "colour cannot change"}]);
    let widgets = widgets(subject, rule).await;
    widgets.create("a", json!({"colour": "red"})).await;
    let refusal = widgets.try_merge("a", Part::Main, json!({"spec": {"colour": "blue"}})).await;
    assert_eq!(invalid_fields(refusal), ["spec"]);
    widgets.merge("a", json!({"spec": {"min": 2}})).await;
}

/// Rules of status are asked when status is written.
pub async fn of_status_hold_for_status(subject: &Subject) {
    let definition = Definition::usual().changed(|spec| {
        let status = &mut spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
        status["x-kubernetes-validations"] = json!([{"rule": "!has(self.n) || self.n >= 0",
            "message": "n must not be negative"}]);
    });
    let widgets = subject.widgets_of(definition).await;
    let created = widgets.create("a", json!({"n": 1})).await;
    assert_eq!(invalid_fields(widgets.try_status(&created, json!({"n": -1})).await), ["status"]);
    let observed = widgets.try_status(&created, json!({"n": 1})).await.unwrap();
    widgets.set_n(&observed, 2).await;
}

/// A definition with a rule that is no expression is refused.
pub async fn must_be_expressions(subject: &Subject) {
    let group = format!("{}.conformance.concert.dev", subject.unique("g"));
    for rule in ["self.n ==", "self.nowhere == 1", "self.n + 1"] {
        let definition = Definition::usual().changed(|spec| {
            spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
                json!([{"rule": rule}]);
        });
        let refusal = subject.store.create(definition.object(&group, "x"), &By::actor("suite")).await;
        let fields = invalid_fields(refusal);
        assert!(
            fields.iter().any(|field| field.contains("x-kubernetes-validations[0]")),
            "{rule}: {fields:?}"
        );
    }
}
