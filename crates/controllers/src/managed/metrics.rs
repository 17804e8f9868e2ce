//! Metrics of managed resources, under Crossplane's names.
//!
//! One set per kind, at zero from the moment the kind is known. What must be remembered of an object is
//! kept by its uid and goes with it: upstream's maps by bare name collide and never shrink.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_model::{GroupKind, GroupVersionKind, Uid};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// For what a controller does by itself.
const QUICK_SECONDS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

/// For what an external system takes its time for.
const SLOW_SECONDS: [f64; 11] = [1.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];

/// The metrics of all kinds. Cheap to clone.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<BTreeMap<GroupVersionKind, Arc<KindMetrics>>>>);

impl Metrics {
    /// No kinds yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all metrics to a registry of the process.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    /// Those of one kind, which are there at zero from now on.
    pub fn kind(&self, gvk: &GroupVersionKind) -> Arc<KindMetrics> {
        self.lock().entry(gvk.clone()).or_default().clone()
    }

    /// Takes those of one kind away, in all its versions.
    pub fn remove(&self, kind: &GroupKind) {
        self.lock().retain(|gvk, _| gvk.group_kind != *kind);
    }

    /// Forgets the objects of one kind: nobody looks at them for the time being, so nobody could tell that
    /// they have gone.
    pub fn forget_objects(&self, kind: &GroupKind) {
        for (_, it) in self.lock().iter().filter(|(gvk, _)| gvk.group_kind == *kind) {
            *it.lock() = Tracked::default();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupVersionKind, Arc<KindMetrics>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys().map(ToString::to_string)).finish()
    }
}

/// The metrics of one kind.
pub struct KindMetrics {
    first_reconcile: Histogram,
    first_ready: Histogram,
    deletion: Histogram,
    drift: Histogram,
    tracked: Mutex<Tracked>,
}

impl Default for KindMetrics {
    fn default() -> Self {
        Self {
            first_reconcile: Histogram::new(QUICK_SECONDS),
            first_ready: Histogram::new(SLOW_SECONDS),
            deletion: Histogram::new(SLOW_SECONDS),
            drift: Histogram::new(QUICK_SECONDS),
            tracked: Mutex::default(),
        }
    }
}

impl KindMetrics {
    /// An object was reconciled for the first time, so long after it was made. Counts once: a first pass whose
    /// word on the object could not be written is followed by another one.
    pub fn first_reconcile(&self, uid: &Uid, since_creation: Duration) {
        let mut tracked = self.lock();
        let object = tracked.objects.entry(id(uid)).or_default();
        if object.readiness == Readiness::Unknown {
            object.readiness = Readiness::Never;
            drop(tracked);
            self.first_reconcile.observe(since_creation.as_secs_f64());
        }
    }

    /// An object is ready, so long after it was made. Counts the first time; `looks_new` says whether this is
    /// it as far as the object itself shows, for those whose first reconcile another process saw.
    pub fn ready(&self, uid: &Uid, looks_new: bool, since_creation: Duration) {
        let mut tracked = self.lock();
        let object = tracked.objects.entry(id(uid)).or_default();
        let before = std::mem::replace(&mut object.readiness, Readiness::Before);
        drop(tracked);
        if before == Readiness::Never || (before == Readiness::Unknown && looks_new) {
            self.first_ready.observe(since_creation.as_secs_f64());
        }
    }

    /// An object is gone, so long after its deletion was asked for.
    pub fn deleted(&self, uid: &Uid, since_deletion: Duration) {
        self.deletion.observe(since_deletion.as_secs_f64());
        self.forget(uid);
    }

    /// An object is gone, or no longer ours.
    pub fn forget(&self, uid: &Uid) {
        let mut tracked = self.lock();
        if let Some(object) = tracked.objects.remove(&id(uid)) {
            tracked.count(object, -1);
        }
    }

    /// The external thing was seen to be as declared, at this reading of the clock's `elapsed`.
    pub fn unchanged(&self, uid: &Uid, at: Duration) {
        self.lock().objects.entry(id(uid)).or_default().unchanged_at = Some(Moment::from(at));
    }

