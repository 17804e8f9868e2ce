//! What is counted beside the controllers: who leads, and what is asked of the store.

use std::fmt;
use std::sync::Arc;

use concert_engine::Watched;
use concert_engine::leader::State;
use concert_store::kubernetes::Requests;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Looked up at the moment somebody asks.
pub(super) struct Surroundings {
    /// The name of the lease and where the election stands; none without one.
    pub election: Option<(String, Arc<Watched<State>>)>,
    pub requests: Option<Requests>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Surroundings")
    }
}

impl Collector for Surroundings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if let Some((name, state)) = &self.election {
            let help = "Whether this process leads";
            let mut metric =
                encoder.encode_descriptor("leader_election_master_status", help, None, MetricType::Gauge)?;
            let leads = i64::from(matches!(state.get(), State::Leading { .. }));
            ConstGauge::new(leads).encode(metric.encode_family(&[("name", name.as_str())])?)?;
        }
        if let Some(requests) = &self.requests {
            let help = "Requests sent to the API server";
            let mut metric =
                encoder.encode_descriptor("concert_store_requests", help, None, MetricType::Counter)?;
            for (verb, resource, count) in requests.snapshot() {
                let labels = [("verb", verb.to_string()), ("resource", resource.to_string())];
                ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
