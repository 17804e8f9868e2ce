//! Copies of the file: making one while it is in use, and taking one back.
//!
//! A store that takes a copy back goes on far ahead of every revision that was ever given out, with all it
//! took back moved there too. So no position, resource version or claim from before can be mistaken for
//! one from after: watches are expired, updates conflict, claims are lost.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, params};

use super::commit::{Numbers, Writer};
use super::open::{OpenError, touch, upgrade, version_of};
use super::{Failure, failure, read};
use crate::backend::numbers::LEAP;
use crate::backend::{Renew, Shelf};

/// Payloads looked at in one step.
const STEP_ROWS: usize = 500;

/// Copies all that `connection` sees to a new file. What was cut off leaves no `target` behind.
pub(super) fn write(connection: &Connection, target: &Path) -> Result<(), Failure> {
    if target.exists() {
        return Err(Failure::broken(format!("{} is there already", target.display())));
    }
    let fresh = beside(target, ".new");
    let filled = fill(connection, &fresh).map(drop);
    let written = filled.and_then(|()| std::fs::rename(&fresh, target).map_err(broken));
    if written.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    written.and_then(|()| sync_folder(target).map_err(broken))
}

/// Fills a file with all that `connection` sees; readable from a place that cannot be written to.
fn fill(connection: &Connection, target: &Path) -> Result<Connection, Failure> {
    // Left behind by a try that was cut off.
    let _ = std::fs::remove_file(target);
    touch(target).map_err(broken)?;
    let mut copy = Connection::open(target).map_err(failure)?;
    {
        let backup = Backup::new(connection, &mut copy).map_err(failure)?;
        // All pages in one step: they are of one moment, and writers go on meanwhile.
        if backup.step(-1).map_err(failure)? != StepResult::Done {
            return Err(Failure::broken("the store is too busy to be copied"));
        }
    }
    copy.pragma_update(None, "journal_mode", "DELETE").map_err(failure)?;
    Ok(copy)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all())
}

fn broken(error: impl Into<crate::error::BoxError>) -> Failure {
    Failure::Broken(error.into())
}

/// Refuses a file that has fewer pages than it says. SQLite itself would notice only when it gets there.
fn check_length(source: &Path) -> Result<(), Failure> {
    let mut file = File::open(source).map_err(|source_of| unreadable(source, source_of))?;
    let length = file.metadata().map_err(broken)?.len();
    let mut head = [0; 100];
    if file.read_exact(&mut head).is_err() {
        // Too short to say anything: what it is will be found out.
        return Ok(());
    }
    let page = u64::from(u16::from_be_bytes([head[16], head[17]]));
    // The format's way to say 65,536.
    let page = if page == 1 { 65_536 } else { page };
    let pages = u64::from(u32::from_be_bytes([head[28], head[29], head[30], head[31]]));
    let expected = page * pages;
    if head.starts_with(b"SQLite format 3\0") && length < expected {
        return Err(broken(OpenError::Cut { path: source.to_owned(), length, expected }));
    }
    Ok(())
}

fn unreadable(path: &Path, error: io::Error) -> Failure {
    broken(OpenError::Failed { path: path.to_owned(), source: error.into() })
}

/// A copy that was found good, in the format of today, in a file of its own that goes with it.
pub(super) struct Staged {
    path: PathBuf,
    connection: Connection,
}

impl Staged {
    /// Reads the copy `source` into a file beside `store`.
    pub(super) fn read(source: &Path, store: &Path, migrations: &[&str]) -> Result<Self, Failure> {
        check_length(source)?;
        let foreign = || broken(OpenError::Foreign { path: source.to_owned() });
        let original =
            Connection::open_with_flags(source, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failure)?;
        let version = version_of(&original, source, migrations.len()).map_err(broken)?;
        if version == 0 {
            return Err(foreign());
        }
        let path = beside(store, ".restore");
        let mut staged = Self { connection: fill(&original, &path)?, path };
        let verdict: String =
            staged.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failure)?;
        if verdict != "ok" {
            return Err(Failure::broken(format!("{} is damaged: {verdict}", source.display())));
        }
        upgrade(&mut staged.connection, version, migrations).map_err(failure)?;
        Ok(staged)
    }

    /// Shows every payload to `renew`, and puts what that gives in its place.
    pub(super) fn renew(&self, renew: &Renew<'_>) -> Result<(), Failure> {
        let transaction = self.connection.unchecked_transaction().map_err(failure)?;
        for shelf in [Shelf::Objects, Shelf::Work, Shelf::Attempts] {
            let mut after = 0;
            loop {
                let payloads = read::payloads(&transaction, shelf, after, STEP_ROWS).map_err(failure)?;
                let Some(last) = payloads.last() else { break };
                after = last.place;
                for payload in &payloads {
                    if let Some(bytes) = renew(&payload.owner, &payload.bytes)? {
                        let values = params![payload.place.cast_signed(), bytes.as_ref()];
                        transaction.execute(replacing(shelf), values).map_err(failure)?;
                    }
                }
            }
        }
        transaction.commit().map_err(failure)
    }
}