    /// The external thing had to be changed: it has drifted for as long as nobody saw it unchanged.
    pub fn updated(&self, uid: &Uid, at: Duration) {
        let mut tracked = self.lock();
        let Some(object) = tracked.objects.get_mut(&id(uid)) else { return };
        let Some(before) = object.unchanged_at.replace(Moment::from(at)) else { return };
        drop(tracked);
        self.drift.observe(at.saturating_sub(before.into()).as_secs_f64());
    }

    /// What the conditions of an object say now.
    pub fn state(&self, uid: &Uid, is_ready: bool, is_synced: bool) {
        let mut tracked = self.lock();
        let object = tracked.objects.entry(id(uid)).or_default();
        let before = *object;
        *object = Object { exists: true, is_ready, is_synced, ..before };
        let after = *object;
        tracked.count(before, -1);
        tracked.count(after, 1);
    }

    fn lock(&self) -> MutexGuard<'_, Tracked> {
        self.tracked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for KindMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (exists, ready, synced) = self.lock().counts();
        f.debug_struct("KindMetrics")
            .field("exists", &exists)
            .field("ready", &ready)
            .field("synced", &synced)
            .finish_non_exhaustive()
    }
}

/// What is remembered of objects, and their sums, kept in step so that nobody ever has to list.
#[derive(Default)]
struct Tracked {
    objects: HashMap<u128, Object>,
    exists: i64,
    ready: i64,
    synced: i64,
}

impl Tracked {
    fn count(&mut self, object: Object, step: i64) {
        self.exists += if object.exists { step } else { 0 };
        self.ready += if object.is_ready { step } else { 0 };
        self.synced += if object.is_synced { step } else { 0 };
    }

    fn counts(&self) -> (i64, i64, i64) {
        (self.exists, self.ready, self.synced)
    }
}

/// What is remembered of one object: there may be a million, so every byte counts.
#[derive(Clone, Copy, Default)]
struct Object {
    unchanged_at: Option<Moment>,
    exists: bool,
    is_ready: bool,
    is_synced: bool,
    readiness: Readiness,
}

/// Whether an object was ever ready.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Readiness {
    /// It was there before this process.
    #[default]
    Unknown,
    Never,
    Before,
}

/// A reading of `elapsed` in microseconds, shifted by one so that none costs nothing.
#[derive(Clone, Copy)]
struct Moment(std::num::NonZeroU64);

impl From<Duration> for Moment {
    fn from(elapsed: Duration) -> Self {
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        Self(std::num::NonZeroU64::MIN.saturating_add(micros))
    }
}

impl From<Moment> for Duration {
    fn from(moment: Moment) -> Self {
        Duration::from_micros(moment.0.get() - 1)
    }
}

/// A uid in sixteen bytes: its digits if it is a UUID, else a hash of its text (FNV-1a).
fn id(uid: &Uid) -> u128 {
    let digits: String = uid.0.chars().filter(|it| *it != '-').collect();
    match u128::from_str_radix(&digits, 16) {
        Ok(bits) if digits.len() == 32 => bits,
        _ => uid.0.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        }),
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let rows = self.lock().iter().map(|(gvk, it)| (gvk.to_string(), it.clone())).collect();
        Page { encoder, rows }.write()
    }
}

struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
    rows: Vec<(String, Arc<KindMetrics>)>,
}

