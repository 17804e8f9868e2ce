//! A whole controller in one file: folders that are declared, made real, repaired and taken away.
//!
//! Run it with `cargo run -p concert-engine --example folders`. Everything happens in a temporary folder that is removed afterwards.
#![allow(clippy::print_stdout, reason = "it shows what happens")]

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{Controller, Engine, Failure, Objects, Outcome, Reconciler, Request, Tasks, TokioSpawn};
use concert_model::condition::{self, Condition, Status};
use concert_model::{GroupKind, GroupVersionKind, Object, ObjectKey};
use concert_store::backend::{Sqlite, sqlite};
use concert_store::seal::Keyring;
use concert_store::{By, Chance, Clock, Config, Delete, Error, Event, Local, Query, Store, SystemClock};
use serde_json::{Value, json};

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// Keeps a `Folder` until the real one is gone.
const FINALIZER: &str = "example.concert.dev/folder";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    demo().await
}

/// The story of three folders.
pub async fn demo() -> Result<()> {
    let home = tempfile::tempdir()?;
    let (clock, chance) = (Arc::new(SystemClock::new()), Chance::from_system());
    let keyring = Keyring::open(home.path().join("concert.key"), &chance)?;
    let backend = Sqlite::open(home.path().join("concert.db"), &sqlite::Options::default())?;
    let store = Local::open(Arc::new(backend), Config::new(clock.clone(), chance.clone()).sealed(keyring))?;
    println!("opened a store in {}", home.path().display());

    let you = By::actor("you").because("demo");
    store.create(Object::from_value(definition())?, &you).await?;
    println!("registered the kind Folder");

    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
    let engine = Engine::new(Arc::new(store.clone()), clock.clone(), chance, tasks);
    let root = home.path().join("folders");
    let folders = Folders { store: store.clone(), root: root.clone(), clock };
    let controller = Controller::builder("folders", Arc::new(folders))
        .objects(Objects::new(Query::all(kind().group_kind)))
        // Nothing tells us when somebody removes a folder: we look now and then.
        .poll(Duration::from_millis(200));
    engine.start(controller.build())?;

    let mut events = store.watch(&Query::all(kind().group_kind), None).await?;
    for name in ["music", "letters", "maps"] {
        let mut object = Object::new(&kind(), "default", name);
        object.set("spec", json!({ "note": format!("a place for {name}") }));
        store.create(object, &you).await?;
        println!("declared {name}");
    }
    wait_until(&mut events, "ready", 3, |event| matches!(event, Event::Modified(o) if is_ready(&o.decode())))
        .await?;

    let lost = root.join("maps");
    std::fs::remove_dir_all(&lost)?;
    println!("removed {} behind its back", lost.display());
    while !lost.join("note.txt").exists() {
        tokio::task::yield_now().await;
    }
    println!("it is back");

    for name in ["music", "letters", "maps"] {
        store.delete(&key(name), &Delete::default(), &you).await?;
    }
    wait_until(&mut events, "gone", 3, |event| matches!(event, Event::Deleted(_))).await?;
    println!("{} folders are left on the disk", std::fs::read_dir(&root)?.count());
    for past in store.history(&key("maps"), None, 10).await? {
        println!("  history of maps: {:?} by {} at {}", past.act, past.stamp.actor, past.stamp.at);
    }
    engine.stop_all(Duration::from_secs(5)).await;
    Ok(())
}

/// Makes real folders of declared ones.
struct Folders {
    store: Local,
    root: PathBuf,
    clock: Arc<SystemClock>,
}

#[async_trait]
impl Reconciler for Folders {
    async fn reconcile(&self, request: Request) -> Outcome {
        match self.make_it_so(&request.key).await {
            Ok(()) => Outcome::Done,
            Err(error) => Outcome::Transient(Failure::new(error.to_string())),
        }
    }
}

impl Folders {
    async fn make_it_so(&self, key: &ObjectKey) -> Result<()> {
        let by = By::actor("folders");
        let mut object = match self.store.get(key).await {
            Err(Error::NotFound { .. }) => return Ok(()),
            other => other?.decode(),
        };
        let path = self.root.join(object.name());
        if object.deleted_at().is_some() {
            remove(&path)?;
            object.remove_finalizer(FINALIZER);
            self.store.update(object, &by).await?;
            return Ok(());
        }
        // Taken hold of before anything is made: nothing is leaked, whenever we die.
        if object.add_finalizer(FINALIZER) {
            object = self.store.update(object, &by).await?.decode();
        }
        write(&path, object.spec()["note"].as_str().unwrap_or_default())?;
        let mut status = object.status().clone();
        let ready = Condition::new("Ready", Status::True, "Available", "the folder is there");
        condition::set(&mut status, ready.observed(object.generation()), self.clock.now());
        object.set("status", status);
        // Changes nothing if nothing has changed: an idle controller writes nothing.
        self.store.update_status(object, &by).await?;
        Ok(())
    }
}

fn write(path: &Path, note: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(path)?;
    std::fs::write(path.join("note.txt"), note)
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

async fn wait_until(
    events: &mut concert_store::Events,
    what: &str,
    count: usize,
    is_it: impl Fn(&Event) -> bool,
) -> Result<()> {
    let mut seen = 0;
    while seen < count {
        let event = events.next().await.ok_or("the watch has ended")??;
        if let Some(object) = event.object().filter(|_| is_it(&event)) {
            seen += 1;
            println!("{} is {what}", object.key().name);
        }
    }
    Ok(())
}

fn is_ready(object: &Object) -> bool {
    condition::find(object.status(), "Ready").is_some_and(|c| c.status == Status::True)
}

fn kind() -> GroupVersionKind {
    GroupKind::new("example.concert.dev", "Folder").at_version("v1")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(kind().group_kind, "default", name)
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "folders.example.concert.dev"},
        "spec": {"group": "example.concert.dev", "scope": "Namespaced",
            "names": {"plural": "folders", "kind": "Folder"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"note": {"type": "string", "maxLength": 1000}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}}}]},
    })
}
