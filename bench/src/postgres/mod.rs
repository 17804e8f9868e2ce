//! A PostgreSQL database as the store: the API on it beside the same on the embedded store and beside a real
//! kube-apiserver with etcd, then the store alone beside the embedded one. One machine, one run, and everybody
//! syncs every commit.

mod api;
mod store;

use anyhow::{Context, Result};
use concert_testbed::Postgres;

use crate::Scale;
use crate::report::Report;

/// Runs all of it.
pub fn run(scale: Scale, report: &mut Report) -> Result<()> {
    let server = Postgres::start(&["fsync=on", "shared_buffers=256MB"])?;
    let server = server.context("PostgreSQL is not installed: run scripts/services")?;
    api::run(&server, scale, report)?;
    store::run(server, scale, report)
}
