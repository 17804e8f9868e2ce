//! The managed reconciler inside a program of one's own.
//!
//! Needs a cluster and a provider on port 50051; `--store` and flags are the command line's business.

use std::pin::pin;

use concert_server::Shutdown;
use concert_server::managed::{Controller, ControllerConfig, Options, ProviderConfig, ResourceType};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let config = ControllerConfig {
        providers: vec![ProviderConfig {
            name: "example-provider".into(),
            endpoint: "localhost:50051".into(),
            resource_types: vec![ResourceType {
                api_version: "example.crossplane.io/v1alpha1".into(),
                kind: "ExampleResource".into(),
                ..ResourceType::default()
            }],
            ..ProviderConfig::default()
        }],
    };
    let controller = Controller::new(config, Options::new().with_leader_election(true));

    let shutdown = Shutdown::new();
    let mut run = pin!(controller.run(&shutdown));
    tokio::select! {
        ended = &mut run => return Ok(ended?),
        _ = tokio::signal::ctrl_c() => shutdown.request(),
    }
    // Controllers finish what they are at, and the lease is given free.
    Ok(run.await?)
}
