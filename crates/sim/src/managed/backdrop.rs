//! What every life with a cloud has: the cloud, the provider before it, and the bad way between the two and
//! the registry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use concert_controllers::managed::event::Silent;
use concert_controllers::managed::metrics::Metrics;
use concert_controllers::managed::registry::{Declaration, Parts, Rank, Registry, Settings};
use concert_engine::Authority;
use concert_provider::InProcess;
use concert_provider_example::Example;
use concert_provider_example::cloud::{self, Api, Cloud};
use concert_store::Clock;

use super::wire::Wire;
use crate::executor::Executor;
use crate::faults::Weather;
use crate::play::{Actor, Done, Stage};

const POLL: Duration = Duration::from_secs(60);
/// In lives where watches lose events.
const RELIST: Duration = Duration::from_secs(120);

/// A cloud and the way to it.
pub struct Backdrop {
    /// The cloud.
    pub api: Arc<Api>,
    executor: Executor,
    weather: Weather,
    provider: Arc<InProcess>,
    calls: Arc<AtomicU64>,
}

impl Backdrop {
    /// On this stage, with a provider that `dress` has the last word on.
    pub fn new(stage: &Stage, settings: cloud::Settings, dress: impl FnOnce(Example) -> Example) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(stage.executor.clone());
        let api = Arc::new(Api::new(Cloud::new(settings, stage.chance.fork()), clock));
        let provider = Arc::new(InProcess::new(Arc::new(dress(Example::new(api.clone())))));
        let (executor, weather) = (stage.executor.clone(), stage.weather.clone());
        Self { api, executor, weather, provider, calls: Arc::default() }
    }

    /// The way of one process to the provider; a blind one cannot tell what became of a create.
    pub fn wire(&self, actor: &Actor, is_blind: bool) -> Wire {
        Wire {
            provider: self.provider.clone(),
            executor: self.executor.clone(),
            chance: actor.chance.fork(),
            weather: self.weather.clone(),
            is_blind,
            bug: None,
            calls: self.calls.clone(),
        }
    }

    /// From now on the cloud does what it is told.
    pub fn calm_down(&self) {
        let mut cloud = self.api.cloud();
        let settings = cloud::Settings { error_rate: 0.0, lost_answers: 0.0, ..cloud.settings().clone() };
        cloud.set_settings(settings);
    }

    /// What was done so far.
    pub fn done(&self) -> Done {
        let cloud = self.api.cloud();
        let summary = cloud.truth().summary();
        Done {
            creates: summary.created,
            deletes: summary.deleted,
            effects: summary.created + summary.updated + summary.deleted,
            fenced: 0,
            runs: self.calls.load(Ordering::Relaxed),
        }
    }

    /// The most calls that so many things can be worth in a time without changes.
    pub fn calls_max(&self, things: usize, quiet: Duration) -> f64 {
        // Each poll connects and observes; polls come a tenth early at most.
        let polls = quiet.div_duration_f64(POLL * 9 / 10) + 2.0;
        things as f64 * polls * 3.0
    }

    /// Whatever was made twice.
    pub fn doubles(&self) -> Vec<String> {
        let cloud = self.api.cloud();
        cloud.truth().doubles().iter().map(|it| format!("made twice: {it:?}")).collect()
    }
}

/// What a registry in the process of `actor` is made of.
pub fn parts(actor: &Actor, wire: &Wire, authority: Authority) -> Parts {
    Parts {
        engine: actor.engine.clone(),
        store: actor.remote.clone(),
        clock: actor.clock.clone(),
        chance: actor.chance.fork(),
        tasks: actor.tasks.clone(),
        recorder: Arc::new(Silent),
        metrics: Metrics::new(),
        environment: Arc::new(|_| None),
        settings: Settings {
            work: Some(actor.remote.clone()),
            poll: Some(POLL),
            relist: if wire.weather.is_lossy() { RELIST } else { Settings::default().relist },
            ..Settings::default()
        },
        authority,
    }
}

/// A registry whose one provider is at the other end of the wire.
pub fn registry(parts: Parts, wire: &Wire) -> Registry {
    let registry = Registry::start(parts);
    let declaration = Declaration {
        name: "cloud".into(),
        connector: Arc::new(wire.clone()),
        kinds: Vec::new(),
        allowance: Default::default(),
        rank: Rank::Configured(0),
        last: None,
    };
    registry.add(declaration).expect("it is the only one");
    registry
}
