//! The way to a provider: calls travel by themselves, land late, and their answers get lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use concert_provider::{
    Call, Changes, Class, Configuration, Connector, Created, Deleted, Effect, Enumerate, Error, External,
    Founds, Handshake, InProcess, Lookup, Observation, Plan, Token, Updated,
};
use concert_store::{Chance, Clock};
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::Bug;
use crate::executor::{Executor, Group};
use crate::faults::{Fault, Weather};

/// The group that calls in flight belong to: nobody kills it.
const EARTH: Group = Group(u32::MAX);

type Result<T> = std::result::Result<T, Error>;

/// A provider at the other end of a bad connection.
#[derive(Clone)]
pub struct Wire {
    /// The provider itself.
    pub provider: Arc<InProcess>,
    /// Runs what is under way.
    pub executor: Executor,
    /// Decides what is lost.
    pub chance: Chance,
    /// Whether anything is.
    pub weather: Weather,
    /// Whether the provider knows nothing of tokens, as the older protocol does not.
    pub is_blind: bool,
    /// What is wrong on purpose.
    pub bug: Option<Bug>,
    /// Counts calls.
    pub calls: Arc<AtomicU64>,
}

impl Wire {
    /// Sends a call on its way. Once sent it lands, whatever becomes of the caller.
    async fn send<T: Send + 'static>(
        &self,
        call: &Call,
        is_write: bool,
        work: impl FnOnce(Arc<InProcess>) -> BoxFuture<'static, Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.weather.strikes(Fault::LostRequest, 0.04, &self.chance) {
            self.executor.sleep(self.travel()).await;
            return Err(Error::new(Class::Unreachable, "connection refused"));
        }
        let (sender, answer) = oneshot::channel();
        let (there, back) = (self.travel(), self.travel());
        let is_lost = self.weather.strikes(Fault::LostAnswer, 0.06, &self.chance);
        let (executor, provider) = (self.executor.clone(), self.provider.clone());
        self.executor.spawn(
            EARTH,
            Box::pin(async move {
                executor.sleep(there).await;
                let result = work(provider).await;
                executor.sleep(back).await;
                if !is_lost {
                    // Fails if the caller has died or given up.
                    let _ = sender.send(result);
                }
            }),
        );
        let in_doubt = |text: &str| {
            let error = Error::new(Class::Unreachable, text);
            if is_write { error.in_doubt() } else { error }
        };
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_else(|_| Err(in_doubt("the connection broke"))),
            () = self.executor.sleep(call.timeout) => Err(in_doubt("no answer in time")),
        }
    }

    fn travel(&self) -> Duration {
        let is_slow = self.weather.strikes(Fault::Late, 0.08, &self.chance);
        Duration::from_millis(self.chance.below(if is_slow { 50_000 } else { 20 }))
    }
}

#[async_trait]
impl Connector for Wire {
    async fn handshake(&self, call: &Call) -> Result<Handshake> {
        let inner = call.clone();
        let work = move |it: Arc<InProcess>| -> BoxFuture<'static, Result<Handshake>> {
            Box::pin(async move { it.handshake(&inner).await })
        };
        let mut handshake = self.send(call, false, work).await?;
        handshake.capabilities.lookup &= !self.is_blind;
        // Nothing is pushed here: what is seen is seen by polling, which must be enough.
        handshake.capabilities.watch = false;
        Ok(handshake)
    }

    async fn connect(
        &self,
        object: &Object,
        configuration: Option<&Arc<Configuration>>,
        call: &Call,
    ) -> Result<Box<dyn External>> {
        let (object, configuration, inner) = (object.clone(), configuration.cloned(), call.clone());
        let again = (object.clone(), configuration.clone());
        let work = move |it: Arc<InProcess>| -> BoxFuture<'static, Result<()>> {
            Box::pin(async move { it.connect(&object, configuration.as_ref(), &inner).await.map(drop) })
        };
        self.send(call, false, work).await?;
        Ok(Box::new(Session { wire: self.clone(), object: again.0, configuration: again.1 }))
    }

    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        Err(Error::new(Class::NotServed, format!("changes of {kind} are not pushed")))
    }

    async fn enumerate(&self, what: &Enumerate, call: &Call) -> Result<Founds> {
        self.provider.enumerate(what, call).await
    }
}

struct Session {
    wire: Wire,
    object: Object,
    configuration: Option<Arc<Configuration>>,
}

impl Session {
    async fn send<T: Send + 'static>(
        &self,
        call: &Call,
        is_write: bool,
        work: impl FnOnce(Box<dyn External>) -> BoxFuture<'static, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (object, configuration) = (self.object.clone(), self.configuration.clone());
        let inner = call.clone();
        let whole = move |it: Arc<InProcess>| -> BoxFuture<'static, Result<T>> {
            Box::pin(async move {
                let session = it.connect(&object, configuration.as_ref(), &inner).await?;
                work(session).await
            })
        };
        self.wire.send(call, is_write, whole).await
    }
}

#[async_trait]
impl External for Session {
    async fn observe(&mut self, object: &Object, call: &Call) -> Result<Observation> {
        let (object, inner) = (object.clone(), call.clone());
        self.send(call, false, move |mut it| Box::pin(async move { it.observe(&object, &inner).await })).await
    }

    async fn plan(&mut self, object: &Object, call: &Call) -> Result<Plan> {
        let (object, inner) = (object.clone(), call.clone());
        self.send(call, false, move |mut it| Box::pin(async move { it.plan(&object, &inner).await })).await
    }

    async fn create(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Created> {
        let (object, token, inner) = (object.clone(), token.clone(), call.clone());
        let work = move |mut it: Box<dyn External>| -> BoxFuture<'static, Result<Created>> {
            Box::pin(async move { it.create(&object, &token, &inner).await })
        };
        let denies = self.wire.bug == Some(Bug::DeniesDoubt);
        let told = |error: Error| if denies { Error { effect: Effect::None, ..error } } else { error };
        self.send(call, true, work).await.map_err(told)
    }

    async fn update(&mut self, object: &Object, call: &Call) -> Result<Updated> {
        let (object, inner) = (object.clone(), call.clone());
        self.send(call, true, move |mut it| Box::pin(async move { it.update(&object, &inner).await })).await
    }

    async fn delete(&mut self, object: &Object, call: &Call) -> Result<Deleted> {
        let (object, inner) = (object.clone(), call.clone());
        self.send(call, true, move |mut it| Box::pin(async move { it.delete(&object, &inner).await })).await
    }

    async fn lookup(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Lookup> {
        if self.wire.is_blind {
            return Ok(Lookup::Unknown);
        }
        if self.wire.bug == Some(Bug::FindsNothing) {
            return Ok(Lookup::CertainlyNone);
        }
        let (object, token, inner) = (object.clone(), token.clone(), call.clone());
        let work = move |mut it: Box<dyn External>| -> BoxFuture<'static, Result<Lookup>> {
            Box::pin(async move { it.lookup(&object, &token, &inner).await })
        };
        self.send(call, false, work).await
    }

    async fn disconnect(self: Box<Self>, _: &Call) -> Result<()> {
        Ok(())
    }
}
