//! Real servers and a real provider, for as long as a test runs.
#![allow(dead_code, unused_imports, reason = "each test program uses what it needs of it")]

mod postgres;
mod redis;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use concert_model::Object;
use concert_provider::{Call, Token};
use concert_provider_local::{DataFolder, Local, Postgres, Redis, Settings};
use concert_store::{Chance, SystemClock};
use futures_util::FutureExt as _;
use serde_json::{Value, json};

pub use postgres::{Cluster, account};
pub use redis::Talk;

pub const EXTERNAL_NAME: &str = "crossplane.io/external-name";

/// Whether a program is there. On CI all are, and their absence is a failure.
pub fn has(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("--version").output().is_ok();
    if !found {
        #[expect(clippy::disallowed_methods, reason = "a test asks where it runs")]
        let is_ci = std::env::var("CI").is_ok_and(|it| it == "true");
        assert!(!is_ci, "{program} is not installed: run scripts/services");
        eprintln!("skipped: {program} is not installed; scripts/services says how to have it");
    }
    found
}

pub fn settings() -> Settings {
    Settings {
        program: "redis-server".into(),
        ports: 20_000..=29_999,
        clock: Arc::new(SystemClock::new()),
        chance: Chance::from_system(),
    }
}

/// A provider in this process. What it started ends with it, unless it is left behind.
pub struct Stage {
    pub local: Arc<Local>,
    redis: Arc<Redis>,
    stops: bool,
}

impl Stage {
    pub fn open(folder: &Path) -> Self {
        Self::with(folder, settings())
    }

    pub fn with(folder: &Path, settings: Settings) -> Self {
        let data = DataFolder::open(folder).unwrap();
        let postgres = Postgres::open(&data, &settings.chance).unwrap();
        let redis = Arc::new(Redis::open(&data, settings).unwrap());
        // The folder's lock is not needed: each test has a folder of its own.
        Self { local: Arc::new(Local::new(redis.clone(), postgres)), redis, stops: true }
    }

    /// Ends the provider and lets its servers run.
    pub fn leave(mut self) {
        self.stops = false;
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.stops {
            return;
        }
        // On a thread of its own: a runtime cannot wait inside another.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(self.redis.stop_all());
            });
        });
    }
}

pub fn object(kind: &str, name: &str, fields: Value) -> Object {
    let metadata = json!({"name": name, "uid": format!("uid-{name}")});
    let whole = json!({"apiVersion": "local.concert.dev/v1alpha1", "kind": kind, "metadata": metadata,
        "spec": {"forProvider": fields}});
    Object::from_value(whole).unwrap()
}

/// The same object with other fields.
pub fn with_fields(object: &Object, fields: Value) -> Object {
    let mut object = object.clone();
    object.set("spec", json!({ "forProvider": fields }));
    object
}

pub fn token(text: &str) -> Token {
    Token(text.into())
}

pub fn call() -> Call {
    Call::within(Duration::from_secs(60))
}

/// Looks until something is so. For what happens in other processes, which tell nobody.
pub async fn until<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> T {
    until_or(|| look().map(|seen| seen.ok_or("it did not come to be"))).await
}

/// The same of something that has more to say while it is not so.
#[expect(clippy::disallowed_methods, reason = "a process of somebody else takes its own time")]
pub async fn until_or<T, E, F>(mut look: impl FnMut() -> F) -> T
where
    E: std::fmt::Display,
    F: Future<Output = Result<T, E>>,
{
    let mut last = None;
    for _ in 0..1500 {
        match look().await {
            Ok(found) => return found,
            Err(instead) => last = Some(instead),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("after 30 s: {}", last.expect("it was looked at"));
}
