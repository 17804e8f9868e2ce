//! Tasks: nothing is detached.
//!
//! Every task has a name, an owner that can stop and join it, and a word on what its death means.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concert_store::Clock;
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use tracing::{debug, error, warn};

use crate::shutdown::Shutdown;
use crate::watched::Watched;

/// What runs tasks: a runtime, or the simulation's executor.
///
/// # Guarantees
/// A task that was handed in is polled whenever it was woken, until it completes or the whole
/// executor is dropped.
pub trait Spawn: Send + Sync + 'static {
    /// Starts `task`. Names are for people and need not be unique.
    fn spawn(&self, name: &str, task: BoxFuture<'static, ()>);
}

/// Tasks on a Tokio runtime.
#[derive(Clone, Debug)]
pub struct TokioSpawn(tokio::runtime::Handle);

impl TokioSpawn {
    /// On this runtime.
    pub fn new(runtime: tokio::runtime::Handle) -> Self {
        Self(runtime)
    }

    /// On the runtime that the caller runs on.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn current() -> Self {
        Self(tokio::runtime::Handle::current())
    }
}

impl Spawn for TokioSpawn {
    fn spawn(&self, _name: &str, task: BoxFuture<'static, ()>) {
        // `Tasks` keeps what it needs to end and join the task.
        drop(self.0.spawn(task));
    }
}

/// What the end of a task means, unless it was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExit {
    /// It is logged.
    Log,
    /// Nothing works without it: everything is asked to stop.
    Stop,
}

/// The owner of tasks. Cheap to clone; all clones mean the same tasks.
#[derive(Clone)]
pub struct Tasks {
    spawn: Arc<dyn Spawn>,
    clock: Arc<dyn Clock>,
    shutdown: Shutdown,
    root: Shutdown,
    /// Own first, then those of the groups around this one.
    rosters: Vec<Arc<Roster>>,
}

impl Tasks {
    /// No tasks yet.
    pub fn new(spawn: Arc<dyn Spawn>, clock: Arc<dyn Clock>) -> Self {
        let shutdown = Shutdown::new();
        Self { spawn, clock, root: shutdown.clone(), shutdown, rosters: vec![Arc::default()] }
    }

    /// A part of these tasks that can be stopped alone.
    pub fn group(&self) -> Self {
        let mut rosters = self.rosters.clone();
        rosters.insert(0, Arc::default());
        Self { shutdown: self.shutdown.child(), rosters, ..self.clone() }
    }

    /// The token that these tasks watch.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// The token that a task with [`OnExit::Stop`] pulls when it dies: that of the outermost group.
    pub fn root(&self) -> &Shutdown {
        &self.root
    }

    /// Names of the tasks that run now, in the order they were started.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.rosters[0].live().tasks.values().map(|(name, _)| name.clone()).collect()
    }

    /// Starts a task.
    pub fn spawn(
        &self,
        name: impl Into<Arc<str>>,
        on_exit: OnExit,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let name = name.into();
        let (abort, registration) = AbortHandle::new_pair();
        let entries = self.rosters.iter().map(|it| it.enter(&name, &abort)).collect::<Vec<_>>();
        let (shutdown, root) = (self.shutdown.clone(), self.root.clone());
        let task = Abortable::new(AssertUnwindSafe(task).catch_unwind(), registration);
        let label = name.clone();
        let whole = async move {
            // Leaves the rosters even if the executor drops the task half way.
            let _entries = entries;
            match task.await {
                Ok(Ok(())) if shutdown.is_requested() => debug!(task = %label, "task stopped"),
                Ok(Ok(())) => warn_of_exit(&label, on_exit, &root),
                Ok(Err(panic)) => {
                    error!(task = %label, panic = %panic_text(&*panic), "task panicked");
                    if on_exit == OnExit::Stop {
                        root.request();
                    }
                }
                Err(_) => warn!(task = %label, "task aborted"),
            }
        };
        self.spawn.spawn(&name, Box::pin(whole));
    }

    /// Asks all tasks to stop, waits for them up to `patience`, then ends the rest where they stand.
    /// Returns the names of those.
    pub async fn stop(&self, patience: Duration) -> Vec<Arc<str>> {
        self.shutdown.request();
        let roster = &self.rosters[0];
        tokio::select! {
            biased;
            () = roster.emptied() => return Vec::new(),
            () = self.clock.sleep(patience) => {}
        }
        let late: Vec<_> = roster.live().tasks.values().cloned().collect();
        for (_, abort) in &late {
            abort.abort();
        }
        roster.emptied().await;
        late.into_iter().map(|(name, _)| name).collect()
    }
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tasks").field(&self.names()).finish()
    }
}

