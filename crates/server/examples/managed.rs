//! The managed reconciler inside a program of one's own.
//!
//! Needs a cluster, and a provider at the endpoint that is its argument (`localhost:50051` without one);
//! `--store` and flags are the command line's business.

use std::pin::pin;

use concert_server::Shutdown;
use concert_server::admin::Address;
use concert_server::managed::{Controller, ControllerConfig, Options, ProviderConfig, ResourceType};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let endpoint = std::env::args().nth(1).unwrap_or_else(|| "localhost:50051".to_owned());
    let config = ControllerConfig {
        providers: vec![ProviderConfig {
            name: "example-provider".into(),
            endpoint,
            resource_types: vec![ResourceType {
                api_version: "example.crossplane.io/v1alpha1".into(),
                kind: "ExampleResource".into(),
                ..ResourceType::default()
            }],
            ..ProviderConfig::default()
        }],
    };
    // Probes and metrics on any free port, for this machine alone.
    let loopback: Address = "127.0.0.1:0".parse()?;
    let options = Options::new()
        .with_leader_election(true)
        .with_health_address(loopback.clone())
        .with_metrics_address(loopback);
    let controller = Controller::new(config, options);

    let shutdown = Shutdown::new();
    let mut run = pin!(controller.run(&shutdown));
    tokio::select! {
        ended = &mut run => return Ok(ended?),
        _ = tokio::signal::ctrl_c() => shutdown.request(),
    }
    // Controllers finish what they are at, and the lease is given free.
    Ok(run.await?)
}
