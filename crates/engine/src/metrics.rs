//! Metrics of all controllers, under controller-runtime's names where it has one.
//!
//! Every metric of a controller is there at zero from its start and gone after its stop. None has a
//! label with an object in it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::outcome::Outcome;

/// controller-runtime's buckets, thinned out: one observation walks them all.
const RECONCILE_SECONDS: [f64; 15] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// What can be counted of one controller.
#[derive(Debug)]
pub(crate) struct Counters {
    results: [Counter; RESULTS.len()],
    errors: Counter,
    terminal_errors: Counter,
    pub panics: Counter,
    pub timeouts: Counter,
    pub adds: Counter,
    pub retries: Counter,
    pub deferrals: Counter,
    reconcile_seconds: Histogram,
    queue_seconds: Histogram,
    work_seconds: Histogram,
}

const RESULTS: [&str; 5] = ["success", "error", "requeue", "requeue_after", "wait"];

impl Default for Counters {
    fn default() -> Self {
        // Kubernetes' work queues: from 10 ns to 1000 s in steps of ten.
        let queue_buckets = || (-8..=3).map(|exponent| 10f64.powi(exponent));
        Self {
            results: Default::default(),
            errors: Counter::default(),
            terminal_errors: Counter::default(),
            panics: Counter::default(),
            timeouts: Counter::default(),
            adds: Counter::default(),
            retries: Counter::default(),
            deferrals: Counter::default(),
            reconcile_seconds: Histogram::new(RECONCILE_SECONDS),
            queue_seconds: Histogram::new(queue_buckets()),
            work_seconds: Histogram::new(queue_buckets()),
        }
    }
}

impl Counters {
    /// A run is about to start that was due so long ago.
    pub fn started(&self, waited: Duration) {
        self.queue_seconds.observe(waited.as_secs_f64());
    }

    /// A run ended.
    pub fn ended(&self, outcome: &Outcome, took: Duration) {
        self.reconcile_seconds.observe(took.as_secs_f64());
        self.work_seconds.observe(took.as_secs_f64());
        let result = match outcome {
            Outcome::Done => 0,
            Outcome::Transient(_) | Outcome::Terminal(_) => 1,
            Outcome::After(Duration::ZERO)
            | Outcome::AfterIn(_, Duration::ZERO)
            | Outcome::Returned
            | Outcome::Requeue(_, None) => 2,
            Outcome::After(_) | Outcome::AfterIn(..) | Outcome::Poll(_) | Outcome::Requeue(_, Some(_)) => 3,
            Outcome::WaitFor(_) | Outcome::WaitAtMost(..) => 4,
        };
        self.results[result].inc();
        match outcome {
            Outcome::Transient(_) => {
                self.errors.inc();
                self.retries.inc();
            }
            Outcome::Terminal(_) => {
                self.errors.inc();
                self.terminal_errors.inc();
            }
            Outcome::Requeue(..) => {
                self.retries.inc();
            }
            Outcome::Done
            | Outcome::Poll(_)
            | Outcome::After(_)
            | Outcome::AfterIn(..)
            | Outcome::Returned
            | Outcome::WaitFor(_)
            | Outcome::WaitAtMost(..) => {}
        }
    }

    /// All runs so far.
    pub fn runs(&self) -> u64 {
        self.results.iter().map(Counter::get).sum()
    }

    /// Runs that failed so far.
    pub fn failures(&self) -> u64 {
        self.errors.get()
    }
}

/// What must be looked up at the moment somebody asks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub depth: usize,
    pub running: usize,
    pub concurrency: usize,
    pub unfinished: Duration,
    pub longest: Duration,
}

/// Gives a [`Sample`].
pub(crate) trait Probe: Send + Sync {
    fn sample(&self) -> Sample;
}

/// The metrics of all controllers. Cheap to clone.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<BTreeMap<Arc<str>, Entry>>>);

#[derive(Clone)]
struct Entry {
    counters: Arc<Counters>,
    probe: Weak<dyn Probe>,
}

