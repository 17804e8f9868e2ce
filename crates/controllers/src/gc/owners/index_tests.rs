use std::sync::Arc;

use concert_model::{Body, Encoded, GroupKind, Head, Object, ObjectKey, ResourceVersion, Timestamp, Uid};
use serde_json::json;

use super::*;

fn widget() -> GroupKind {
    GroupKind::new("example.com", "Widget")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(widget(), "default", name)
}

fn uid(name: &str) -> Uid {
    Uid(name.into())
}

/// A widget whose uid is its name, with owners that wait for it.
fn object(name: &str, owners: &[&str]) -> Encoded {
    let references = owners.iter().map(|owner| {
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": owner, "uid": owner,
            "blockOwnerDeletion": true})
    });
    let mut object = Object::new(&widget().at_version("v1"), "default", name);
    object.set_metadata("ownerReferences", references.collect());
    encode(&object, false)
}

/// The same, being deleted in the foreground.
fn waiting(name: &str, owners: &[&str]) -> Encoded {
    let mut object = object(name, owners).decode();
    object.add_finalizer(FOREGROUND);
    encode(&object, true)
}

fn encode(object: &Object, is_deleting: bool) -> Encoded {
    let head = Head {
        version: "v1".into(),
        uid: uid(object.name()),
        generation: 1,
        created_at: Timestamp::UNIX_EPOCH,
        deleted_at: is_deleting.then_some(Timestamp::UNIX_EPOCH),
        labels: Default::default(),
        owners: object.owners(),
        fields: Default::default(),
    };
    let body = Body::encode(object.key().unwrap(), head, object);
    Encoded::new(Arc::new(body), ResourceVersion("1".into()))
}

fn index(objects: &[Encoded]) -> (Index, Ticket) {
    let mut index = Index::default();
    let ticket = index.open(widget());
    index.list_begins(&ticket);
    for object in objects {
        index.present(&ticket, object);
    }
    index.list_ends(&ticket);
    (index, ticket)
}

#[test]
fn what_has_no_owners_leaves_nothing() {
    let (mut index, ticket) = index(&[object("a", &[]), waiting("b", &[])]);
    assert!(index.is_empty());
    assert!(index.present(&ticket, &object("a", &[])).is_empty());
    assert_eq!(index.present(&ticket, &waiting("b", &[])), [key("b")]);
}

#[test]
fn what_is_owned_is_looked_at_when_its_owners_change_or_go() {
    let (mut index, ticket) = index(&[]);
    assert_eq!(index.present(&ticket, &object("b", &["a"])), [key("b")]);
    assert!(index.present(&ticket, &object("b", &["a"])).is_empty());
    assert_eq!(index.present(&ticket, &object("b", &["a", "c"])), [key("b")]);
    assert_eq!(index.gone(&ticket, &object("a", &[])), [key("b")]);
    assert_eq!(index.fate(&uid("a")), Fate::Gone("default".into()));
    index.present(&ticket, &object("b", &[]));
    assert!(index.is_empty());
}

#[test]
fn an_owner_that_waits_is_told_of_every_step() {
    let (mut index, ticket) = index(&[object("b", &["a"]), object("c", &["a"])]);
    assert!(index.await_dependents(&key("a"), &uid("a")));
    assert!(!index.await_dependents(&key("a"), &uid("a")));
    assert!(index.is_blocked(&key("a"), &uid("a")));
    assert_eq!(index.gone(&ticket, &object("b", &["a"])), [key("a")]);
    assert_eq!(index.present(&ticket, &object("c", &[])), [key("a")]);
    assert!(!index.is_blocked(&key("a"), &uid("a")));
}

#[test]
fn who_waits_in_a_circle_does_not_block() {
    let (mut index, ticket) = index(&[waiting("a", &["c"]), waiting("b", &["a"]), object("c", &["b"])]);
    assert!(index.is_blocked(&key("a"), &uid("a")));
    index.present(&ticket, &waiting("c", &["b"]));
    for name in ["a", "b", "c"] {
        assert!(!index.is_blocked(&key(name), &uid(name)), "{name}");
    }
    index.present(&ticket, &object("d", &["b"]));
    assert!(index.is_blocked(&key("b"), &uid("b")));
}

#[test]
fn a_second_list_finds_what_went_and_has_everybody_look_again() {
    let (mut index, ticket) = index(&[object("b", &["a"]), object("c", &["b"]), object("d", &["x"])]);
    index.list_begins(&ticket);
    index.present(&ticket, &object("c", &["b"]));
    index.present(&ticket, &object("d", &["x"]));
    let wakes = index.list_ends(&ticket);
    assert!(wakes.contains(&key("c")) && wakes.contains(&key("d")), "{wakes:?}");
    assert_eq!(index.len(), (2, 2));
    assert_eq!(index.fate(&uid("b")), Fate::Gone("default".into()));
}

#[test]
fn only_the_newest_ticket_counts() {
    let (mut index, old) = index(&[object("b", &["a"])]);
    index.close(&widget());
    assert!(index.is_empty());
    let new = index.open(widget());
    assert!(index.present(&old, &object("b", &["a"])).is_empty());
    index.list_ends(&old);
    assert!(!index.is_complete(&[widget()], Some(&key("z"))));
    assert_eq!(index.list_ends(&new), [key("z")]);
    assert!(index.is_complete(&[widget()], None));
}
