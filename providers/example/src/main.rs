//! Serves the example provider.
#![allow(clippy::print_stdout, reason = "the addresses are what callers read")]

use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Parser;
use concert_provider::server::Server;
use concert_provider_example::cloud::{Api, Cloud};
use concert_provider_example::flags::Flags;
use concert_provider_example::{Example, control};
use concert_store::{Chance, SystemClock};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    let api = Arc::new(Api::new(cloud(&flags)?, Arc::new(SystemClock::new())));

    let provider =
        Example::new(api.clone()).with_creation_grace(flags.creation_grace).with_claims(flags.claims);
    let server = Server::new(Arc::new(provider))
        .address(flags.address.as_str())
        .protocols(flags.protocol.protocols())
        .drain(flags.drain)
        .bind()
        .await?;
    let listener = match flags.control {
        Some(address) => {
            Some(TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?)
        }
        None => None,
    };
    let control_address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);

    let address = server.address().map_or_else(|| flags.address.clone(), |it| it.to_string());
    println!("{}", json!({ "address": address, "control": control_address }));
    eprintln!("serving on {address}");

    let (stop, stopping) = watch::channel(false);
    // The sender lives until both have ended, so an error here cannot happen before the stop.
    let stopped =
        |mut stopping: watch::Receiver<bool>| async move { drop(stopping.wait_for(|it| *it).await) };
    let until_signal = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        eprintln!("told to stop: finishing what is under way");
        stop.send_replace(true);
    };
    let controlling = async {
        match listener {
            Some(listener) => Ok(control::serve(listener, api, stopped(stopping.clone())).await?),
            None => Ok::<_, anyhow::Error>(()),
        }
    };
    let serving = async { Ok(server.serve(stopped(stopping.clone())).await?) };
    let ended = async { tokio::try_join!(serving, controlling) };
    let mut ended = std::pin::pin!(ended);
    let result = tokio::select! {
        // Without a signal this is an error: the process must not stay up without its servers.
        result = &mut ended => result,
        () = until_signal => ended.await,
    };
    result.map(drop)
}

fn cloud(flags: &Flags) -> anyhow::Result<Cloud> {
    let settings = flags.settings().map_err(|rule| anyhow!(rule))?;
    let chance = flags.seed.map_or_else(Chance::from_system, Chance::seeded);
    let Some(path) = &flags.truth else { return Ok(Cloud::new(settings, chance)) };
    Cloud::open(settings, chance, path).with_context(|| format!("cannot use {}", path.display()))
}
