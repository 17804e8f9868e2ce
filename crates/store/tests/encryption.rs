//! What lies on the disk: sealed payloads, and no keys.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::backend::{Backend, Sqlite, sqlite};
use concert_store::local::AttemptRecord;
use concert_store::seal::Keyring;
use concert_store::{By, Chance, Config, Error, ItemKey, Local, Result, Store, SystemClock, Work};
use serde_json::json;

const CANARY: &str = "canary-in-a-coal-mine";

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn backend(&self) -> Arc<Sqlite> {
        Arc::new(Sqlite::open(self.path("store.db"), &sqlite::Options::default()).unwrap())
    }

    fn open_with(&self, keys: Option<&str>) -> Result<Local> {
        open(self.backend(), keys.map(|keys| self.path(keys)))
    }

    fn open(&self) -> Local {
        self.open_with(Some("store.key")).unwrap()
    }

    /// The files of the store in which `text` can be found.
    fn holding(&self, text: &str) -> Vec<String> {
        let files = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> = files
            .filter(|path| contains(path, text))
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }
}

fn contains(path: &Path, text: &str) -> bool {
    fs::read(path).unwrap().windows(text.len()).any(|window| window == text.as_bytes())
}

fn open(backend: Arc<dyn Backend>, keys: Option<PathBuf>) -> Result<Local> {
    let chance = Chance::from_system();
    let config = Config::new(Arc::new(SystemClock::new()), chance.clone());
    let config = match keys {
        Some(path) => config.sealed(Keyring::open(path, &chance).unwrap()),
        None => config,
    };
    Local::open(backend, config)
}

fn key() -> ObjectKey {
    ObjectKey::namespaced(GroupKind::new("", "Secret"), "default", "a")
}

async fn write_canaries(store: &Local) {
    let by = By::actor("test");
    let mut secret = Object::new(&GroupKind::new("", "Secret").at_version("v1"), "default", "a");
    secret.set("stringData", json!({"password": CANARY}));
    secret.set_metadata("annotations", json!({"last-applied": CANARY}));
    secret.set_metadata("labels", json!({"clear": "label-in-clear"}));
    let mut stored = store.create(secret, &by).await.unwrap().decode();
    stored.set_metadata("annotations", json!({"last-applied": format!("{CANARY} again")}));
    store.update(stored, &by).await.unwrap();
    let item = ItemKey { controller: "test".into(), item: "a".into() };
    store.claim(&item, 0, CANARY.into()).await.unwrap();
    let record = AttemptRecord {
        attempt: 1,
        generation: 1,
        outcome: "failed".into(),
        message: CANARY.into(),
        reasons: vec![CANARY.into()],
        duration: std::time::Duration::ZERO,
        details: json!({"d": CANARY}),
    };
    store.record_attempt(&item, &record).await.unwrap();
}

/// `canary-in-a-coal-mine` as a Secret holds it.
const CANARY_BASE64: &str = "Y2FuYXJ5LWluLWEtY29hbC1taW5l";

#[tokio::test]
async fn payloads_are_sealed_in_every_file_and_labels_are_clear() {
    let place = Place::new();
    let store = place.open();
    write_canaries(&store).await;
    // Open, with everything in the write-ahead log.
    assert!(place.path("store.db-wal").exists());
    for text in [CANARY, CANARY_BASE64] {
        assert_eq!(place.holding(text), Vec::<String>::new());
    }
    assert!(!place.holding("label-in-clear").is_empty());
    drop(store);
    // Closed, with everything in the file.
    for text in [CANARY, CANARY_BASE64] {
        assert_eq!(place.holding(text), Vec::<String>::new());
    }
    assert_eq!(place.holding("label-in-clear"), ["store.db"]);
    let data = place.open().get(&key()).await.unwrap().decode().get("data").clone();
    assert_eq!(data, json!({"password": CANARY_BASE64}));
}

#[tokio::test]
async fn without_keys_payloads_are_in_clear() {
    // The test of the tests above: the canary can be found where it is.
    let place = Place::new();
    let store = place.open_with(None).unwrap();
    write_canaries(&store).await;
    assert!(!place.holding(CANARY).is_empty());
}

