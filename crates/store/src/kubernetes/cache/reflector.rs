//! The task that follows the server's watch of one kind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_model::{Encoded, GroupKind, ObjectKey, ResourceVersion};
use tokio::sync::{Notify, OnceCell, watch};
use tracing::{debug, warn};

use super::super::Server;
use super::super::watch::ServerWatch;
use super::Order;
use super::state::{End, Look, State};
use crate::contract::{Event, Query, Result};
use crate::error::Error;

/// Between tries to reach a server that does not answer: doubled from the first to the last.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// All kinds that are watched as a whole.
#[derive(Default)]
pub(in super::super) struct Registry(Mutex<BTreeMap<GroupKind, Arc<Reflector>>>);

/// One kind that is watched as a whole.
pub(in super::super) struct Reflector {
    kind: GroupKind,
    state: Mutex<State>,
    /// Rung after everything that changes the state.
    pub(super) news: Notify,
    /// Set when the first list is there and the task runs.
    started: OnceCell<()>,
    watchers: AtomicUsize,
    /// Rung when the last watcher has gone.
    idle: Notify,
}

impl Registry {
    fn kinds(&self) -> MutexGuard<'_, BTreeMap<GroupKind, Arc<Reflector>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reflector of a kind, if somebody watches it. What is answered is reported to it even before
    /// its first list is there: that list may be older.
    pub(in super::super) fn find(&self, kind: &GroupKind) -> Option<Arc<Reflector>> {
        self.kinds().get(kind).cloned()
    }

    /// The reflector of a kind, for one more watcher.
    pub(super) fn enter(&self, kind: &GroupKind) -> Watcher {
        let mut kinds = self.kinds();
        let reflector =
            kinds.entry(kind.clone()).or_insert_with(|| Arc::new(Reflector::new(kind.clone()))).clone();
        reflector.watchers.fetch_add(1, Ordering::Relaxed);
        Watcher(reflector)
    }

    /// The same, if it runs already.
    pub(super) fn join(&self, kind: &GroupKind) -> Option<Watcher> {
        let kinds = self.kinds();
        let reflector = kinds.get(kind).filter(|reflector| reflector.started.initialized())?.clone();
        reflector.watchers.fetch_add(1, Ordering::Relaxed);
        Some(Watcher(reflector))
    }

    /// Takes a reflector out, unless somebody still or again watches it.
    pub(super) fn leave(&self, reflector: &Arc<Reflector>, is_forced: bool) -> bool {
        let mut kinds = self.kinds();
        let is_free = is_forced || reflector.watchers.load(Ordering::Relaxed) == 0;
        if is_free && kinds.get(&reflector.kind).is_some_and(|found| Arc::ptr_eq(found, reflector)) {
            kinds.remove(&reflector.kind);
        }
        is_free
    }
}

/// One watcher of a reflector, counted.
pub(super) struct Watcher(Arc<Reflector>);

impl Watcher {
    pub(super) fn reflector(&self) -> &Arc<Reflector> {
        &self.0
    }

    pub(super) fn kind(&self) -> &GroupKind {
        &self.0.kind
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if self.0.watchers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.idle.notify_one();
        }
    }
}

