//! Serves the provider of this machine.
#![allow(clippy::print_stdout, reason = "the address is what callers read")]

use std::sync::Arc;

use anyhow::Result;
use clap::Parser;
use concert_provider::server::Server;
use concert_provider_local::flags::Flags;
use concert_provider_local::{DataFolder, Local, Postgres, Redis, Settings};
use concert_store::{Chance, SystemClock};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<()> {
    let flags = Flags::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let data = DataFolder::open(&flags.data_dir)?;
    let chance = Chance::from_system();
    let settings = Settings {
        program: flags.redis_server,
        ports: flags.redis_ports,
        clock: Arc::new(SystemClock::new()),
        chance: chance.clone(),
    };
    let redis = Arc::new(Redis::open(&data, settings)?);
    let postgres = Postgres::open(&data, &chance)?;
    let provider = Arc::new(Local::new(redis.clone(), postgres));
    let server = Server::new(provider).address(flags.address.as_str()).drain(flags.drain).bind().await?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);

    let address = server.address().map_or_else(|| flags.address.clone(), |it| it.to_string());
    println!("{}", json!({ "address": address }));
    server
        .serve(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("told to stop: finishing what is under way");
        })
        .await?;
    if flags.stop_instances {
        redis.stop_all().await;
    }
    Ok(())
}
