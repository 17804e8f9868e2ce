//! Selection by labels and fields, in lists and in watches.

use concert_model::{FieldSelector, LabelSelector};
use serde_json::json;

use crate::conformance::expect::{next_word, refused};
use crate::conformance::widgets::names_of;
use crate::conformance::{Definition, Subject, Widgets, next_change};
use crate::contract::{Event, Events, PageRequest, Query};
use crate::error::Error;

async fn selected(widgets: &Widgets, query: &Query) -> Vec<String> {
    names_of(&widgets.store.list(query, &PageRequest::whole()).await.unwrap().items)
}

fn labelled(widgets: &Widgets, selector: &str) -> Query {
    widgets.query().with_labels(LabelSelector::parse(selector).unwrap())
}

async fn watch_labelled(widgets: &Widgets, selector: &str) -> Events {
    let query = labelled(widgets, selector);
    let position = widgets.list().await.position;
    widgets.store.watch(&query, Some(&position)).await.unwrap()
}

/// Every operator of label selectors selects as its text says.
pub async fn by_labels_know_every_operator(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_labelled("a", json!({"app": "web", "tier": "front"})).await;
    widgets.create_labelled("b", json!({"app": "db", "tier": "back"})).await;
    widgets.create_labelled("c", json!({"app": "web"})).await;
    widgets.create_labelled("d", json!({})).await;
    for (selector, names) in [
        ("", &["a", "b", "c", "d"][..]),
        ("app=web", &["a", "c"]),
        ("app==db", &["b"]),
        ("app!=web", &["b", "d"]),
        ("app in (web,db)", &["a", "b", "c"]),
        ("app notin (web)", &["b", "d"]),
        ("tier", &["a", "b"]),
        ("!tier", &["c", "d"]),
        ("app=web,tier", &["a"]),
        ("app=web,!tier", &["c"]),
        ("app=none", &[]),
    ] {
        assert_eq!(selected(&widgets, &labelled(&widgets, selector)).await, names, "{selector}");
    }
}

/// Every kind can be selected by name and namespace.
pub async fn by_name_and_namespace_work_for_every_kind(subject: &Subject) {
    let widgets = subject.widgets().await;
    for name in ["a", "b", "c"] {
        widgets.create(name, json!({"n": 1})).await;
    }
    let query = |text: &str| widgets.query().with_fields(FieldSelector::parse(text).unwrap());
    assert_eq!(selected(&widgets, &query("metadata.name=b")).await, ["b"]);
    assert_eq!(selected(&widgets, &query("metadata.name!=b")).await, ["a", "c"]);
    let space = format!("metadata.namespace={}", widgets.namespace);
    assert_eq!(selected(&widgets, &query(&space)).await.len(), 3);
}

/// A kind can be selected by the fields that its definition says.
pub async fn by_fields_follow_the_definition(subject: &Subject) {
    let definition = Definition::usual().changed(|spec| {
        spec["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.text"}]);
    });
    let widgets = subject.widgets_of(definition).await;
    widgets.create("a", json!({"text": "red"})).await;
    widgets.create("b", json!({"text": "blue"})).await;
    widgets.create("c", json!({"n": 1})).await;
    let query = |text: &str| widgets.query().with_fields(FieldSelector::parse(text).unwrap());
    assert_eq!(selected(&widgets, &query("spec.text=red")).await, ["a"]);
    assert_eq!(selected(&widgets, &query("spec.text!=red")).await, ["b", "c"]);
    widgets.merge("b", json!({"spec": {"text": "red"}})).await;
    assert_eq!(selected(&widgets, &query("spec.text=red")).await, ["a", "b"]);
}

/// A field of status can be selected by as well, whichever part was written last.
pub async fn by_fields_of_status_follow_the_status(subject: &Subject) {
    let definition = Definition::usual().changed(|spec| {
        spec["versions"][0]["selectableFields"] = json!([{"jsonPath": ".status.phase"}]);
    });
    let widgets = subject.widgets_of(definition).await;
    let created = widgets.create("a", json!({"n": 1})).await;
    let query = |text: &str| widgets.query().with_fields(FieldSelector::parse(text).unwrap());
    assert_eq!(selected(&widgets, &query("status.phase=Ready")).await, Vec::<String>::new());
    let written = widgets.try_status(&created, json!({"phase": "Ready"})).await.unwrap();
    assert_eq!(selected(&widgets, &query("status.phase=Ready")).await, ["a"]);
    let changed = widgets.set_n(&written, 2).await;
    assert_eq!(selected(&widgets, &query("status.phase=Ready")).await, ["a"]);
    widgets.try_status(&changed, json!({"phase": "Failed"})).await.unwrap();
    assert_eq!(selected(&widgets, &query("status.phase=Ready")).await, Vec::<String>::new());
}

