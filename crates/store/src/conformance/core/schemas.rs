//! What a kind's schema does to its objects.

use serde_json::{Value, json};

use crate::conformance::{Definition, Subject, Widgets, invalid_fields};
use crate::contract::Part;

async fn widgets(subject: &Subject, properties: Value) -> Widgets {
    subject.widgets_of(Definition::of(json!({"type": "object", "properties": properties}))).await
}

/// Fields that the schema does not know are pruned.
pub async fn prune_what_they_do_not_know(subject: &Subject) {
    let inner = json!({"type": "object", "properties": {"known": {"type": "string"}}});
    let list = json!({"type": "array", "items": inner});
    let widgets = widgets(subject, json!({"inner": inner, "list": list})).await;
    let given = json!({"known": "x", "unknown": 1});
    let spec = json!({"inner": given, "list": [given], "unknown": {"deep": 1}});
    let mut object = widgets.object("a", spec);
    object.set("unheard", json!(1));
    let stored = widgets.try_create(object).await.unwrap().decode();
    assert_eq!(*stored.spec(), json!({"inner": {"known": "x"}, "list": [{"known": "x"}]}));
    assert!(stored.get("unheard").is_null());
}

/// Fields below `x-kubernetes-preserve-unknown-fields` are kept.
pub async fn keep_what_they_are_told_to_keep(subject: &Subject) {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let half = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "strict": {"type": "object", "properties": {"known": {"type": "string"}}}}});
    let widgets = widgets(subject, json!({"free": free, "half": half})).await;
    let spec = json!({"free": {"a": {"b": [1, "two", {"c": null}]}},
        "half": {"more": 1, "strict": {"known": "x"}}});
    let stored = widgets.create("a", spec.clone()).await;
    assert_eq!(*stored.decode().spec(), spec);
    let unknown = json!({"spec": {"half": {"strict": {"unknown": 1}}}});
    assert_eq!(widgets.merge("a", unknown).await, stored);
}

/// Defaults are filled in on every write.
pub async fn fill_in_defaults(subject: &Subject) {
    let inner = json!({"type": "object", "default": {}, "properties": {
        "tier": {"type": "string", "default": "small"}}});
    let count = json!({"type": "integer", "default": 3});
    let widgets = widgets(subject, json!({"inner": inner, "count": count})).await;
    let stored = widgets.create("a", json!({})).await;
    assert_eq!(*stored.decode().spec(), json!({"inner": {"tier": "small"}, "count": 3}));
    let given = widgets.create("b", json!({"inner": {"tier": "large"}, "count": 0})).await;
    assert_eq!(*given.decode().spec(), json!({"inner": {"tier": "large"}, "count": 0}));
    // Taking a default away is no change: it comes back.
    assert_eq!(widgets.merge("a", json!({"spec": {"count": null}})).await, stored);
}

/// A value of the wrong type, too small, too long or not listed is refused by field.
pub async fn refuse_values_by_field(subject: &Subject) {
    let properties = json!({
        "n": {"type": "integer", "minimum": 1, "maximum": 10},
        "text": {"type": "string", "maxLength": 3, "pattern": "^[a-z]*$"},
        "tier": {"type": "string", "enum": ["small", "large"]},
        "flag": {"type": "boolean"},
        "list": {"type": "array", "maxItems": 2, "items": {"type": "integer"}},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "when": {"type": "string", "format": "date-time"},
    });
    let widgets = widgets(subject, properties).await;
    for (spec, field) in [
        (json!({"n": "1"}), "spec.n"),
        (json!({"n": 0}), "spec.n"),
        (json!({"n": 11}), "spec.n"),
        (json!({"n": 1.5}), "spec.n"),
        (json!({"text": 1}), "spec.text"),
        (json!({"text": "abcd"}), "spec.text"),
        (json!({"text": "A"}), "spec.text"),
        (json!({"tier": "medium"}), "spec.tier"),
        (json!({"flag": "yes"}), "spec.flag"),
        (json!({"list": {}}), "spec.list"),
        (json!({"list": [1, 2, 3]}), "spec.list"),
        (json!({"list": [1, "2"]}), "spec.list[1]"),
        (json!({"map": {"a": "x"}}), "spec.map.a"),
        (json!({"when": "yesterday"}), "spec.when"),
        (json!([]), "spec"),
    ] {
        let fields = invalid_fields(widgets.try_create(widgets.object("a", spec.clone())).await);
        assert!(fields.contains(&field.to_owned()), "{spec}: {fields:?}");
    }
    assert!(widgets.names().await.is_empty());
}

