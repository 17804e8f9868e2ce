//! The whole on the embedded store, with providers in the same process.

mod file;
mod leading;
mod logging;
mod objects;
mod probes;
mod refusals;
mod tls;
mod upkeep;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{GroupKind, GroupVersionKind, Object};
use concert_provider::{
    Call, Capabilities, Changes, Class, Configuration, Connector, Enumerate, Error, External, Founds,
    Handshake, Protocol, Served,
};
use concert_store::backend::memory::Memory;
use concert_store::{By, Chance, Clock, Config, Local, Store, SystemClock};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::admin::Address;

use super::{ControllerConfig, Dial, Options, ProviderConfig, ResourceType};

/// A provider in the same process. Serves what its endpoint says: `down` is one that does not answer.
#[derive(Clone, Default)]
struct Cloud(Arc<Mutex<Vec<String>>>);

struct Way {
    endpoint: String,
    down: Arc<Mutex<Vec<String>>>,
}

impl Cloud {
    fn dial(&self) -> Dial {
        let down = self.0.clone();
        Arc::new(move |config| Ok(Arc::new(Way { endpoint: config.endpoint.clone(), down: down.clone() })))
    }

    fn take_down(&self, endpoint: &str) {
        self.0.lock().unwrap().push(endpoint.to_owned());
    }

    fn bring_up(&self) {
        self.0.lock().unwrap().clear();
    }
}

#[async_trait]
impl Connector for Way {
    async fn handshake(&self, _: &Call) -> Result<Handshake, Error> {
        if self.down.lock().unwrap().contains(&self.endpoint) {
            return Err(Error::new(Class::Unreachable, "connection refused"));
        }
        Ok(Handshake {
            protocol: Protocol::V1,
            name: "cloud".into(),
            version: "1.2.3".into(),
            capabilities: Capabilities::default(),
            kinds: vec![Served::new(bucket())],
            refused: Vec::new(),
        })
    }

    async fn connect(
        &self,
        _: &Object,
        _: Option<&Arc<Configuration>>,
        call: &Call,
    ) -> Result<Box<dyn External>, Error> {
        Err(Error::new(Class::Unreachable, format!("nobody was there within {:?}", call.timeout)))
    }

    async fn watch(&self, _: &GroupVersionKind) -> Result<Changes, Error> {
        Err(Error::new(Class::NotServed, "no pushes"))
    }

    async fn enumerate(&self, _: &Enumerate, _: &Call) -> Result<Founds, Error> {
        Err(Error::new(Class::NotServed, "no lists"))
    }
}

fn bucket() -> GroupVersionKind {
    GroupKind::new("example.com", "Bucket").at_version("v1")
}

fn store() -> Arc<Local> {
    let config = Config::new(Arc::new(SystemClock::new()), Chance::seeded(1));
    Arc::new(Local::open(Arc::new(Memory::new()), config).unwrap())
}

/// Defines the kind that the cloud serves.
async fn define_buckets(store: &dyn Store) {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "buckets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "buckets", "kind": "Bucket"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}}}]},
    });
    store.create(Object::from_value(definition).unwrap(), &By::actor("test")).await.unwrap();
}

/// One provider called `a`, for buckets.
fn config() -> ControllerConfig {
    let kind = ResourceType {
        api_version: "example.com/v1".into(),
        kind: "Bucket".into(),
        ..ResourceType::default()
    };
    let provider = ProviderConfig {
        name: "a".into(),
        endpoint: "a:1".into(),
        resource_types: vec![kind],
        ..ProviderConfig::default()
    };
    ControllerConfig { providers: vec![provider] }
}

/// On loopback, any port, and the store.
fn options(store: &Arc<Local>, cloud: &Cloud) -> Options {
    let loopback: Address = "127.0.0.1:0".parse().unwrap();
    Options::new()
        .with_store(store.clone(), Some(store.clone()))
        .with_dial(cloud.dial())
        .with_metrics_address(loopback.clone())
        .with_health_address(loopback)
        .with_patience(Duration::from_secs(5))
        .with_lease_times(Duration::from_secs(2), Duration::from_secs(1), Duration::from_millis(100))
}

/// Status and body of a GET.
async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Waits until `is_it` says so; the test fails if it never does.
async fn until(what: &str, mut is_it: impl AsyncFnMut() -> bool) {
    let clock = SystemClock::new();
    while !is_it().await {
        assert!(clock.elapsed() < Duration::from_secs(60), "never: {what}");
        clock.sleep(Duration::from_millis(20)).await;
    }
}
