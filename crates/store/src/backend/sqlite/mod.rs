//! A SQLite file.
//!
//! One writer connection, used by one thread at a time; readers have connections of their own, and
//! with the write-ahead log neither waits for the other. Full sync: what is answered is on the disk.
//!
//! | table | row |
//! |---|---|
//! | `kinds` | a number for each (group, kind) |
//! | `objects` | where the newest log row of each key is, freed keys included |
//! | `log` | one row per write: key, act, row before, who, why, when, head |
//! | `bodies` | the sealed payload of a log row; dropped by compaction |
//! | `work`, `attempts` | work state and recorded attempts |
//! | `meta` | numbers that outlive rows: compaction floor, claims, revision floor |

mod checkpoint;
mod commit;
mod compact;
mod copy;
mod export;
mod open;
mod read;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use concert_model::{GroupKind, ObjectKey, Revision, Timestamp};
use rusqlite::{Connection, ErrorCode};

use super::{
    Attempt, Backend, Bounds, Change, Failure, Past, Payload, Range, Renew, Row, Scan, Shelf, Txn, Verdict,
};
use crate::contract::ItemKey;
use crate::work::WorkRow;

pub use open::{OpenError, Options};

/// Idle reader connections kept. More are opened when more reads run at once, and closed afterwards.
const IDLE_READERS_MAX: usize = 8;

/// A backend in one file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    // Declared before the writer, so closed before it: whoever closes last moves the write-ahead log into
    // the file, and readers may not.
    readers: Mutex<Vec<Connection>>,
    checkpointer: checkpoint::Checkpointer,
    writer: Mutex<commit::Writer>,
    /// Held for as long as the file is open: a second process must not write to it.
    _lock: std::fs::File,
}

impl Sqlite {
    fn writer(&self) -> MutexGuard<'_, commit::Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_readers(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads within one snapshot of the file.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, Failure> {
        let idle = self.idle_readers().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::reader(&self.path).map_err(failure)?,
        };
        let result = work(&connection);
        let mut idle = self.idle_readers();
        if idle.len() < IDLE_READERS_MAX {
            idle.push(connection);
        }
        result
    }
}

impl Backend for Sqlite {
    fn bounds(&self) -> Result<Bounds, Failure> {
        self.read(|c| read::bounds(c).map_err(failure))
    }

    fn get(&self, key: &ObjectKey) -> Result<Option<Row>, Failure> {
        self.read(|c| read::get(c, key).map_err(failure))
    }

    fn range(&self, scan: &Scan<'_>) -> Result<Range, Failure> {
        self.read(|c| read::snapshot(c, |c| read::range(c, scan)))
    }

    fn count(&self, kind: &GroupKind, namespace: Option<&str>, after: &ObjectKey) -> Result<usize, Failure> {
        self.read(|c| read::count(c, kind, namespace, after).map_err(failure))
    }

    fn tail(&self, after: Revision, limit: usize) -> Result<Vec<Change>, Failure> {
        self.read(|c| read::snapshot(c, |c| read::tail(c, after, limit)))
    }

    fn history(&self, key: &ObjectKey, before: Option<Revision>, limit: usize) -> Result<Vec<Past>, Failure> {
        self.read(|c| read::snapshot(c, |c| read::history(c, key, before, limit).map_err(failure)))
    }

    fn work(&self, item: &ItemKey) -> Result<Option<WorkRow>, Failure> {
        self.read(|c| read::work(c, item).map_err(failure))
    }

    fn work_of(&self, controller: &str) -> Result<Vec<WorkRow>, Failure> {
        self.read(|c| read::work_of(c, controller).map_err(failure))
    }

    fn attempts(&self, item: &ItemKey, limit: usize) -> Result<Vec<Attempt>, Failure> {
        self.read(|c| read::attempts(c, item, limit).map_err(failure))
    }

    fn commit(&self, batch: &[Txn]) -> Result<Vec<Verdict>, Failure> {
        let verdicts = self.writer().commit(batch)?;
        self.checkpointer.committed(batch.len());
        Ok(verdicts)
    }

    fn compact(&self, floor: Revision, limit: usize) -> Result<Revision, Failure> {
        self.writer().compact(floor, limit)
    }

    fn forget(&self, before: Timestamp, limit: usize) -> Result<usize, Failure> {
        self.writer().forget(before, limit)
    }

    fn payloads(&self, shelf: Shelf, after: u64, limit: usize) -> Result<Vec<Payload>, Failure> {
        self.read(|c| read::payloads(c, shelf, after, limit).map_err(failure))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn backup_to(&self, target: &Path) -> Result<(), Failure> {
        self.read(|connection| copy::write(connection, target))
    }

    fn restore_from(&self, source: &Path, renew: &Renew<'_>) -> Result<(), Failure> {
        let staged = copy::Staged::read(source, &self.path, open::MIGRATIONS)?;
        staged.renew(renew)?;
        self.writer().restore(&staged)
    }
}

fn failure(error: rusqlite::Error) -> Failure {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Failure::Full,
        _ => Failure::Broken(error.into()),
    }
}

fn bytes_of(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Bytes> {
    row.get_ref(column)?.as_blob().map(Bytes::copy_from_slice).map_err(Into::into)
}
