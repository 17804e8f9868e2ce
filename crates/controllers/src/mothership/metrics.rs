//! A fleet in numbers, for dashboards and autoscaling. No label has an entry in it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::run::{Fleet, Running};
use super::vocabulary::requeue;

/// What is told of each reconciler, in this order.
const GAUGES: [(&str, &str); 3] = [
    ("concert_mothership_queue_age_seconds", "How long the oldest item that is due has waited"),
    ("concert_mothership_queue_depth", "Items that are due and with no host"),
    ("concert_mothership_occupancy_ratio", "Items that hosts have, of those they may"),
];

/// Why items came back so far.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    requeued: [AtomicU64; requeue::ALL.len()],
}

impl Metrics {
    /// An item comes back for this reason.
    pub fn requeued(&self, why: (&'static str, bool)) {
        if let Some(at) = requeue::ALL.iter().position(|it| *it == why) {
            self.requeued[at].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Running {
    /// Writes all metrics of the fleet.
    ///
    /// # Errors
    /// Of the encoder.
    pub fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.encode_requeues(&mut encoder)?;
        self.0.encode_items(&mut encoder)?;
        self.0.encode_crews(&mut encoder)
    }
}

impl Fleet {
    fn encode_requeues(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) = ("concert_mothership_requeue_reason", "Items that come back, by why");
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for ((reason, is_intended), count) in requeue::ALL.iter().zip(&self.metrics.requeued) {
            let kind = if *is_intended { "intended" } else { "unexpected" };
            let labels = [("reason", *reason), ("type", kind)];
            let count = ConstCounter::new(count.load(Ordering::Relaxed));
            count.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_items(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) = ("concert_mothership_items", "Items by state");
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (state, count) in self.counts(&self.items.all()) {
            ConstGauge::new(count as f64).encode(metric.encode_family(&[("state", state.as_str())])?)?;
        }
        Ok(())
    }

    /// What autoscaling looks at: how long what is due has waited, and how busy hosts are.
    fn encode_crews(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut rows: Vec<(Arc<str>, [f64; GAUGES.len()])> = Vec::new();
        for (name, crew) in &*self.crews() {
            let summary = crew.handle.summary();
            let due = summary.depth.ready.iter().sum::<usize>();
            let lent = self.parts.board.view(name).leases;
            let busy = lent as f64 / crew.component.concurrency.max(1) as f64;
            rows.push((name.clone(), [summary.longest_wait.as_secs_f64(), due as f64, busy]));
        }
        for (at, (name, help)) in GAUGES.iter().enumerate() {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (reconciler, values) in &rows {
                let labels = [("reconciler", &**reconciler)];
                ConstGauge::new(values[at]).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
