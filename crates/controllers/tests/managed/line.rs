//! The line to a provider in the same process, which can be cut.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use concert_provider::{
    Call, Changes, Class, Configuration, Connector, Created, Deleted, Enumerate, Error, External, Founds,
    Handshake, InProcess, Lookup, Observation, Plan, Provider, Token, Updated,
};
use tokio::sync::watch;

type Result<T> = std::result::Result<T, Error>;

/// Where a line breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Connect,
    Watch,
    Observe,
    Create,
    Disconnect,
}

/// A [`Connector`] that fails where it is told to, and else passes everything on.
pub struct Line {
    inner: InProcess,
    breaks: Arc<Mutex<VecDeque<(At, Error)>>>,
    /// The fingerprints of the accounts it was connected with.
    accounts: Mutex<Vec<String>>,
    /// Why the provider cannot be reached, if it cannot.
    down: watch::Sender<Option<&'static str>>,
    /// Called before each observe.
    slow: Arc<Mutex<Option<Slow>>>,
}

type Slow = Box<dyn FnMut() + Send>;

impl Line {
    pub fn new(provider: Arc<dyn Provider>) -> Self {
        let (breaks, accounts, down) = (Arc::default(), Mutex::default(), watch::Sender::new(None));
        Self { inner: InProcess::new(provider), breaks, accounts, down, slow: Arc::default() }
    }

    /// What happens while the provider looks at a thing.
    pub fn while_observing(&self, slow: impl FnMut() + Send + 'static) {
        *self.slow.lock().unwrap() = Some(Box::new(slow));
    }

    /// The fingerprints of the accounts it was to connect with until now.
    pub fn accounts(&self) -> Vec<String> {
        self.accounts.lock().unwrap().clone()
    }

    /// The next call at this place fails, before it reaches the provider.
    pub fn breaks(&self, at: At, error: Error) {
        self.breaks.lock().unwrap().push_back((at, error));
    }

    /// Cuts the line for this reason, or mends it.
    pub fn cut(&self, why: Option<&'static str>) {
        self.down.send_replace(why);
    }

    fn check(&self) -> Result<()> {
        match *self.down.borrow() {
            Some(why) => Err(Error::new(Class::Unreachable, why)),
            None => Ok(()),
        }
    }
}

fn check(breaks: &Mutex<VecDeque<(At, Error)>>, at: At) -> Result<()> {
    let mut breaks = breaks.lock().unwrap();
    match breaks.front() {
        Some((place, _)) if *place == at => Err(breaks.pop_front().unwrap().1),
        _ => Ok(()),
    }
}

#[async_trait]
impl Connector for Line {
    async fn handshake(&self, call: &Call) -> Result<Handshake> {
        self.check()?;
        self.inner.handshake(call).await
    }

    async fn connect(
        &self,
        object: &Object,
        configuration: Option<&Arc<Configuration>>,
        call: &Call,
    ) -> Result<Box<dyn External>> {
        self.accounts.lock().unwrap().extend(configuration.map(|it| it.fingerprint.clone()));
        self.check()?;
        check(&self.breaks, At::Connect)?;
        let inner = self.inner.connect(object, configuration, call).await?;
        Ok(Box::new(Session { inner, breaks: self.breaks.clone(), slow: self.slow.clone() }))
    }

    async fn lost(&self) {
        let mut down = self.down.subscribe();
        if down.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        check(&self.breaks, At::Watch)?;
        self.inner.watch(kind).await
    }

    async fn enumerate(&self, what: &Enumerate, call: &Call) -> Result<Founds> {
        self.inner.enumerate(what, call).await
    }
}

struct Session {
    inner: Box<dyn External>,
    breaks: Arc<Mutex<VecDeque<(At, Error)>>>,
    slow: Arc<Mutex<Option<Slow>>>,
}

#[async_trait]
impl External for Session {
    async fn observe(&mut self, object: &Object, call: &Call) -> Result<Observation> {
        if let Some(slow) = &mut *self.slow.lock().unwrap() {
            slow();
        }
        check(&self.breaks, At::Observe)?;
        self.inner.observe(object, call).await
    }

    async fn validate(&mut self, object: &Object, call: &Call) -> Result<()> {
        self.inner.validate(object, call).await
    }

    async fn plan(&mut self, object: &Object, call: &Call) -> Result<Plan> {
        self.inner.plan(object, call).await
    }

    async fn create(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Created> {
        check(&self.breaks, At::Create)?;
        self.inner.create(object, token, call).await
    }

    async fn update(&mut self, object: &Object, call: &Call) -> Result<Updated> {
        self.inner.update(object, call).await
    }

    async fn delete(&mut self, object: &Object, call: &Call) -> Result<Deleted> {
        self.inner.delete(object, call).await
    }

    async fn lookup(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Lookup> {
        self.inner.lookup(object, token, call).await
    }

    async fn disconnect(self: Box<Self>, call: &Call) -> Result<()> {
        check(&self.breaks, At::Disconnect)?;
        self.inner.disconnect(call).await
    }
}
