//! `concert-fleet`: component reconcilers of a fleet of clusters, one for each word on the command line.
//!
//! Each runs as a process of its own, and knows of the others only what the inventory says. `gardener` is
//! no reconciler: it stands in for what completes Shoots.

mod cluster;
mod component;
mod flags;
mod gardener;
mod kubeconfig;
mod proxy;
mod shoot;

use clap::Parser as _;
use concert_worker::{Component, Registration, Worker};
use tokio::signal::unix::{SignalKind, signal};

use flags::{Common, Flags, Role};

fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    tracing_subscriber::fmt().json().flatten_event(true).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run(flags))
}

async fn run(flags: Flags) -> anyhow::Result<()> {
    let common = flags.common;
    match flags.role {
        Role::Shoot(its) => work(&common, shoot::registration(), shoot::Shoots::new(&its).await?).await,
        Role::Kubeconfig(its) => {
            let reconciler = kubeconfig::Kubeconfigs::new(&its).await?;
            work(&common, kubeconfig::registration(), reconciler).await
        }
        Role::Component => work(&common, component::registration(), component::Installer::default()).await,
        Role::ConnectivityProxy => work(&common, proxy::registration(), proxy::Proxies::default()).await,
        Role::Gardener(its) => tokio::select! {
            ended = gardener::run(&its) => ended,
            () = told_to_stop()? => Ok(()),
        },
    }
}

async fn work<C: Component>(common: &Common, registration: Registration, component: C) -> anyhow::Result<()> {
    let registration = common.adjust(registration);
    Worker::new(common.server()?, registration, component).run(told_to_stop()?).await?;
    Ok(())
}

/// Completes with SIGTERM or SIGINT.
fn told_to_stop() -> anyhow::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