impl Reflector {
    fn new(kind: GroupKind) -> Self {
        Self {
            kind,
            state: Mutex::default(),
            news: Notify::new(),
            started: OnceCell::new(),
            watchers: AtomicUsize::new(0),
            idle: Notify::new(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of `key` without asking.
    pub(in super::super) fn look(&self, key: &ObjectKey) -> Look {
        self.state().look(key)
    }

    pub(in super::super) fn answered(&self, object: &Encoded) {
        self.state().answered(object);
    }

    pub(in super::super) fn gone(&self, last: &Encoded) {
        self.state().gone(last);
    }

    pub(in super::super) fn absent(&self, key: &ObjectKey) {
        self.state().absent(key);
    }

    /// Somebody saw it leave a selection, or go. Only if it is still here does that need another look.
    pub(in super::super) fn doubted(&self, key: &ObjectKey) {
        let mut state = self.state();
        if matches!(state.look(key), Look::Found(_)) {
            state.stale(key);
        }
    }

    pub(in super::super) fn stale(&self, key: &ObjectKey) {
        self.state().stale(key);
    }

    /// Makes sure that it runs. The first one lists, as of `from` if that is given, so that a watch may
    /// go on from there; the others wait for it.
    ///
    /// # Errors
    /// As a list: then it does not run.
    pub(super) async fn start(
        self: &Arc<Self>,
        server: &Arc<Server>,
        from: Option<&ResourceVersion>,
    ) -> Result<()> {
        let start = async {
            self.list(server, from).await?;
            let task = Follow { reflector: self.clone(), server: server.clone() };
            let name = format!("watch {}", self.kind);
            (server.spawn)(&name, Box::pin(task.run(server.closed.clone())));
            Ok(())
        };
        self.started.get_or_try_init(|| start).await.map(drop)
    }

    async fn list(&self, server: &Server, from: Option<&ResourceVersion>) -> Result<()> {
        self.state().will_list();
        let page = server.list_all(&Query::all(self.kind.clone()), from).await?;
        let not_ordered = || Error::unavailable("the server's resource versions are not numbers");
        let order = Order::of(&page.position).ok_or_else(not_ordered)?;
        self.state().list(page.items, order, page.position);
        self.news.notify_waiters();
        Ok(())
    }

    fn tell(&self, event: Event) -> Result<()> {
        let not_ordered = || Error::unavailable("the server's resource versions are not numbers");
        let order = Order::of(event.position()).ok_or_else(not_ordered)?;
        match event {
            Event::Bookmark { position, .. } => self.state().progress(order, position),
            change => self.state().change(order, change),
        }
        self.news.notify_waiters();
        Ok(())
    }
}

/// The running task of a reflector. However it ends, nobody goes on reading from what it left.
struct Follow {
    reflector: Arc<Reflector>,
    server: Arc<Server>,
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.server.registry.leave(&self.reflector, true);
        self.reflector.state().end(End::Closed);
        self.reflector.news.notify_waiters();
    }
}

impl Follow {
    async fn run(self, mut closed: watch::Receiver<()>) {
        tokio::select! {
            biased;
            // The store is gone: that is the only thing its sender ever says.
            _ = closed.changed() => {}
            () = self.until_idle() => {}
            () = self.follow() => {}
        }
    }

    /// Completes when nobody has watched for a while.
    async fn until_idle(&self) {
        loop {
            self.reflector.idle.notified().await;
            self.server.transport.clock.sleep(self.server.linger).await;
            if self.server.registry.leave(&self.reflector, false) {
                debug!(kind = %self.reflector.kind, "nobody watches any more");
                return;
            }
        }
    }

    async fn follow(&self) {
        let mut failures = 0;
        loop {
            let error = match self.watch(&mut failures).await {
                Ok(()) => {
                    // The server ends watches now and then, and whenever a definition is changed.
                    self.server.kinds.doubt(&self.reflector.kind);
                    continue;
                }
                Err(error) => error,
            };
            match error {
                Error::Expired => {
                    debug!(kind = %self.reflector.kind, "watch position expired");
                    match self.reflector.list(&self.server, None).await {
                        Ok(()) => continue,
                        Err(error) => warn!(kind = %self.reflector.kind, %error, "list failed"),
                    }
                }
                Error::UnknownKind { .. } => {
                    self.reflector.state().end(End::UnknownKind);
                    return;
                }
                error => warn!(kind = %self.reflector.kind, %error, failures, "watch failed"),
            }
            let (first, last) = RETRY;
            self.server.transport.clock.sleep(last.min(first * 2_u32.pow(failures.min(10)))).await;
            failures += 1;
        }
    }

    /// One watch of the server, from where the last one stopped to its end.
    async fn watch(&self, failures: &mut u32) -> Result<()> {
        let position = self.reflector.state().position().cloned().ok_or(Error::Expired)?;
        let query = Query::all(self.reflector.kind.clone());
        let mut watch = ServerWatch::open(&self.server, &query, &position).await?;
        while let Some(event) = watch.next().await {
            self.server.see(event.as_ref().map_or(&position, Event::position));
            self.reflector.tell(event?)?;
            *failures = 0;
            if self.reflector.state().needs_list() {
                return Err(Error::Expired);
            }
        }
        Ok(())
    }
}
