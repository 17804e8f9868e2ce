//! What objects hold survives exactly.

use serde_json::{Value, json};

use crate::conformance::{Subject, next_change};
use crate::contract::Event;

/// Creates an object with `free` in it, and looks that every way to read it shows the same.
async fn survives(subject: &Subject, free: Value) {
    let widgets = subject.widgets().await;
    let mut events = widgets.watch().await;
    let created = widgets.create("a", json!({"free": free})).await;
    assert_eq!(created.decode().spec()["free"], free);
    assert_eq!(widgets.get("a").await.decode(), created.decode());
    assert_eq!(widgets.list().await.items[0].decode(), created.decode());
    assert_eq!(next_change(&mut events).await, Event::Added(created.clone()));
    // Read and written back it is the same object, in every byte.
    assert_eq!(widgets.update(&created, |_| {}).await.resource_version(), created.resource_version());
}

/// Integers from -2^63 to 2^63-1 survive exactly.
pub async fn keeps_integers_exactly(subject: &Subject) {
    let integers = [0, 1, -1, 1 << 53, (1 << 53) + 1, i64::MAX - 1, i64::MAX, i64::MIN, i64::MIN + 1];
    survives(subject, json!({"integers": integers})).await;
    let widgets = subject.widgets().await;
    for (name, n) in [("max", i64::MAX), ("min", i64::MIN)] {
        assert_eq!(widgets.create(name, json!({"n": n})).await.decode().spec()["n"].as_i64(), Some(n));
    }
    let patched = widgets.merge("max", json!({"spec": {"n": i64::MAX - 1}})).await;
    assert_eq!(patched.decode().spec()["n"].as_i64(), Some(i64::MAX - 1));
}

/// Fractions survive.
pub async fn keeps_fractions(subject: &Subject) {
    survives(subject, json!({"fractions": [0.1, -2.5, 1.0e-7, 123_456.789]})).await;
}

/// Every script, every control character, quotes and backslashes survive in values and in keys.
pub async fn keeps_unicode(subject: &Subject) {
    let texts = [
        "ünïcödé",
        "日本語",
        "Здравствуй",
        "🦀👩‍👩‍👧",
        "e\u{301}",
        "\u{202e}rtl",
        "a\"b\\c/d",
        "\u{1}\t\n\r\u{7f}",
        "\u{feff}",
        "",
    ];
    let map: serde_json::Map<String, Value> = texts.iter().map(|t| ((*t).to_owned(), json!(t))).collect();
    survives(subject, json!({"texts": texts, "map": map})).await;
}

/// Empty maps, empty lists and nulls in lists survive where fields are free.
pub async fn keeps_emptiness(subject: &Subject) {
    survives(subject, json!({"map": {}, "list": [], "text": "", "zero": 0, "no": false, "lists": [[], {}]}))
        .await;
}

/// Keys that look like paths or escapes survive.
pub async fn keeps_odd_keys(subject: &Subject) {
    survives(subject, json!({"a.b/c": 1, "~0": 2, "/": 3, "a b": 4, "$ref": "#/x", "__proto__": {}})).await;
}

/// Deep nesting survives.
pub async fn keeps_deep_nesting(subject: &Subject) {
    let deep = (0..50).fold(json!("bottom"), |inner, _| json!({"d": [inner]}));
    survives(subject, json!({"deep": deep})).await;
}

/// An object of one MiB is stored, listed, watched and changed like any other.
pub async fn takes_objects_of_a_mebibyte(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut events = widgets.watch().await;
    let text: String = "0123456789abcdef".repeat((1 << 20) / 16);
    let created = widgets.create("big", json!({"text": text})).await;
    assert_eq!(widgets.get("big").await.decode().spec()["text"], text);
    assert_eq!(next_change(&mut events).await, Event::Added(created.clone()));
    let changed = widgets.merge("big", json!({"spec": {"n": 1}})).await;
    assert_eq!(widgets.list().await.items[0], changed);
    assert_eq!(next_change(&mut events).await, Event::Modified(changed));
    widgets.delete("big").await;
    assert!(matches!(next_change(&mut events).await, Event::Deleted(_)));
}

/// The longest names there are can be stored and found.
pub async fn takes_the_longest_names(subject: &Subject) {
    let widgets = subject.widgets().await;
    let name = "x".repeat(253);
    widgets.create(&name, json!({"n": 1})).await;
    assert_eq!(widgets.names().await, std::slice::from_ref(&name));
    widgets.delete(&name).await;
    assert!(widgets.is_gone(&name).await);
}

/// The longest labels there are can be stored and selected by.
pub async fn takes_the_longest_labels(subject: &Subject) {
    let widgets = subject.widgets().await;
    let (key, value) = (format!("{}/{}", "d".repeat(63), "k".repeat(63)), "v".repeat(63));
    widgets.create_labelled("a", json!({key.clone(): value})).await;
    let query = widgets.query().with_labels(concert_model::LabelSelector::label(&key, &value));
    assert_eq!(subject.store.list(&query, &crate::PageRequest::whole()).await.unwrap().items.len(), 1);
}