impl Metrics {
    /// No controllers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all metrics to a registry of the process.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    /// All metrics as text, in the OpenMetrics form.
    pub fn render(&self) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        self.register(&mut registry);
        // Writing into a string cannot fail.
        prometheus_client::encoding::text::encode(&mut text, &registry).ok();
        text
    }

    pub(crate) fn insert(&self, controller: Arc<str>, counters: Arc<Counters>, probe: Weak<dyn Probe>) {
        self.lock().insert(controller, Entry { counters, probe });
    }

    pub(crate) fn remove(&self, controller: &str) {
        self.lock().remove(controller);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Arc<str>, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // The probes take locks of their own, so ours is given back first.
        let entries = self.lock().clone();
        let rows = entries.into_iter().map(|(name, entry)| {
            let sample = entry.probe.upgrade().map(|it| it.sample()).unwrap_or_default();
            (name, entry.counters, sample)
        });
        Page { encoder, rows: rows.collect() }.write()
    }
}

struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
    rows: Vec<(Arc<str>, Arc<Counters>, Sample)>,
}

impl Page<'_> {
    /// One line per metric, so that a name in a dashboard greps to it.
    fn write(mut self) -> fmt::Result {
        self.results()?;
        self.counter("controller_runtime_reconcile_errors", "Runs that failed", |it| &it.errors)?;
        self.counter("controller_runtime_terminal_reconcile_errors", "Runs that failed for good", |it| {
            &it.terminal_errors
        })?;
        self.counter("controller_runtime_reconcile_panics", "Runs that panicked", |it| &it.panics)?;
        self.counter(
            "controller_runtime_reconcile_timeouts",
            "Runs that were dropped at their deadline",
            |it| &it.timeouts,
        )?;
        self.histogram("controller_runtime_reconcile_time_seconds", "Length of runs", |it| {
            &it.reconcile_seconds
        })?;
        self.gauge("controller_runtime_max_concurrent_reconciles", "Most runs at a time", |it| {
            it.concurrency as f64
        })?;
        self.gauge("controller_runtime_active_workers", "Runs now", |it| it.running as f64)?;
        self.gauge("workqueue_depth", "Keys that are due and wait for a worker", |it| it.depth as f64)?;
        self.counter("workqueue_adds", "Keys that were asked for", |it| &it.adds)?;
        self.counter("workqueue_retries", "Keys that were put back after a failure", |it| &it.retries)?;
        self.counter("concert_workqueue_deferrals", "Keys put back for want of budget or target", |it| {
            &it.deferrals
        })?;
        self.histogram("workqueue_queue_duration_seconds", "Time from due to start", |it| &it.queue_seconds)?;
        self.histogram("workqueue_work_duration_seconds", "Time from start to end", |it| &it.work_seconds)?;
        self.gauge("workqueue_unfinished_work_seconds", "Length of all present runs together", |it| {
            it.unfinished.as_secs_f64()
        })?;
        self.gauge("workqueue_longest_running_processor_seconds", "Length of the longest present run", |it| {
            it.longest.as_secs_f64()
        })
    }

    fn results(&mut self) -> fmt::Result {
        let name = "controller_runtime_reconcile";
        let mut metric = self.encoder.encode_descriptor(name, "Runs by result", None, MetricType::Counter)?;
        for (controller, counters, _) in &self.rows {
            for (result, counter) in RESULTS.iter().zip(&counters.results) {
                let labels = [("controller", &**controller), ("result", result)];
                counter.encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, pick: fn(&Counters) -> &Counter) -> fmt::Result {
        self.each(name, help, MetricType::Counter, |row, encoder| pick(&row.1).encode(encoder))
    }

    fn histogram(&mut self, name: &str, help: &str, pick: fn(&Counters) -> &Histogram) -> fmt::Result {
        self.each(name, help, MetricType::Histogram, |row, encoder| pick(&row.1).encode(encoder))
    }

    fn gauge(&mut self, name: &str, help: &str, pick: fn(&Sample) -> f64) -> fmt::Result {
        self.each(name, help, MetricType::Gauge, |row, encoder| ConstGauge::new(pick(&row.2)).encode(encoder))
    }

    fn each(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        encode: impl Fn(&(Arc<str>, Arc<Counters>, Sample), MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        for row in &self.rows {
            // Work queues are found by `name` in Kubernetes' own dashboards.
            let labels = [("controller", &*row.0), ("name", &*row.0)];
            let count = if name.starts_with("workqueue") { 2 } else { 1 };
            encode(row, metric.encode_family(&&labels[..count])?)?;
        }
        Ok(())
    }
}
