//! Writes that somebody else is asked about.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch};
use concert_store::backend::memory::Memory;
use concert_store::{By, Chance, Config, Delete, Local, Part, Store, SystemClock};
use serde_json::{Value, json};

use super::*;
use crate::auth::{Gate, User};

/// Marks what is written, refuses what is red, and can get in between.
struct Clerk {
    store: Local,
    judged: AtomicUsize,
    committed: AtomicUsize,
    /// Writes of somebody else while it is being asked.
    interferes: AtomicUsize,
}

#[async_trait]
impl Admission for Clerk {
    fn concerns(&self, kind: &GroupKind) -> bool {
        &*kind.kind == "ConfigMap"
    }

    async fn admit(
        &self,
        _user: &User,
        _act: Act,
        old: Option<&Object>,
        new: Option<&mut Object>,
        _is_dry_run: bool,
    ) -> Result<(), Denied> {
        self.judged.fetch_add(1, Ordering::Relaxed);
        if let Some(old) = old
            && self
                .interferes
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
        {
            let count = old.get("data")["count"].as_str().map_or(0, |text| text.parse().unwrap_or(0)) + 1;
            let patch = Patch::merge(json!({"data": {"count": count.to_string()}})).unwrap();
            self.store.patch(&key(), Part::Main, &patch, &By::actor("other")).await?;
        }
        let Some(new) = new else { return Ok(()) };
        if new.get("data")["colour"] == "red" {
            return Err(Denied::Forbidden("not red".into()));
        }
        new.get_mut("data")["seen"] = json!("yes");
        Ok(())
    }

    async fn committed(&self, _act: Act, _old: Option<&Encoded>, written: Written) -> Written {
        self.committed.fetch_add(1, Ordering::Relaxed);
        written
    }
}

struct Desk {
    writer: Writer,
    clerk: Arc<Clerk>,
    user: User,
}

impl Desk {
    fn new() -> Self {
        let config = Config::new(Arc::new(SystemClock::new()), Chance::seeded(1)).inline();
        let store = Local::open(Arc::new(Memory::new()), config).unwrap();
        let clerk = Arc::new(Clerk {
            store: store.clone(),
            judged: AtomicUsize::new(0),
            committed: AtomicUsize::new(0),
            interferes: AtomicUsize::new(0),
        });
        let writer = Writer::new(store, Gate::open()).with_admission(clerk.clone());
        Self { writer, clerk, user: User::known("jane", []) }
    }

    async fn write(&self, operation: Operation) -> Result<Value, Refused> {
        let by = By { manager: "test".into(), ..By::actor("jane") };
        let written = self.writer.write(&self.user, operation, &by).await?;
        Ok(written.into_object().decode().into_value())
    }

    async fn create(&self) {
        self.write(Operation::Create(map(json!({"a": "1"})))).await.unwrap();
    }

    fn counts(&self) -> (usize, usize) {
        (self.clerk.judged.load(Ordering::Relaxed), self.clerk.committed.load(Ordering::Relaxed))
    }
}

fn map(data: Value) -> Object {
    let metadata = json!({"name": "a", "namespace": "default"});
    Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
        .unwrap()
}

fn key() -> ObjectKey {
    map(json!({})).key().unwrap()
}

fn merge(data: Value) -> Operation {
    let patch = Patch::merge(json!({"data": data})).unwrap();
    Operation::Patch(key(), Part::Main, Change::Plain { version: "v1".into(), patch })
}

fn apply(data: Value) -> Operation {
    Operation::Apply { object: map(data), part: Part::Main, is_forced: false }
}

