//! Workers in numbers, for dashboards.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::board::Board;
use super::pool::Counts;

type Row = (Arc<str>, usize, usize, Counts);

impl Board {
    /// Adds the metrics of all workers to a registry of the process.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }
}

impl Collector for Board {
    /// One line per metric, so that a name in a dashboard greps to it.
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let rows = self.numbers();
        let all = &mut encoder;
        gauge(all, &rows, "concert_worker_leases", "Items that hosts have", |it| it.1)?;
        gauge(all, &rows, "concert_worker_waiting_claims", "Claims that wait for work", |it| it.2)?;
        counter(all, &rows, "concert_worker_expired_leases", "Leases that ran out", |it| it.3.expired)?;
        counter(all, &rows, "concert_worker_stale_writes", "Writes refused for their fence", |it| it.3.stale)
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    rows: &[Row],
    name: &str,
    help: &str,
    pick: fn(&Row) -> usize,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for row in rows {
        let value = ConstGauge::new(pick(row) as f64);
        value.encode(metric.encode_family(&[("worker", &*row.0)])?)?;
    }
    Ok(())
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    rows: &[Row],
    name: &str,
    help: &str,
    pick: fn(&Row) -> u64,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for row in rows {
        ConstCounter::new(pick(row)).encode(metric.encode_family(&[("worker", &*row.0)])?)?;
    }
    Ok(())
}