fn warn_of_exit(name: &str, on_exit: OnExit, root: &Shutdown) {
    match on_exit {
        OnExit::Log => debug!(task = name, "task ended"),
        OnExit::Stop => {
            error!(task = name, "task ended though it must not");
            root.request();
        }
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// The tasks of one group.
#[derive(Default)]
struct Roster {
    live: Mutex<Live>,
    count: Watched<usize>,
}

#[derive(Default)]
struct Live {
    next: u64,
    tasks: BTreeMap<u64, (Arc<str>, AbortHandle)>,
}

impl Roster {
    fn live(&self) -> std::sync::MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, name: &Arc<str>, abort: &AbortHandle) -> Entry {
        let mut live = self.live();
        let id = live.next;
        live.next += 1;
        live.tasks.insert(id, (name.clone(), abort.clone()));
        self.count.set(live.tasks.len());
        Entry { roster: self.clone(), id }
    }

    async fn emptied(&self) {
        self.count.wait_for(|&count| count == 0).await;
    }
}

struct Entry {
    roster: Arc<Roster>,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut live = self.roster.live();
        live.tasks.remove(&self.id);
        self.roster.count.set(live.tasks.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::ManualClock;

    fn tasks() -> (Tasks, ManualClock) {
        let clock = ManualClock::new();
        (Tasks::new(Arc::new(TokioSpawn::current()), Arc::new(clock.clone())), clock)
    }

    #[tokio::test]
    async fn stop_joins_what_listens_and_aborts_what_does_not() {
        let (tasks, clock) = tasks();
        let shutdown = tasks.shutdown().clone();
        tasks.spawn("polite", OnExit::Stop, async move { shutdown.requested().await });
        tasks.spawn("deaf", OnExit::Log, std::future::pending());
        assert_eq!(tasks.names(), ["polite".into(), "deaf".into()]);
        let stop = tasks.stop(Duration::from_secs(5));
        let (late, ()) = tokio::join!(stop, clock.advance(Duration::from_secs(5)));
        assert_eq!(late, ["deaf".into()]);
        assert!(tasks.names().is_empty());
    }

    #[tokio::test]
    async fn a_panic_in_a_task_that_must_live_stops_everything() {
        let (tasks, _clock) = tasks();
        let group = tasks.group();
        group.spawn("harmless", OnExit::Log, async { panic!("once") });
        group.spawn("vital", OnExit::Stop, async {});
        tasks.shutdown().requested().await;
        assert!(group.shutdown().is_requested());
    }

    #[tokio::test]
    async fn a_group_stops_alone_and_with_the_whole() {
        let (tasks, _clock) = tasks();
        let (one, two) = (tasks.group(), tasks.group());
        for group in [&one, &two] {
            let shutdown = group.shutdown().clone();
            group.spawn("member", OnExit::Log, async move { shutdown.requested().await });
        }
        assert!(one.stop(Duration::from_secs(1)).await.is_empty());
        assert_eq!(tasks.names().len(), 1);
        assert!(tasks.stop(Duration::from_secs(1)).await.is_empty());
        assert!(two.names().is_empty());
    }
}