impl Page<'_> {
    /// One call per metric, so that a name in a dashboard greps to it.
    fn write(mut self) -> fmt::Result {
        self.histogram(
            "crossplane_managed_resource_first_time_to_reconcile_seconds",
            "Time from the creation of an object to its first reconcile",
            |it| &it.first_reconcile,
        )?;
        self.histogram(
            "crossplane_managed_resource_first_time_to_readiness_seconds",
            "Time from the creation of an object to its first readiness",
            |it| &it.first_ready,
        )?;
        self.histogram(
            "crossplane_managed_resource_deletion_seconds",
            "Time from the request to delete an object to its end",
            |it| &it.deletion,
        )?;
        self.histogram(
            "crossplane_managed_resource_drift_seconds",
            "Time since an external resource that had to be updated was last seen unchanged",
            |it| &it.drift,
        )?;
        self.gauge("crossplane_managed_resource_exists", "Objects there are", |it| it.exists)?;
        self.gauge("crossplane_managed_resource_ready", "Objects that are ready", |it| it.ready)?;
        self.gauge("crossplane_managed_resource_synced", "Objects that are synced", |it| it.synced)
    }

    fn histogram(&mut self, name: &str, help: &str, pick: fn(&KindMetrics) -> &Histogram) -> fmt::Result {
        self.each(name, help, MetricType::Histogram, |kind, encoder| pick(kind).encode(encoder))
    }

    fn gauge(&mut self, name: &str, help: &str, pick: fn(&Tracked) -> i64) -> fmt::Result {
        self.each(name, help, MetricType::Gauge, |kind, encoder| {
            let value = pick(&kind.lock());
            ConstGauge::new(value).encode(encoder)
        })
    }

    fn each(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        encode: impl Fn(&KindMetrics, MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (gvk, row) in &self.rows {
            encode(row, metric.encode_family(&[("gvk", gvk.as_str())])?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use concert_model::GroupKind;

    use super::*;

    const GVK: &str = "example.com/v1, Kind=Bucket";

    fn bucket() -> GroupVersionKind {
        GroupKind::new("example.com", "Bucket").at_version("v1")
    }

    fn uid(number: u128) -> Uid {
        Uid::from_random(number)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn render(metrics: &Metrics) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        metrics.register(&mut registry);
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    fn assert_has(metrics: &Metrics, line: &str) {
        let (text, line) = (render(metrics), line.replace("GVK", GVK));
        assert!(text.contains(&format!("\ncrossplane_managed_resource_{line}\n")), "{line} in\n{text}");
    }

    #[test]
    fn a_kind_is_there_at_zero_until_it_is_removed() {
        let metrics = Metrics::new();
        metrics.kind(&bucket());
        for name in ["first_time_to_reconcile", "first_time_to_readiness", "deletion", "drift"] {
            assert_has(&metrics, &format!("{name}_seconds_count{{gvk=\"GVK\"}} 0"));
        }
        for name in ["exists", "ready", "synced"] {
            assert_has(&metrics, &format!("{name}{{gvk=\"GVK\"}} 0"));
        }
        metrics.remove(&bucket().group_kind);
        assert!(!render(&metrics).contains(GVK));
    }

    #[test]
    fn buckets_are_those_of_upstream() {
        let metrics = Metrics::new();
        let kind = metrics.kind(&bucket());
        kind.first_reconcile(&uid(1), Duration::from_millis(50));
        kind.ready(&uid(1), false, seconds(7));
        assert_has(&metrics, "first_time_to_reconcile_seconds_bucket{le=\"0.01\",gvk=\"GVK\"} 0");
        assert_has(&metrics, "first_time_to_reconcile_seconds_bucket{le=\"0.1\",gvk=\"GVK\"} 1");
        assert_has(&metrics, "first_time_to_readiness_seconds_bucket{le=\"5.0\",gvk=\"GVK\"} 0");
        assert_has(&metrics, "first_time_to_readiness_seconds_bucket{le=\"10.0\",gvk=\"GVK\"} 1");
        assert_has(&metrics, "first_time_to_readiness_seconds_bucket{le=\"3600.0\",gvk=\"GVK\"} 1");
    }

    #[test]
    fn a_first_reconcile_counts_once_however_often_it_is_said() {
        let metrics = Metrics::new();
        let kind = metrics.kind(&bucket());
        kind.first_reconcile(&uid(1), seconds(1));
        kind.first_reconcile(&uid(1), seconds(5));
        kind.first_reconcile(&uid(2), seconds(2));
        assert_has(&metrics, "first_time_to_reconcile_seconds_count{gvk=\"GVK\"} 2");
        assert_has(&metrics, "first_time_to_reconcile_seconds_sum{gvk=\"GVK\"} 3.0");
    }

    #[test]
    fn states_are_counted_once_per_object_whatever_is_said_twice() {
        let metrics = Metrics::new();
        let kind = metrics.kind(&bucket());
        for _ in 0..2 {
            kind.state(&uid(1), true, true);
            kind.state(&uid(2), false, true);
        }
        assert_eq!(kind.lock().counts(), (2, 1, 2));
        kind.state(&uid(1), false, false);
        assert_eq!(kind.lock().counts(), (2, 0, 1));
        kind.deleted(&uid(2), seconds(3));
        kind.forget(&uid(2));
        assert_eq!(kind.lock().counts(), (1, 0, 0));
        assert_has(&metrics, "exists{gvk=\"GVK\"} 1");
        assert_has(&metrics, "deletion_seconds_sum{gvk=\"GVK\"} 3.0");
    }

    #[test]
    fn readiness_counts_once_whatever_came_before_it() {
        let metrics = Metrics::new();
        let kind = metrics.kind(&bucket());
        // Seen from its beginning: what its conditions look like is no matter.
        kind.first_reconcile(&uid(1), seconds(1));
        kind.ready(&uid(1), false, seconds(7));
        kind.ready(&uid(1), true, seconds(9));
        assert_has(&metrics, "first_time_to_readiness_seconds_count{gvk=\"GVK\"} 1");
        // Found there: its conditions are all there is to go by.
        kind.ready(&uid(2), false, seconds(7));
        kind.ready(&uid(2), true, seconds(8));
        kind.ready(&uid(3), true, seconds(9));
        assert_has(&metrics, "first_time_to_readiness_seconds_count{gvk=\"GVK\"} 2");
    }

    #[test]
    fn a_kind_that_nobody_looks_at_has_no_objects() {
        let metrics = Metrics::new();
        let kind = metrics.kind(&bucket());
        kind.state(&uid(1), true, true);
        metrics.forget_objects(&GroupKind::new("example.com", "Other"));
        assert_eq!(kind.lock().counts(), (1, 1, 1));
        metrics.forget_objects(&bucket().group_kind);
        assert_eq!(kind.lock().counts(), (0, 0, 0));
        kind.state(&uid(1), true, true);
        assert_eq!(kind.lock().counts(), (1, 1, 1));
    }

    #[test]
    fn drift_is_the_time_since_it_was_last_seen_unchanged() {
        let metrics = Metrics::new();
        let kind = metrics.kind(&bucket());
        kind.updated(&uid(1), seconds(5));
        assert_has(&metrics, "drift_seconds_count{gvk=\"GVK\"} 0");
        kind.unchanged(&uid(1), seconds(0));
        kind.updated(&uid(1), seconds(8));
        kind.updated(&uid(1), seconds(10));
        assert_has(&metrics, "drift_seconds_count{gvk=\"GVK\"} 2");
        assert_has(&metrics, "drift_seconds_sum{gvk=\"GVK\"} 10.0");
    }

    #[test]
    fn nothing_is_left_of_an_object_that_is_gone() {
        let kind = KindMetrics::default();
        kind.state(&uid(1), true, true);
        kind.unchanged(&uid(1), seconds(1));
        kind.unchanged(&Uid("not-a-uuid".into()), seconds(1));
        assert_eq!(kind.lock().objects.len(), 2);
        kind.forget(&uid(1));
        kind.forget(&Uid("not-a-uuid".into()));
        assert!(kind.lock().objects.is_empty());
    }

    #[test]
    fn an_object_takes_less_than_a_hundred_bytes() {
        // A hash table is at least 7/16 full after it has grown, and has one byte more per place.
        let place = size_of::<(u128, Object)>() + 1;
        assert!(place * 16 / 7 < 100, "{place}");
    }
}