/// What is required must be there.
pub async fn refuse_what_is_missing(subject: &Subject) {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let widgets = subject.widgets_of(Definition::of(schema)).await;
    assert_eq!(invalid_fields(widgets.try_create(widgets.object("a", json!({}))).await), ["spec.n"]);
    widgets.create("a", json!({"n": 1})).await;
    let gone = widgets.try_merge("a", Part::Main, json!({"spec": {"n": null}})).await;
    assert_eq!(invalid_fields(gone), ["spec.n"]);
}

/// An int-or-string takes both and nothing else, and keeps which it was.
pub async fn take_integers_or_strings(subject: &Subject) {
    let widgets = widgets(subject, json!({"port": {"x-kubernetes-int-or-string": true}})).await;
    for (name, port) in [("a", json!(80)), ("b", json!("http"))] {
        assert_eq!(widgets.create(name, json!({"port": port})).await.decode().spec()["port"], port);
    }
    let refusal = widgets.try_create(widgets.object("c", json!({"port": [80]}))).await;
    assert_eq!(invalid_fields(refusal), ["spec.port"]);
}

/// A list that is a set takes no entry twice.
pub async fn refuse_repeated_entries_of_sets(subject: &Subject) {
    let set = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    let widgets = widgets(subject, json!({"set": set})).await;
    widgets.create("a", json!({"set": ["x", "y"]})).await;
    let refusal = widgets.try_create(widgets.object("b", json!({"set": ["x", "y", "x"]}))).await;
    assert_eq!(invalid_fields(refusal), ["spec.set[2]"]);
}

/// A list that is a map takes no key twice.
pub async fn refuse_repeated_keys_of_maps(subject: &Subject) {
    let item = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "value": {"type": "string"}}});
    let map = json!({"type": "array", "items": item, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"]});
    let widgets = widgets(subject, json!({"map": map})).await;
    widgets.create("a", json!({"map": [{"name": "x", "value": "1"}, {"name": "y", "value": "1"}]})).await;
    let twice = json!({"map": [{"name": "x"}, {"name": "x"}]});
    let refusal = widgets.try_create(widgets.object("b", twice)).await;
    assert_eq!(invalid_fields(refusal), ["spec.map[1]"]);
}

/// The order of a list is kept, sets included.
pub async fn keep_the_order_of_lists(subject: &Subject) {
    let widgets = subject.widgets().await;
    let stored = widgets.create("a", json!({"list": ["b", "a", "b"]})).await;
    assert_eq!(stored.decode().spec()["list"], json!(["b", "a", "b"]));
    let other = widgets.merge("a", json!({"spec": {"list": ["a", "b", "b"]}})).await;
    assert_ne!(other.resource_version(), stored.resource_version());
}

/// All that is wrong is told at once.
pub async fn tell_all_that_is_wrong(subject: &Subject) {
    let properties = json!({"a": {"type": "integer"}, "b": {"type": "integer"}});
    let widgets = widgets(subject, properties).await;
    let refusal = widgets.try_create(widgets.object("x", json!({"a": "1", "b": "2"}))).await;
    let mut fields = invalid_fields(refusal);
    fields.sort();
    assert_eq!(fields, ["spec.a", "spec.b"]);
}
