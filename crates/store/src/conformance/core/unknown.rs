//! Fields that no schema knows, and what a caller can ask to become of them.

use concert_model::Patch;
use serde_json::json;

use crate::conformance::Subject;
use crate::contract::{By, Part, Result};
use crate::error::Error;
use crate::unknown::{UnknownFields, Warnings};

fn refusing() -> By {
    By::actor("suite").with_unknown(UnknownFields::Refuse)
}

fn unknown<T>(result: Result<T>) -> Vec<String> {
    match result {
        Err(Error::Unknown { fields, .. }) => fields.iter().map(ToString::to_string).collect(),
        Err(error) => panic!("refused for another reason: {error}"),
        Ok(_) => panic!("not refused"),
    }
}

/// They are dropped without a word unless the caller asks for more.
pub async fn fields_are_dropped_in_silence(subject: &Subject) {
    let widgets = subject.widgets().await;
    let by = By::actor("suite").warning(&Warnings::collect());
    let object = widgets.object("a", json!({"n": 1, "colour": "pink"}));
    let stored = subject.store.create(object, &by).await.unwrap();
    assert_eq!(*stored.decode().spec(), json!({"n": 1}));
    assert!(by.warnings.take().is_empty());
}

/// A caller that wants to be warned is, and its write is done.
pub async fn fields_are_warned_about_when_asked(subject: &Subject) {
    let widgets = subject.widgets().await;
    let by = By::actor("suite").with_unknown(UnknownFields::Warn).warning(&Warnings::collect());
    let object = widgets.object("a", json!({"n": 1, "colour": "pink"}));
    let stored = subject.store.create(object, &by).await.unwrap();
    assert_eq!(*stored.decode().spec(), json!({"n": 1}));
    assert_eq!(by.warnings.take(), ["unknown field \"spec.colour\""]);
}

/// A caller that wants to be refused is, by field, and nothing is stored.
pub async fn fields_are_refused_when_asked(subject: &Subject) {
    let widgets = subject.widgets().await;
    let object = widgets.object("a", json!({"n": 1, "colour": "pink"}));
    let refusal = subject.store.create(object.clone(), &refusing()).await;
    let text = refusal.as_ref().unwrap_err().to_string();
    assert_eq!(text, "strict decoding error: unknown field \"spec.colour\"");
    assert_eq!(unknown(refusal), ["spec.colour"]);
    assert!(widgets.is_gone("a").await);
    let stored = widgets.create("a", json!({"n": 1})).await;
    let mut changed = stored.decode();
    changed.get_mut("spec")["colour"] = json!("pink");
    assert_eq!(unknown(subject.store.update(changed, &refusing()).await), ["spec.colour"]);
    assert_eq!(widgets.get("a").await, stored);
}

/// What is known is no reason to refuse.
pub async fn fields_that_are_known_are_not_refused(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut object = widgets.object("a", json!({"n": 1, "free": {"any": "thing"}, "map": {"any": "text"}}));
    object.set_metadata("labels", json!({"a": "b"}));
    object.set_metadata("annotations", json!({"a": "b"}));
    let stored = subject.store.create(object, &refusing()).await.unwrap();
    subject.store.update(stored.decode(), &refusing()).await.unwrap();
    subject.store.update_status(stored.decode(), &refusing()).await.unwrap();
}

/// A patch that brings them is refused where that is asked for.
pub async fn fields_of_patches_are_refused_when_asked(subject: &Subject) {
    let widgets = subject.widgets().await;
    let stored = widgets.create("a", json!({"n": 1})).await;
    let patch = Patch::merge(json!({"spec": {"n": 2, "colour": "pink"}})).unwrap();
    let refusal = subject.store.patch(&widgets.key("a"), Part::Main, &patch, &refusing()).await;
    assert_eq!(unknown(refusal), ["spec.colour"]);
    assert_eq!(widgets.get("a").await, stored);
}
