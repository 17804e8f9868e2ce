//! What reads show while the watch is behind.

use std::sync::Arc;

use concert_model::{Body, Encoded, GroupKind, Head, Object, ObjectKey, ResourceVersion, Timestamp, Uid};

use super::Order;
use super::state::{Look, Next, State};
use crate::contract::Event;

fn at(version: u128) -> ResourceVersion {
    ResourceVersion(version.to_string().into())
}

fn object(name: &str, uid: u128, version: u128) -> Encoded {
    let object = Object::new(&GroupKind::new("a.dev", "Widget").at_version("v1"), "space", name);
    let head = Head {
        version: "v1".into(),
        uid: Uid::from_random(uid),
        generation: 1,
        created_at: Timestamp::UNIX_EPOCH,
        deleted_at: None,
        labels: Default::default(),
        owners: Vec::new(),
        fields: Default::default(),
    };
    Encoded::new(Arc::new(Body::encode(object.key().unwrap(), head, &object)), at(version))
}

fn key(name: &str) -> ObjectKey {
    object(name, 1, 1).key().clone()
}

/// A kind that was listed at 10.
fn listed(objects: &[Encoded]) -> State {
    let mut state = State::default();
    state.list(objects.to_vec(), Order(10), at(10));
    state
}

fn tell(state: &mut State, event: Event) {
    state.change(Order::of(event.position()).unwrap(), event);
}

#[test]
fn a_write_is_read_before_and_after_the_watch_tells_it() {
    let mut state = listed(&[object("a", 1, 5)]);
    state.answered(&object("a", 1, 12));
    assert_eq!(state.look(&key("a")), Look::Found(object("a", 1, 12)));
    assert!(!state.is_caught_up());
    // Somebody else's write from before ours.
    tell(&mut state, Event::Modified(object("a", 1, 11)));
    assert_eq!(state.look(&key("a")), Look::Found(object("a", 1, 12)));
    tell(&mut state, Event::Modified(object("a", 1, 12)));
    assert!(state.is_caught_up());
    tell(&mut state, Event::Modified(object("a", 1, 13)));
    assert_eq!(state.look(&key("a")), Look::Found(object("a", 1, 13)));
}

#[test]
fn an_answer_that_comes_after_its_event_changes_nothing() {
    let mut state = listed(&[]);
    tell(&mut state, Event::Added(object("a", 1, 11)));
    tell(&mut state, Event::Modified(object("a", 1, 12)));
    state.answered(&object("a", 1, 11));
    assert_eq!(state.look(&key("a")), Look::Found(object("a", 1, 12)));
    assert!(state.is_caught_up());
}

#[test]
fn a_deletion_is_read_before_the_watch_tells_it() {
    let mut state = listed(&[object("a", 1, 5)]);
    state.gone(&object("a", 1, 5));
    assert_eq!(state.look(&key("a")), Look::Missing);
    // Made anew by us, then by the word of the watch.
    state.answered(&object("a", 2, 13));
    assert_eq!(state.look(&key("a")), Look::Found(object("a", 2, 13)));
    tell(&mut state, Event::Deleted(object("a", 1, 12)));
    assert_eq!(state.look(&key("a")), Look::Found(object("a", 2, 13)));
    tell(&mut state, Event::Added(object("a", 2, 13)));
    assert!(state.is_caught_up());
}

#[test]
fn a_deletion_that_the_watch_has_told_is_not_remembered() {
    let mut state = listed(&[object("a", 1, 5)]);
    tell(&mut state, Event::Deleted(object("a", 1, 11)));
    state.gone(&object("a", 1, 5));
    assert!(state.is_caught_up());
    tell(&mut state, Event::Added(object("a", 2, 12)));
    assert_eq!(state.look(&key("a")), Look::Found(object("a", 2, 12)));
}

#[test]
fn after_a_refusal_the_server_is_asked_once() {
    let mut state = listed(&[object("a", 1, 5)]);
    state.stale(&key("a"));
    assert_eq!(state.look(&key("a")), Look::Ask);
    state.answered(&object("a", 1, 11));
    assert_eq!(state.look(&key("a")), Look::Found(object("a", 1, 11)));
    state.stale(&key("a"));
    state.absent(&key("a"));
    assert_eq!(state.look(&key("a")), Look::Ask, "the watch still says otherwise");
    tell(&mut state, Event::Deleted(object("a", 1, 12)));
    assert_eq!(state.look(&key("a")), Look::Missing);
}

#[test]
fn a_list_that_is_older_than_an_answer_does_not_hide_it() {
    let mut state = State::default();
    state.will_list();
    state.answered(&object("a", 1, 12));
    assert_eq!(state.look(&key("a")), Look::Ask);
    state.list(Vec::new(), Order(10), at(10));
    assert_eq!(state.look(&key("a")), Look::Found(object("a", 1, 12)));
    state.progress(Order(12), at(12));
    assert!(state.is_caught_up());
}

#[test]
fn more_answers_than_fit_make_it_ask_until_it_has_listed_again() {
    let mut state = listed(&[]);
    for i in 0..5_000 {
        state.answered(&object(&format!("w{i}"), 1, 20 + i));
    }
    assert!(state.needs_list());
    assert_eq!(state.look(&key("w1")), Look::Ask);
    state.will_list();
    state.list(vec![object("w1", 1, 21)], Order(9_000), at(9_000));
    assert_eq!(state.look(&key("w1")), Look::Found(object("w1", 1, 21)));
    assert!(state.is_caught_up());
}

#[test]
fn watches_are_told_everything_once_and_hear_of_gaps() {
    let mut state = listed(&[object("a", 1, 5)]);
    let (objects, position, mut cursor) = state.start(None).unwrap();
    assert_eq!((objects.len(), position), (1, at(10)));
    assert_eq!(state.next(&mut cursor), Next::Nothing);
    let added = Event::Added(object("b", 1, 11));
    tell(&mut state, added.clone());
    assert_eq!(state.next(&mut cursor), Next::Event(added.clone()));
    assert_eq!(state.next(&mut cursor), Next::Nothing);
    state.progress(Order(15), at(15));
    let bookmark = Event::Bookmark { position: at(15), is_initial_end: false };
    assert_eq!(state.next(&mut cursor), Next::Event(bookmark));
    let mut resumed = state.resume(Order(10), None).unwrap();
    assert_eq!(state.next(&mut resumed), Next::Event(added));
    assert!(state.resume(Order(9), None).is_none());
    let mut elsewhere = state.resume(Order(10), Some("elsewhere".into())).unwrap();
    assert!(matches!(state.next(&mut elsewhere), Next::Event(Event::Bookmark { .. })));
    state.list(Vec::new(), Order(20), at(20));
    assert_eq!(state.next(&mut cursor), Next::Expired);
}

#[test]
fn a_watch_that_falls_behind_is_expired() {
    let mut state = listed(&[]);
    let (.., mut cursor) = state.start(None).unwrap();
    for i in 0..10_000 {
        tell(&mut state, Event::Modified(object("a", 1, 11 + i)));
    }
    assert_eq!(state.next(&mut cursor), Next::Expired);
}