#[tokio::test]
async fn missing_and_wrong_keys_are_told_when_the_store_is_opened() {
    let place = Place::new();
    let store = place.open();
    write_canaries(&store).await;
    drop(store);
    let told = |result: Result<Local>| {
        let Err(Error::Unavailable(source)) = result else { panic!("opened") };
        let source: &dyn std::error::Error = &*source;
        std::iter::successors(Some(source), |error| error.source())
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ")
    };
    let without = told(place.open_with(None));
    assert!(without.contains("key 1 is not in the key file"), "{without}");
    let wrong = told(place.open_with(Some("other.key")));
    assert!(wrong.contains("cannot open the payload"), "{wrong}");
    place.open().get(&key()).await.unwrap();
}

#[tokio::test]
async fn a_clear_store_is_not_taken_for_an_encrypted_one() {
    let place = Place::new();
    drop(place.open_with(None).unwrap());
    assert!(place.open_with(Some("store.key")).is_err());
    place.open_with(None).unwrap();
}

#[tokio::test]
async fn after_a_rotation_the_old_key_opens_nothing() {
    let place = Place::new();
    let store = place.open();
    write_canaries(&store).await;
    fs::copy(place.path("store.key"), place.path("old.key")).unwrap();
    store.rotate_keys().await.unwrap();
    write_more(&store).await;
    drop(store);
    assert!(place.open_with(Some("old.key")).is_err());
    let store = place.open();
    assert!(store.verify().await.unwrap() > 1);
    assert_eq!(store.history(&key(), None, 10).await.unwrap().len(), 2);
    let numbers = Keyring::open(place.path("store.key"), &Chance::from_system()).unwrap().numbers();
    assert_eq!(numbers, [2]);
}

async fn write_more(store: &Local) {
    let mut map = Object::new(&GroupKind::new("", "ConfigMap").at_version("v1"), "default", "more");
    map.set("data", json!({"a": "b"}));
    store.create(map, &By::actor("test")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_change_while_writers_run() {
    let place = Place::new();
    let store = place.open();
    let mut writers = tokio::task::JoinSet::new();
    for task in 0..4 {
        let store = store.clone();
        writers.spawn(async move {
            for i in 0..50 {
                let name = format!("w{task}-{i}");
                let mut map =
                    Object::new(&GroupKind::new("", "ConfigMap").at_version("v1"), "default", &name);
                map.set("data", json!({"text": CANARY}));
                let stored = store.create(map, &By::actor("test")).await.unwrap();
                assert_eq!(store.get(stored.key()).await.unwrap(), stored);
            }
        });
    }
    for _ in 0..10 {
        store.rotate_keys().await.unwrap();
    }
    writers.join_all().await;
    store.rotate_keys().await.unwrap();
    drop(store);
    assert_eq!(place.holding(CANARY), Vec::<String>::new());
    // 200 maps and the namespace.
    assert_eq!(place.open().verify().await.unwrap(), 201);
}

#[tokio::test]
async fn a_backup_holds_no_keys() {
    let place = Place::new();
    let backend = place.backend();
    let store = open(backend.clone(), Some(place.path("store.key"))).unwrap();
    write_canaries(&store).await;
    backend.backup_to(&place.path("copy.db")).unwrap();
    let keys = fs::read_to_string(place.path("store.key")).unwrap();
    let secret = keys.lines().nth(1).unwrap().split_once(' ').unwrap().1;
    let bytes: Vec<u8> =
        (0..32).map(|i| u8::from_str_radix(&secret[2 * i..2 * i + 2], 16).unwrap()).collect();
    let copy = fs::read(place.path("copy.db")).unwrap();
    assert!(!contains(&place.path("copy.db"), secret));
    assert!(!copy.windows(32).any(|window| window == bytes));
    assert!(!contains(&place.path("copy.db"), CANARY));
    // With the key it is a store like any other; a second copy does not overwrite it.
    assert!(backend.backup_to(&place.path("copy.db")).is_err());
    let copy = Sqlite::open(place.path("copy.db"), &sqlite::Options::default()).unwrap();
    let copy = open(Arc::new(copy), Some(place.path("store.key"))).unwrap();
    assert_eq!(copy.get(&key()).await.unwrap(), store.get(&key()).await.unwrap());
}
