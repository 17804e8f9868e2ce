//! All controllers of a process, started and stopped while it runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_model::ObjectKey;
use concert_store::{Chance, Clock, Store};
use tracing::info;

use crate::controller::{Controller, Handle, ItemState, Running, Summary, Surroundings};
use crate::metrics::Metrics;
use crate::tasks::Tasks;

/// The registry of controllers. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    surroundings: Surroundings,
    tasks: Tasks,
    controllers: Arc<Mutex<BTreeMap<Arc<str>, Arc<Running>>>>,
}

/// Why a controller could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// One of that name runs, or has not ended yet.
    #[error("controller {name} runs already")]
    Taken {
        /// Which.
        name: Arc<str>,
    },
}

impl Engine {
    /// No controllers yet. They will run among `tasks`, and watch `store`.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, chance: Chance, tasks: Tasks) -> Self {
        let surroundings = Surroundings { store, clock, chance, metrics: Metrics::new() };
        Self { surroundings, tasks, controllers: Arc::default() }
    }

    /// The same engine over another store: what is started there watches that one, and is known by its
    /// name and counted among all others.
    #[must_use]
    pub fn over(&self, store: Arc<dyn Store>) -> Self {
        let surroundings = Surroundings { store, ..self.surroundings.clone() };
        Self { surroundings, ..self.clone() }
    }

    /// Starts a controller.
    ///
    /// # Errors
    /// [`StartError::Taken`].
    pub fn start(&self, controller: Controller) -> Result<Handle, StartError> {
        let name = controller.name.clone();
        let mut controllers = self.lock();
        if controllers.contains_key(&name) {
            return Err(StartError::Taken { name });
        }
        let running = Running::start(controller, &self.surroundings, self.tasks.group());
        let handle = running.handle.clone();
        info!(controller = %name, "controller started");
        controllers.insert(name, Arc::new(running));
        Ok(handle)
    }

    /// Stops a controller: no more runs start, those that run may end within `patience`. Its name is
    /// free and nothing of it is left afterwards. Returns the tasks that had to be ended; none if
    /// there is no such controller.
    pub async fn stop(&self, name: &str, patience: Duration) -> Option<Vec<Arc<str>>> {
        let running = self.lock().get(name).cloned()?;
        let late = running.stop(patience).await;
        let mut controllers = self.lock();
        // Somebody else may have stopped it too, and a new one taken the name since.
        if controllers.get(name).is_some_and(|it| Arc::ptr_eq(it, &running)) {
            controllers.remove(name);
            info!(controller = %name, late = late.len(), "controller stopped");
        }
        Some(late)
    }

    /// Stops all controllers at once.
    pub async fn stop_all(&self, patience: Duration) {
        let names: Vec<Arc<str>> = self.lock().keys().cloned().collect();
        let stops = names.iter().map(|name| self.stop(name, patience));
        futures_util::future::join_all(stops).await;
    }

    /// A controller that runs.
    pub fn controller(&self, name: &str) -> Option<Handle> {
        self.lock().get(name).map(|it| it.handle.clone())
    }

    /// All controllers in numbers, by name.
    pub fn controllers(&self) -> Vec<Summary> {
        let handles: Vec<Handle> = self.lock().values().map(|it| it.handle.clone()).collect();
        handles.iter().map(Handle::summary).collect()
    }

    /// Everything known about one item.
    pub fn state(&self, controller: &str, key: &ObjectKey) -> Option<ItemState> {
        self.controller(controller)?.state(key)
    }

    /// Whether the sources of all controllers have told what there is.
    pub fn is_ready(&self) -> bool {
        self.lock().values().all(|it| it.handle.is_ready())
    }

    /// The metrics of all controllers.
    pub fn metrics(&self) -> &Metrics {
        &self.surroundings.metrics
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Running>>> {
        self.controllers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use concert_store::Query;

    use super::*;
    use crate::fixtures::{Script, World, config_map_kind, quiet, seconds, widget};
    use crate::outcome::{Failure, Outcome, Wait};
    use crate::queue::Lane;
    use crate::source::{Objects, Source};

    #[tokio::test]
    async fn a_name_is_taken_until_its_controller_has_stopped() {
        let world = World::new();
        let script = Script::new(|_| Outcome::Done);
        world.start(&script, |it| it);
        let again = world.engine.start(Controller::builder("test", script.clone()).build());
        assert_eq!(again.unwrap_err(), StartError::Taken { name: "test".into() });
        world.engine.stop("test", seconds(1)).await.unwrap();
        assert_eq!(world.engine.stop("test", seconds(1)).await, None);
        world.start(&script, |it| it);
    }

    #[tokio::test]
    async fn nothing_is_left_after_a_thousand_starts_and_stops() {
        let world = World::new();
        world.create("a").await;
        let script = Script::new(|request| match &*request.key.name {
            "a" => Outcome::WaitFor(vec![Wait::existence_of(widget("b"))]),
            _ => Outcome::Transient(Failure::new("down")),
        });
        let before = Arc::strong_count(&script);
        for _ in 0..1_000 {
            let query = Query::all(config_map_kind());
            let handle = world.start(&script, |it| {
                let related = Source::mapped(query.clone(), |_| vec![widget("c")]);
                it.objects(Objects::new(query)).source(related).poll(seconds(60))
            });
            handle.ready().await;
            world.engine.stop("test", seconds(5)).await.unwrap();
        }
        quiet().await;
        assert!(world.tasks.names().is_empty());
        assert!(world.engine.controllers().is_empty());
        assert_eq!(Arc::strong_count(&script), before);
        assert_eq!(world.engine.metrics().render(), Metrics::new().render());
    }

    #[tokio::test]
    async fn metrics_are_there_at_zero_and_go_with_their_controller() {
        let world = World::new();
        let script = Script::new(|_| Outcome::Terminal(Failure::new("no")));
        let handle = world.start(&script, |it| it.concurrency(3));
        let text = world.engine.metrics().render();
        for line in [
            "controller_runtime_reconcile_total{controller=\"test\",result=\"success\"} 0",
            "controller_runtime_reconcile_total{controller=\"test\",result=\"wait\"} 0",
            "controller_runtime_reconcile_errors_total{controller=\"test\"} 0",
            "controller_runtime_terminal_reconcile_errors_total{controller=\"test\"} 0",
            "controller_runtime_reconcile_panics_total{controller=\"test\"} 0",
            "controller_runtime_reconcile_time_seconds_count{controller=\"test\"} 0",
            "controller_runtime_max_concurrent_reconciles{controller=\"test\"} 3.0",
            "controller_runtime_active_workers{controller=\"test\"} 0.0",
            "workqueue_depth{controller=\"test\",name=\"test\"} 0.0",
            "workqueue_adds_total{controller=\"test\",name=\"test\"} 0",
            "workqueue_retries_total{controller=\"test\",name=\"test\"} 0",
            "workqueue_queue_duration_seconds_count{controller=\"test\",name=\"test\"} 0",
            "workqueue_work_duration_seconds_count{controller=\"test\",name=\"test\"} 0",
            "workqueue_unfinished_work_seconds{controller=\"test\",name=\"test\"} 0.0",
            "workqueue_longest_running_processor_seconds{controller=\"test\",name=\"test\"} 0.0",
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line} in\n{text}");
        }
        handle.enqueue(&widget("a"), Lane::User, "changed").unwrap();
        script.ran(1).await;
        quiet().await;
        let text = world.engine.metrics().render();
        assert!(text.contains("terminal_reconcile_errors_total{controller=\"test\"} 1"), "{text}");
        assert!(text.contains("result=\"error\"} 1"), "{text}");
        world.engine.stop("test", seconds(1)).await;
        assert!(!world.engine.metrics().render().contains("test"));
    }
}
