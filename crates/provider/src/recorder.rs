//! What a provider was asked and what it answered, for tests of providers and of their callers.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};

use crate::answer::{Created, Deleted, Lookup, Observation, Plan, Updated};
use crate::contract::{Call, Changes, Configuration, Enumerate, Founds, Provider, Result, Token};
use crate::handshake::Handshake;

/// One call, once it was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The object it was about; for configure, the ProviderConfig.
    pub object: Object,
    /// The name of the account, where there was one.
    pub account: Option<String>,
    /// What was asked and answered.
    pub event: Event,
}

/// What was asked and answered.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is the method of the same name")]
pub enum Event {
    Validate(Result<()>),
    Configure(Result<()>),
    Observe(Result<Observation>),
    Plan(Result<Plan>),
    Create(Token, Call, Result<Created>),
    Update(Call, Result<Updated>),
    Delete(Call, Result<Deleted>),
    Lookup(Token, Result<Lookup>),
}

/// A [`Provider`] that passes every call on and remembers it. Never remembers credentials.
pub struct Recorder {
    inner: Arc<dyn Provider>,
    records: Mutex<Vec<Record>>,
}

impl Recorder {
    /// Records the calls to `inner`.
    pub fn new(inner: Arc<dyn Provider>) -> Self {
        Self { inner, records: Mutex::default() }
    }

    /// All calls so far, in the order in which they were answered.
    pub fn records(&self) -> Vec<Record> {
        self.records.lock().expect("nobody panics with the records in hand").clone()
    }

    /// The same, and forgets them.
    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut *self.records.lock().expect("nobody panics with the records in hand"))
    }

    fn note(&self, object: &Object, account: Option<&Configuration>, event: Event) {
        let record = Record { object: object.clone(), account: account.map(|it| it.name.clone()), event };
        self.records.lock().expect("nobody panics with the records in hand").push(record);
    }
}

#[async_trait]
impl Provider for Recorder {
    fn handshake(&self) -> Handshake {
        self.inner.handshake()
    }

    async fn validate(&self, object: &Object) -> Result<()> {
        let result = self.inner.validate(object).await;
        self.note(object, None, Event::Validate(result.clone()));
        result
    }

    async fn configure(&self, configuration: &Configuration) -> Result<()> {
        let result = self.inner.configure(configuration).await;
        self.note(&configuration.object, Some(configuration), Event::Configure(result.clone()));
        result
    }

    async fn observe(&self, object: &Object, account: Option<&Configuration>) -> Result<Observation> {
        let result = self.inner.observe(object, account).await;
        self.note(object, account, Event::Observe(result.clone()));
        result
    }

    async fn plan(&self, object: &Object, account: Option<&Configuration>) -> Result<Plan> {
        let result = self.inner.plan(object, account).await;
        self.note(object, account, Event::Plan(result.clone()));
        result
    }

    async fn create(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
        call: &Call,
    ) -> Result<Created> {
        let result = self.inner.create(object, account, token, call).await;
        self.note(object, account, Event::Create(token.clone(), call.clone(), result.clone()));
        result
    }

    async fn update(&self, object: &Object, account: Option<&Configuration>, call: &Call) -> Result<Updated> {
        let result = self.inner.update(object, account, call).await;
        self.note(object, account, Event::Update(call.clone(), result.clone()));
        result
    }

    async fn delete(&self, object: &Object, account: Option<&Configuration>, call: &Call) -> Result<Deleted> {
        let result = self.inner.delete(object, account, call).await;
        self.note(object, account, Event::Delete(call.clone(), result.clone()));
        result
    }

    async fn lookup(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
    ) -> Result<Lookup> {
        let result = self.inner.lookup(object, account, token).await;
        self.note(object, account, Event::Lookup(token.clone(), result.clone()));
        result
    }

    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        self.inner.watch(kind).await
    }

    async fn enumerate(&self, what: &Enumerate) -> Result<Founds> {
        self.inner.enumerate(what).await
    }
}