/// A field the kind cannot be selected by is refused, in lists and in watches.
pub async fn by_other_fields_are_refused(subject: &Subject) {
    let widgets = subject.widgets().await;
    let query = widgets.query().with_fields(FieldSelector::field("spec.n", "1"));
    refused!(subject.store.list(&query, &PageRequest::whole()).await, Error::Invalid { .. });
    refused!(subject.store.watch(&query, None).await, Error::Invalid { .. });
}

/// Pages of a selection together are the whole selection.
pub async fn work_across_pages(subject: &Subject) {
    let widgets = subject.widgets().await;
    for i in 0..12 {
        widgets.create_labelled(&format!("w{i:02}"), json!({"third": (i % 3).to_string()})).await;
    }
    let query = labelled(&widgets, "third=0");
    let mut request = PageRequest { limit: Some(2), token: None };
    let mut names = Vec::new();
    loop {
        let page = subject.store.list(&query, &request).await.unwrap();
        names.extend(names_of(&page.items));
        request.token = page.next;
        if request.token.is_none() {
            break;
        }
    }
    assert_eq!(names, ["w00", "w03", "w06", "w09"]);
}

/// A watch tells of what is selected and of nothing else.
pub async fn hide_everything_else_from_a_watch(subject: &Subject) {
    let widgets = subject.widgets().await;
    let mut events = watch_labelled(&widgets, "app=web").await;
    let hidden = widgets.create_labelled("hidden", json!({"app": "db"})).await;
    widgets.set_n(&hidden, 2).await;
    widgets.delete("hidden").await;
    let shown = widgets.create_labelled("shown", json!({"app": "web"})).await;
    widgets.set_n(&shown, 2).await;
    widgets.delete("shown").await;
    for word in ["A shown", "M shown", "D shown"] {
        assert_eq!(next_word(&mut events).await, word);
    }
}

/// An object that starts to match appears as added.
pub async fn add_what_starts_to_match(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_labelled("a", json!({"app": "db"})).await;
    let mut events = watch_labelled(&widgets, "app=web").await;
    let changed = widgets.merge("a", json!({"metadata": {"labels": {"app": "web"}}})).await;
    assert_eq!(next_change(&mut events).await, Event::Added(changed));
}

/// An object that stops matching appears as deleted, with its last state that matched.
pub async fn delete_what_stops_to_match(subject: &Subject) {
    let widgets = subject.widgets().await;
    let matching = widgets.create_labelled("a", json!({"app": "web"})).await;
    let mut events = watch_labelled(&widgets, "app=web").await;
    let changed = widgets.merge("a", json!({"metadata": {"labels": {"app": "db"}}})).await;
    let Event::Deleted(last) = next_change(&mut events).await else { panic!("not deleted") };
    assert_eq!(last.head().labels, matching.head().labels);
    // A later watch starts after the change that took it away.
    assert_eq!(last.resource_version(), changed.resource_version());
    widgets.merge("a", json!({"metadata": {"labels": {"app": "web"}}})).await;
    assert_eq!(next_word(&mut events).await, "A a");
}

/// An object that keeps matching while its labels change is modified.
pub async fn modify_what_goes_on_matching(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_labelled("a", json!({"app": "web"})).await;
    let mut events = watch_labelled(&widgets, "app in (web,db)").await;
    widgets.merge("a", json!({"metadata": {"labels": {"app": "db"}}})).await;
    assert_eq!(next_word(&mut events).await, "M a");
}

/// A watch by name tells of one object only.
pub async fn by_name_watch_one_object(subject: &Subject) {
    let widgets = subject.widgets().await;
    let query = widgets.query().with_fields(FieldSelector::field("metadata.name", "b"));
    let position = widgets.list().await.position;
    let mut events = subject.store.watch(&query, Some(&position)).await.unwrap();
    for name in ["a", "b", "c"] {
        widgets.create(name, json!({"n": 1})).await;
    }
    widgets.delete("a").await;
    widgets.delete("b").await;
    assert_eq!(next_word(&mut events).await, "A b");
    assert_eq!(next_word(&mut events).await, "D b");
}

/// A watch without a position starts with what is selected.
pub async fn apply_to_the_start_of_a_watch(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_labelled("a", json!({"app": "web"})).await;
    widgets.create_labelled("b", json!({"app": "db"})).await;
    let mut events = subject.store.watch(&labelled(&widgets, "app=web"), None).await.unwrap();
    widgets.create_labelled("c", json!({"app": "web"})).await;
    assert_eq!(next_word(&mut events).await, "A a");
    assert_eq!(next_word(&mut events).await, "A c");
}
