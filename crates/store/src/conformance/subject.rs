//! The store under test.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use concert_model::{GroupKind, Object};
use serde_json::json;

use super::widgets::{Definition, Widgets};
use super::{HandClock, Spread};
use crate::backend::Backend;
use crate::chance::Chance;
use crate::clock::{Clock, SystemClock};
use crate::contract::{By, Store};
use crate::local::{Config, Local};
use crate::seal::Keyring;

/// Any store, and a supply of names that no other run has used.
pub struct Subject {
    /// The store.
    pub store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    run: String,
    names: AtomicUsize,
    /// What the store needs to work, such as the process of a server.
    _alive: Option<Arc<dyn Any + Send + Sync>>,
}

impl Subject {
    /// A store that may be shared with other runs: all names are made up afresh.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let run = format!("{:08x}", Chance::from_system().bits() & 0xffff_ffff);
        Self { store, clock: Arc::new(SystemClock::new()), run, names: AtomicUsize::new(0), _alive: None }
    }

    /// The same; whatever the store needs is kept for as long.
    #[must_use]
    pub fn keeping(mut self, alive: Arc<dyn Any + Send + Sync>) -> Self {
        self._alive = Some(alive);
        self
    }

    /// A name that nobody has used.
    pub fn unique(&self, stem: &str) -> String {
        format!("{stem}-{}-{}", self.run, self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// Waits a moment where a store catches up with itself: our own never need it.
    pub(super) async fn moment(&self) {
        self.clock.sleep(std::time::Duration::from_millis(20)).await;
    }

    /// A fresh namespace.
    pub async fn namespace(&self) -> Arc<str> {
        let name = self.unique("space");
        let mut object = Object::new(&GroupKind::new("", "Namespace").at_version("v1"), "", &name);
        object.set_metadata("labels", json!({"conformance": &self.run}));
        self.store.create(object, &By::actor("suite")).await.unwrap();
        name.into()
    }

    /// A fresh kind with the usual schema, and a namespace for its objects.
    pub async fn widgets(&self) -> Widgets {
        self.widgets_of(Definition::usual()).await
    }

    /// A fresh kind as `definition` says, and a namespace for its objects.
    pub async fn widgets_of(&self, definition: Definition) -> Widgets {
        let namespace = if definition.is_namespaced() { self.namespace().await } else { "".into() };
        Widgets::define(self, definition, namespace).await
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }
}

/// A store of our own over some backend, encrypted, on a clock moved by hand.
pub struct Own {
    /// The store, as any store.
    pub subject: Subject,
    /// The store, as ours.
    pub store: Local,
    /// Its clock.
    pub clock: Arc<HandClock>,
    /// Its keys.
    pub keyring: Keyring,
    open: Open,
    replicas: usize,
}

type Open = Box<dyn Fn() -> Arc<dyn Backend> + Send + Sync>;

impl Own {
    /// A store over the backend that `open` opens, and opens again with the same contents.
    pub fn new(open: impl Fn() -> Arc<dyn Backend> + Send + Sync + 'static) -> Self {
        Self::replicated(1, open)
    }

    /// The same, as one of several stores over the same contents: the subject goes to another with each call.
    pub fn replicated(replicas: usize, open: impl Fn() -> Arc<dyn Backend> + Send + Sync + 'static) -> Self {
        let keyring = Keyring::in_memory(&Chance::from_system());
        Self::over(Box::new(open), replicas, Arc::new(HandClock::new()), keyring)
    }

    fn over(open: Open, replicas: usize, clock: Arc<HandClock>, keyring: Keyring) -> Self {
        let config = || Config::new(clock.clone(), Chance::from_system()).sealed(keyring.clone());
        let stores: Vec<Local> = (0..replicas).map(|_| Local::open(open(), config()).unwrap()).collect();
        let store = stores[0].clone();
        let any: Arc<dyn Store> =
            if replicas == 1 { Arc::new(store.clone()) } else { Arc::new(Spread::over(stores)) };
        Self { subject: Subject::new(any), store, clock, keyring, open, replicas }
    }

    /// The same store, closed and opened again.
    pub fn reopened(self) -> Self {
        let Self { subject, store, clock, keyring, open, replicas } = self;
        drop((subject, store));
        Self::over(open, replicas, clock, keyring)
    }
}

impl AsRef<Subject> for Subject {
    fn as_ref(&self) -> &Subject {
        self
    }
}

impl AsRef<Subject> for Own {
    fn as_ref(&self) -> &Subject {
        &self.subject
    }
}

impl AsRef<Own> for Own {
    fn as_ref(&self) -> &Own {
        self
    }
}
