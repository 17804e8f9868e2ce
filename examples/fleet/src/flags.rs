//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use concert_model::duration;
use concert_worker::{Registration, Server};

/// Component reconcilers of a fleet of clusters.
///
/// Durations are written as 250ms, 5s or 1m30s.
#[derive(Debug, Parser)]
#[command(name = "concert-fleet")]
pub struct Flags {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub role: Role,
}

#[derive(Debug, Args)]
pub struct Common {
    /// Address of the mothership.
    #[arg(long, global = true, default_value = "https://127.0.0.1:8000")]
    server: String,
    /// File with the token to identify with. Read again when the token is refused.
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificates (PEM) of the authorities that signed those of the mothership and of the inventory.
    #[arg(long, global = true, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// How long this host may be silent before somebody else gets its entries.
    #[arg(long, global = true, value_parser = duration::parse, default_value = "60s")]
    lease: Duration,
    /// Run again after this time even if nothing happens.
    #[arg(long, global = true, value_parser = duration::parse, default_value = "5m")]
    resync: Duration,
}

#[derive(Debug, Subcommand)]
pub enum Role {
    /// U2: has a Shoot made for every entry that has a network.
    Shoot(Garden),
    /// U3 and U4: issues and rotates restricted kubeconfigs.
    Kubeconfig(Kubeconfig),
    /// U5: installs, updates and repairs a component in the cluster.
    Component,
    /// U5: installs a proxy where somebody wants connectivity.
    ConnectivityProxy,
    /// Stands in for what completes Shoots. No reconciler.
    Gardener(Gardener),
}

/// Where Shoots are declared.
#[derive(Debug, Args)]
pub struct Garden {
    /// kubeconfig of the garden.
    #[arg(long, value_name = "FILE")]
    pub garden: PathBuf,
    /// How often to look whether a Shoot is ready.
    #[arg(long, value_parser = duration::parse, default_value = "5s")]
    pub poll: Duration,
}

#[derive(Debug, Args)]
pub struct Kubeconfig {
    #[command(flatten)]
    pub garden: Garden,
    /// How long a token is valid. Kubernetes gives none for less than ten minutes.
    #[arg(long, value_parser = duration::parse, default_value = "1h")]
    pub lifetime: Duration,
    /// From which part of its lifetime on a token may be replaced.
    #[arg(long, default_value_t = 0.6)]
    pub rotate_from: f64,
    /// At which part of its lifetime a token must have been replaced.
    #[arg(long, default_value_t = 0.9)]
    pub rotate_until: f64,
}

#[derive(Debug, Args)]
pub struct Gardener {
    /// kubeconfig of the garden.
    #[arg(long, value_name = "FILE")]
    pub garden: PathBuf,
    /// kubeconfig of the cluster that every Shoot turns out to be.
    #[arg(long, value_name = "FILE")]
    pub cluster: PathBuf,
    /// Between two steps of anything.
    #[arg(long, value_parser = duration::parse, default_value = "500ms")]
    pub pace: Duration,
}

impl Common {
    /// The mothership.
    pub fn server(&self) -> anyhow::Result<Server> {
        let mut server = Server::new(&self.server)?;
        if let Some(path) = &self.authority {
            let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            server = server.authority(&pem)?;
        }
        if let Some(path) = &self.token_file {
            server = server.token_file(path)?;
        }
        Ok(server)
    }

    /// A registration with what the flags say.
    pub fn adjust(&self, registration: Registration) -> Registration {
        registration.lease(self.lease).resync(self.resync)
    }
}
