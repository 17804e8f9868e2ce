//! Stores over a PostgreSQL server, and what goes through them.
#![allow(dead_code, reason = "each test program uses what it needs of it")]

pub mod traffic;

use std::sync::Arc;

use concert_model::{Encoded, GroupKind, Object, ObjectKey};
use concert_store::backend::Postgres;
use concert_store::backend::postgres::{Address, Options, Trouble};
use concert_store::seal::Keyring;
use concert_store::{Chance, Config, Local, SystemClock};
use serde_json::json;

pub fn connect(url: &str) -> Result<Arc<Postgres>, Trouble> {
    let options = Options::new(Arc::new(SystemClock::new()), Chance::from_system());
    Postgres::open(&Address::parse(url)?, options).map(Arc::new)
}

/// A store that seals as all replicas do.
pub fn open(url: &str, keyring: &Keyring) -> Local {
    let config = Config::new(Arc::new(SystemClock::new()), Chance::from_system()).sealed(keyring.clone());
    Local::open(connect(url).unwrap(), config).unwrap()
}

pub fn keyring() -> Keyring {
    Keyring::in_memory(&Chance::from_system())
}

pub fn maps() -> GroupKind {
    GroupKind::new("", "ConfigMap")
}

pub fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(maps(), "default", name)
}

pub fn map(name: &str, value: &str) -> Object {
    let mut object = Object::new(&maps().at_version("v1"), "default", name);
    object.set("data", json!({ "value": value }));
    object
}

/// One write, as it is acknowledged and as it is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    pub revision: u64,
    pub name: String,
    pub value: String,
}

impl Written {
    pub fn of(object: &Encoded) -> Self {
        let value = object.decode().get("data")["value"].as_str().unwrap_or_default().to_owned();
        let revision = object.resource_version().0.parse().unwrap();
        Self { revision, name: object.key().name.to_string(), value }
    }
}
