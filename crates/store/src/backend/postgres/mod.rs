//! A PostgreSQL database, which any number of processes may share.
//!
//! The tables are those of the [SQLite file](super::sqlite), with kinds written out. What is different is
//! that others write too: one lock orders all commits, and what others commit is heard of over a channel
//! and read from the log.
//!
//! Calls are plain functions: connections are driven by a thread of their own, and whoever calls waits.

mod address;
mod ahead;
mod commit;
mod compact;
mod connect;
mod import;
mod listen;
mod open;
mod patience;
mod plan;
mod pool;
mod range;
mod read;
mod steps;
mod tls;
mod trouble;
mod wait;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_model::{GroupKind, ObjectKey, Revision, Timestamp};
use tokio::runtime::{Handle, Runtime};

use super::{
    Attempt, Backend, Bell, Bounds, Change, Failure, Past, Payload, Range, Renew, Row, Scan, Shelf, Txn,
    Verdict,
};
use crate::chance::Chance;
use crate::clock::Clock;
use crate::contract::ItemKey;
use crate::work::WorkRow;
use connect::Connection;

pub use address::Address;
pub use trouble::Trouble;

/// How a database is used.
pub struct Options {
    /// By which tries are spaced.
    pub clock: Arc<dyn Clock>,
    /// Where the number of this process comes from.
    pub chance: Chance,
    /// For how long a call is tried again when the connection is lost.
    pub patience: Duration,
    /// After how long the server ends a statement, whatever the role or the database say of it. What
    /// moves whole tables has no such limit.
    pub statement_limit: Duration,
}

/// No statement of ours takes as long, unless the server is in trouble.
const STATEMENT_LIMIT: Duration = Duration::from_secs(30);

impl Options {
    /// The usual way: a restart of the server is sat out.
    pub fn new(clock: Arc<dyn Clock>, chance: Chance) -> Self {
        Self { clock, chance, patience: Duration::from_secs(10), statement_limit: STATEMENT_LIMIT }
    }
}

/// A backend in a database.
pub struct Postgres {
    address: Address,
    readers: pool::Pool,
    writer: Mutex<commit::Writer>,
    patience: patience::Patience,
    bell: Arc<Bell>,
    // Declared last: it drives the connections of all others.
    _runtime: Threads,
}

/// The runtime that drives connections. May be dropped anywhere, also on a thread that runs tasks.
struct Threads(Option<Runtime>);

impl Threads {
    fn new(runtime: Runtime) -> Self {
        Self(Some(runtime))
    }

    fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle().clone()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Postgres {
    /// Where it is; without the password.
    pub fn address(&self) -> &Address {
        &self.address
    }

    fn read<T>(&self, work: impl AsyncFn(&mut Connection) -> Result<T, Trouble>) -> Result<T, Failure> {
        Ok(self.readers.read(&self.patience, work)?)
    }

    fn writer(&self) -> MutexGuard<'_, commit::Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Postgres {
    fn bounds(&self) -> Result<Bounds, Failure> {
        self.read(async |c| read::bounds(c).await)
    }

    fn get(&self, key: &ObjectKey) -> Result<Option<Row>, Failure> {
        self.read(async |c| read::get(c, key).await)
    }

    fn range(&self, scan: &Scan<'_>) -> Result<Range, Failure> {
        self.read(async |c| range::range(c, scan).await)?.ok_or(Failure::Compacted)
    }

    fn count(&self, kind: &GroupKind, namespace: Option<&str>, after: &ObjectKey) -> Result<usize, Failure> {
        self.read(async |c| read::count(c, kind, namespace, after).await)
    }

    fn tail(&self, after: Revision, limit: usize) -> Result<Vec<Change>, Failure> {
        self.read(async |c| read::tail(c, after, limit).await)?.ok_or(Failure::Compacted)
    }

    fn history(&self, key: &ObjectKey, before: Option<Revision>, limit: usize) -> Result<Vec<Past>, Failure> {
        self.read(async |c| read::history(c, key, before, limit).await)
    }

    fn work(&self, item: &ItemKey) -> Result<Option<WorkRow>, Failure> {
        self.read(async |c| read::work(c, item).await)
    }

    fn work_of(&self, controller: &str) -> Result<Vec<WorkRow>, Failure> {
        self.read(async |c| read::work_of(c, controller).await)
    }

    fn attempts(&self, item: &ItemKey, limit: usize) -> Result<Vec<Attempt>, Failure> {
        self.read(async |c| read::attempts(c, item, limit).await)
    }

    fn commit(&self, batch: &[Txn]) -> Result<Vec<Verdict>, Failure> {
        Ok(self.writer().commit(&self.patience, batch)?)
    }

    fn compact(&self, floor: Revision, limit: usize) -> Result<Revision, Failure> {
        Ok(self.writer().compact(floor, limit)?)
    }

    fn forget(&self, before: Timestamp, limit: usize) -> Result<usize, Failure> {
        Ok(self.writer().forget(before, limit)?)
    }

    fn payloads(&self, shelf: Shelf, after: u64, limit: usize) -> Result<Vec<Payload>, Failure> {
        self.read(async |c| read::payloads(c, shelf, after, limit).await)
    }

    fn is_local(&self) -> bool {
        false
    }

    fn bell(&self) -> Option<&Bell> {
        Some(&self.bell)
    }

    fn backup_to(&self, _: &Path) -> Result<(), Failure> {
        Err(Failure::broken("a store in PostgreSQL is copied with pg_dump, or as the whole server is"))
    }

    fn restore_from(&self, _: &Path, _: &Renew<'_>) -> Result<(), Failure> {
        Err(Failure::broken(
            "a store in PostgreSQL is put back with pg_restore, and then `concert advance-store`, while no replica runs",
        ))
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Postgres").field(&self.address).finish()
    }
}