#[tokio::test]
async fn every_way_in_is_judged_and_may_be_completed() {
    let desk = Desk::new();
    let made = desk.write(Operation::Create(map(json!({"a": "1"})))).await.unwrap();
    assert_eq!(made["data"], json!({"a": "1", "seen": "yes"}));
    let patched = desk.write(merge(json!({"seen": null, "b": "2"}))).await.unwrap();
    assert_eq!(patched["data"], json!({"a": "1", "b": "2", "seen": "yes"}));
    let applied = desk.write(apply(json!({"c": "3"}))).await.unwrap();
    assert_eq!(applied["data"], json!({"a": "1", "b": "2", "c": "3", "seen": "yes"}));
    let mut replaced = Object::from_value(applied).unwrap();
    replaced.set("data", json!({"d": "4"}));
    let replaced = desk.write(Operation::Update(replaced, Part::Main)).await.unwrap();
    assert_eq!(replaced["data"], json!({"d": "4", "seen": "yes"}));
    desk.write(Operation::Delete(key(), Delete::default())).await.unwrap();
    assert_eq!(desk.counts(), (5, 5));
}

#[tokio::test]
async fn an_apply_owns_what_it_wants_and_not_what_was_added() {
    let desk = Desk::new();
    let made = desk.write(apply(json!({"a": "1"}))).await.unwrap();
    let owned = &made["metadata"]["managedFields"][0];
    assert_eq!((&owned["manager"], &owned["operation"]), (&json!("test"), &json!("Apply")));
    assert_eq!(owned["fieldsV1"], json!({"f:data": {"f:a": {}}}));
    let again = desk.write(apply(json!({"a": "1"}))).await.unwrap();
    assert_eq!(again, made);
}

#[tokio::test]
async fn what_is_denied_changes_nothing() {
    let desk = Desk::new();
    desk.create().await;
    for operation in [merge(json!({"colour": "red"})), apply(json!({"colour": "red"}))] {
        assert!(matches!(desk.write(operation).await, Err(Refused::Denied(Denied::Forbidden(_)))));
    }
    let stored = desk.clerk.store.get(&key()).await.unwrap().decode();
    assert_eq!(*stored.get("data"), json!({"a": "1", "seen": "yes"}));
    assert_eq!(desk.counts().1, 1);
}

#[tokio::test]
async fn what_moves_while_it_is_judged_is_judged_again() {
    let desk = Desk::new();
    desk.create().await;
    desk.clerk.interferes.store(2, Ordering::Relaxed);
    let patched = desk.write(merge(json!({"b": "2"}))).await.unwrap();
    assert_eq!(patched["data"], json!({"a": "1", "b": "2", "count": "2", "seen": "yes"}));
    assert_eq!(desk.counts(), (4, 2));
    desk.clerk.interferes.store(1, Ordering::Relaxed);
    desk.write(Operation::Delete(key(), Delete::default())).await.unwrap();
    assert_eq!(desk.counts(), (6, 3));
}

#[tokio::test]
async fn a_dry_run_is_judged_and_not_committed() {
    let desk = Desk::new();
    let by = By::actor("jane").dry_run();
    let operation = Operation::Create(map(json!({"a": "1"})));
    let shown = desk.writer.write(&desk.user, operation, &by).await.unwrap().into_object().decode();
    assert_eq!(*shown.get("data"), json!({"a": "1", "seen": "yes"}));
    assert!(desk.clerk.store.get(&key()).await.is_err());
    assert_eq!(desk.counts(), (1, 0));
}

#[tokio::test]
async fn what_is_not_there_and_what_is_there_already_is_said_as_ever() {
    let desk = Desk::new();
    assert!(matches!(
        desk.write(merge(json!({}))).await,
        Err(Refused::Store(concert_store::Error::NotFound { .. }))
    ));
    let gone = desk.write(Operation::Delete(key(), Delete::default())).await;
    assert!(matches!(gone, Err(Refused::Store(concert_store::Error::NotFound { .. }))));
    desk.create().await;
    let again = desk.write(Operation::Create(map(json!({})))).await;
    assert!(matches!(again, Err(Refused::Store(concert_store::Error::AlreadyExists { .. }))));
}
