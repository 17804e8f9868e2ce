//! On a database file, over a stop and a start.

use std::path::Path;

use concert_model::ObjectKey;
use concert_provider::{InProcess, Memory as MemoryProvider};
use concert_store::Delete;
use concert_store::backend::{Sqlite, sqlite};
use concert_store::seal::Keyring;

use super::*;
use crate::managed::{Controller, Running, Storage};

fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster(bucket().group_kind, name)
}

/// Opens the file while no reconciler has it.
fn open(path: &Path) -> Local {
    let chance = Chance::seeded(1);
    let keyring = Keyring::open(path.with_extension("key"), &chance).unwrap();
    let config = Config::new(Arc::new(SystemClock::new()), chance).sealed(keyring);
    Local::open(Arc::new(Sqlite::open(path, &sqlite::Options::default()).unwrap()), config).unwrap()
}

async fn start(path: &Path, provider: &Arc<MemoryProvider>) -> Running {
    let provider = provider.clone();
    let dial: Dial = Arc::new(move |_| Ok(Arc::new(InProcess::new(provider.clone()))));
    let loopback: Address = "127.0.0.1:0".parse().unwrap();
    let options = Options::new()
        .with_storage(Storage::File(path.to_owned()))
        .with_dial(dial)
        .with_metrics_address(loopback.clone())
        .with_health_address(loopback)
        .with_leader_election(false);
    Controller::new(config(), options).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_in_a_file_are_made_real_and_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("concert.db");
    let provider = Arc::new(MemoryProvider::new([bucket()]));
    {
        let store = open(&path);
        define_buckets(&store).await;
        let mut object = Object::new(&bucket(), "", "a");
        object.set("spec", json!({"forProvider": {"size": 1}}));
        store.create(object, &By::actor("test")).await.unwrap();
    }
    let running = start(&path, &provider).await;
    until("the thing is made", async || provider.names().len() == 1).await;
    running.stop().await;
    {
        let store = open(&path);
        let object = store.get(&key("a")).await.unwrap().decode();
        assert_eq!(object.annotation("crossplane.io/external-name"), Some(provider.names()[0].as_str()));
        store.delete(&key("a"), &Delete::default(), &By::actor("test")).await.unwrap();
        assert!(store.get(&key("a")).await.is_ok(), "it waits for its thing");
    }
    let running = start(&path, &provider).await;
    until("the thing is gone", async || provider.names().is_empty()).await;
    running.stop().await;
    // What is under way when it is told to stop is finished, so the object is gone with its thing.
    let store = open(&path);
    assert!(store.get(&key("a")).await.is_err_and(|it| matches!(it, concert_store::Error::NotFound { .. })));
}
