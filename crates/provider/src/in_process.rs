//! A provider in the same process: the contract without a network, for tests and simulation.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use futures_util::future::{BoxFuture, Either, select};

use crate::alpha::delta::sent;
use crate::answer::{Created, Deleted, Lookup, Observation, Plan, Updated};
use crate::contract::{
    Call, Changes, Configuration, Connector, Enumerate, External, Founds, Provider, Result, Token,
};
use crate::error::{Class, Error};
use crate::handshake::Handshake;
use crate::server::host::Host;

/// Completes after a time; how a simulation brings its own.
pub type Timer = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// A [`Connector`] to a [`Provider`] in the same process, with the guards that a server has.
#[derive(Clone)]
pub struct InProcess {
    host: Arc<Host>,
    timer: Option<Timer>,
}

impl InProcess {
    /// Calls `provider` directly. Calls take as long as they take; see [`InProcess::timer`].
    pub fn new(provider: Arc<dyn Provider>) -> Self {
        Self { host: Arc::new(Host::new(provider)), timer: None }
    }

    /// Gives up on calls that take too long, by this clock. A mutation that is given up on is dropped
    /// where it stands.
    #[must_use]
    pub fn timer(mut self, timer: Timer) -> Self {
        self.timer = Some(timer);
        self
    }

    async fn within<T>(
        &self,
        call: &Call,
        is_write: bool,
        work: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let Some(timer) = &self.timer else { return work.await };
        match select(std::pin::pin!(work), timer(call.timeout)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => {
                let error = Error::new(Class::Transient, "the provider did not answer in time");
                Err(if is_write { error.in_doubt() } else { error })
            }
        }
    }

    async fn account(&self, configuration: Option<&Arc<Configuration>>) -> Result<()> {
        let Some(configuration) = configuration else { return Ok(()) };
        if self.host.account("", &configuration.name, &configuration.fingerprint).is_ok() {
            return Ok(());
        }
        self.host.configure("", Configuration::clone(configuration)).await
    }
}

#[async_trait]
impl Connector for InProcess {
    async fn handshake(&self, _: &Call) -> Result<Handshake> {
        Ok(self.host.handshake())
    }

    async fn connect(
        &self,
        object: &Object,
        configuration: Option<&Arc<Configuration>>,
        call: &Call,
    ) -> Result<Box<dyn External>> {
        let kind = object.gvk().map_err(|e| Error::new(Class::Misbehaved, e.to_string()))?;
        self.host.serves(&kind)?;
        self.within(call, false, self.account(configuration)).await?;
        Ok(Box::new(Session { to: self.clone(), account: configuration.cloned() }))
    }

    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        self.host.serves(kind)?;
        self.host.provider.watch(kind).await
    }

    async fn enumerate(&self, what: &Enumerate, call: &Call) -> Result<Founds> {
        self.host.serves(&what.kind)?;
        self.within(call, false, self.account(what.configuration.as_ref())).await?;
        self.within(call, false, self.host.provider.enumerate(what)).await
    }
}

struct Session {
    to: InProcess,
    account: Option<Arc<Configuration>>,
}

impl Session {
    fn provider(&self) -> &dyn Provider {
        &*self.to.host.provider
    }
}

#[async_trait]
impl External for Session {
    async fn observe(&mut self, object: &Object, call: &Call) -> Result<Observation> {
        let object = sent(object);
        self.to.within(call, false, self.provider().observe(&object, self.account.as_deref())).await
    }

    async fn validate(&mut self, object: &Object, call: &Call) -> Result<()> {
        let object = sent(object);
        self.to.within(call, false, self.provider().validate(&object)).await
    }

    async fn plan(&mut self, object: &Object, call: &Call) -> Result<Plan> {
        let object = sent(object);
        self.to.within(call, false, self.provider().plan(&object, self.account.as_deref())).await
    }

    async fn create(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Created> {
        let object = sent(object);
        self.to.host.admit(&object, call)?;
        self.to
            .within(call, true, self.provider().create(&object, self.account.as_deref(), token, call))
            .await
    }

    async fn update(&mut self, object: &Object, call: &Call) -> Result<Updated> {
        let object = sent(object);
        self.to.host.admit(&object, call)?;
        self.to.within(call, true, self.provider().update(&object, self.account.as_deref(), call)).await
    }

    async fn delete(&mut self, object: &Object, call: &Call) -> Result<Deleted> {
        let object = sent(object);
        self.to.host.admit(&object, call)?;
        self.to.within(call, true, self.provider().delete(&object, self.account.as_deref(), call)).await
    }

    async fn lookup(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Lookup> {
        let object = sent(object);
        self.to.within(call, false, self.provider().lookup(&object, self.account.as_deref(), token)).await
    }

    async fn disconnect(self: Box<Self>, _: &Call) -> Result<()> {
        Ok(())
    }
}
