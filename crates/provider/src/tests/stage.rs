//! A server on a free port, objects, and a provider that can be told to hang.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::alpha::EXTERNAL_NAME;
use crate::client::{self, Client, Endpoint};
use crate::server::Server;
use crate::*;

pub(crate) type Result<T> = std::result::Result<T, Error>;

pub(crate) fn bucket() -> GroupVersionKind {
    GroupVersionKind::parse("example.dev/v1", "Bucket").unwrap()
}

pub(crate) fn object(name: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "example.dev/v1", "kind": "Bucket",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "managedFields": [{"manager": "x"}]},
        "spec": {"forProvider": {"size": 3}},
    }))
    .unwrap()
}

/// The object after its create.
pub(crate) fn named(mut object: Object, delta: &Delta) -> Object {
    object.set_annotation(EXTERNAL_NAME, delta.external_name.as_deref().unwrap());
    object
}

pub(crate) fn call() -> Call {
    Call::within(Duration::from_secs(10))
}

pub(crate) fn token(text: &str) -> Token {
    Token(text.into())
}

pub(crate) fn account() -> Arc<Configuration> {
    let kind = GroupVersionKind::parse("example.dev/v1", "ProviderConfig").unwrap();
    Arc::new(Configuration {
        name: "default".into(),
        fingerprint: "1".into(),
        object: Object::new(&kind, "", "default"),
        credentials: Details::new().with("key", "secret"),
    })
}

/// A server that ends when told to.
pub(crate) struct Running {
    pub(crate) address: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<()>>,
}

impl Running {
    pub(crate) async fn start(server: Server) -> Self {
        let bound = server.bind().await.unwrap();
        let address = bound.address().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(bound.serve(async { drop(stopped.await) }));
        let serving =
            tokio::runtime::Handle::current().spawn(async move { tasks.join_next().await.unwrap().unwrap() });
        Self { address, stop, serving }
    }

    pub(crate) async fn of(provider: Arc<dyn Provider>) -> Self {
        Self::start(Server::new(provider).address("127.0.0.1:0")).await
    }

    pub(crate) fn client(&self) -> Client {
        client::connect(Endpoint::new(&self.address)).unwrap()
    }

    pub(crate) fn client_of(&self, protocol: Protocol) -> Client {
        let endpoint = Endpoint { protocol: Some(protocol), ..Endpoint::new(&self.address) };
        client::connect(endpoint).unwrap()
    }

    pub(crate) async fn stop(self) -> Result<()> {
        drop(self.stop);
        self.serving.await.unwrap()
    }
}

/// Passes calls on, but those about objects called `hang` only when let go.
pub(crate) struct Hanging {
    pub(crate) inner: Memory,
    pub(crate) entered: Semaphore,
    pub(crate) gate: Semaphore,
}

impl Hanging {
    pub(crate) fn new() -> Arc<Self> {
        let (entered, gate) = (Semaphore::new(0), Semaphore::new(0));
        Arc::new(Self { inner: Memory::new([bucket()]), entered, gate })
    }

    async fn wait(&self, object: &Object) {
        if object.name() == "hang" {
            self.entered.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
        }
    }
}

#[async_trait]
impl Provider for Hanging {
    fn handshake(&self) -> Handshake {
        self.inner.handshake()
    }

    async fn observe(&self, object: &Object, account: Option<&Configuration>) -> Result<Observation> {
        self.wait(object).await;
        self.inner.observe(object, account).await
    }

    async fn plan(&self, object: &Object, account: Option<&Configuration>) -> Result<Plan> {
        self.inner.plan(object, account).await
    }

    async fn create(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
        call: &Call,
    ) -> Result<Created> {
        self.wait(object).await;
        self.inner.create(object, account, token, call).await
    }

    async fn update(&self, object: &Object, account: Option<&Configuration>, call: &Call) -> Result<Updated> {
        self.inner.update(object, account, call).await
    }

    async fn delete(&self, object: &Object, account: Option<&Configuration>, call: &Call) -> Result<Deleted> {
        self.inner.delete(object, account, call).await
    }
}