fn replacing(shelf: Shelf) -> &'static str {
    match shelf {
        Shelf::Objects => "UPDATE bodies SET payload = ?2 WHERE revision = ?1",
        Shelf::Work => "UPDATE work SET body = ?2 WHERE id = ?1",
        Shelf::Attempts => "UPDATE attempts SET body = ?2 WHERE id = ?1",
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // What stays is overwritten by the next.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Everything there is, replaced. `?1` is how far revisions move, `?2` how far claims do.
const REPLACE: &[&str] = &[
    "DELETE FROM main.kinds",
    "DELETE FROM main.objects",
    "DELETE FROM main.log",
    "DELETE FROM main.bodies",
    "DELETE FROM main.work",
    "DELETE FROM main.attempts",
    "INSERT INTO main.kinds SELECT id, group_name, kind FROM copy.kinds",
    "INSERT INTO main.objects SELECT kind, namespace, name, revision + ?1, is_free FROM copy.objects",
    "INSERT INTO main.log SELECT revision + ?1, kind, namespace, name, act, previous + ?1, at, actor, reason, \
     manager, head FROM copy.log",
    // Only what is current: nobody can ask for the rest.
    "INSERT INTO main.bodies SELECT b.revision + ?1, b.payload FROM copy.bodies b \
     WHERE b.revision IN (SELECT revision FROM copy.objects WHERE NOT is_free)",
    "INSERT INTO main.work SELECT id, controller, item, fence + ?2, body FROM copy.work",
    "INSERT INTO main.attempts SELECT id, controller, item, at, body FROM copy.attempts",
];

impl Writer {
    /// Takes a copy in the place of all there is, in one transaction.
    pub(super) fn restore(&mut self, staged: &Staged) -> Result<(), Failure> {
        let path = staged.path.to_str().ok_or_else(|| Failure::broken("the path is not UTF-8"))?;
        self.connection.execute("ATTACH DATABASE ?1 AS copy", [path]).map_err(failure)?;
        let result = self.transact(Self::replace_all);
        self.forget_kinds();
        // A statement that is kept would hold on to the copy.
        self.connection.flush_prepared_statement_cache();
        let detached = self.connection.execute_batch("DETACH DATABASE copy").map_err(failure);
        result.and(detached)
    }

    fn replace_all(&mut self) -> rusqlite::Result<()> {
        let (newest, claims) = self.connection.query_row(
            "SELECT max(coalesce((SELECT max(revision) FROM copy.log), 0), \
             (SELECT value FROM copy.meta WHERE name = 'newest')), \
             (SELECT value FROM copy.meta WHERE name = 'claims')",
            [],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        )?;
        let ahead = (self.newest() - newest).max(0).saturating_add(LEAP);
        let fences = self.numbers.claims.max(claims);
        for sql in REPLACE {
            let mut statement = self.connection.prepare(sql)?;
            match statement.parameter_count() {
                0 => statement.execute([])?,
                1 => statement.execute([ahead])?,
                _ => statement.execute(params![ahead, fences])?,
            };
        }
        let (newest, claims) = (newest.saturating_add(ahead), claims + fences);
        self.numbers = Numbers { newest, claims };
        for (name, value) in [("newest", newest), ("compacted", newest), ("claims", claims)] {
            self.connection
                .execute("UPDATE main.meta SET value = ?2 WHERE name = ?1", params![name, value])?;
        }
        Ok(())
    }
}
