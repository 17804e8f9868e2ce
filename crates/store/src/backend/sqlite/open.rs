//! Opening, locking and migrating the file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::checkpoint::Checkpointer;
use super::{Sqlite, commit};

/// "CNCT": marks a file as ours.
const APPLICATION_ID: i32 = 0x434e_4354;

/// What each version adds. A file of version n has had the first n applied; forward only.
pub(super) const MIGRATIONS: &[&str] = &[include_str!("001_initial.sql")];

/// Statements kept compiled per connection; there are about twenty in all.
const STATEMENTS_CACHED: usize = 32;

/// How a file is opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The file grows no further than this; writes then fail as on a full disk.
    pub bytes_max: Option<u64>,
}

/// Why a file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Somebody else has it open.
    #[error("{} is in use by another process", .path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// It is something else.
    #[error("{} is not a Concert store", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer Concert wrote it.
    #[error("{} has format version {version}, newer than the {known} this program knows", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: usize,
        /// The newest version known.
        known: usize,
    },
    /// Part of it is missing.
    #[error("{} is cut off: it has {length} bytes of {expected}", .path.display())]
    Cut {
        /// The file.
        path: PathBuf,
        /// How long it is.
        length: u64,
        /// How long it says it is.
        expected: u64,
    },
    /// It cannot be read or written.
    #[error("cannot open {}", .path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: crate::error::BoxError,
    },
}

impl Sqlite {
    /// Opens a file, making or migrating it where needed.
    ///
    /// # Guarantees
    /// Before a migration the file is copied to `FILE.vN.backup`, N being its version until then.
    ///
    /// # Errors
    /// [`OpenError`]; the file is left as it was.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self, OpenError> {
        Self::open_with(path.as_ref(), options, MIGRATIONS)
    }

    fn open_with(path: &Path, options: &Options, migrations: &[&str]) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Failed { path: path.to_owned(), source };
        let lock = lock(path)?;
        touch(path).map_err(|e| failed(e.into()))?;
        let mut connection = Connection::open(path).map_err(|e| failed(e.into()))?;
        let version = version_of(&connection, path, migrations.len())?;
        configure(&connection, options).map_err(|e| failed(e.into()))?;
        migrate(&mut connection, path, version, migrations).map_err(|e| failed(e.into()))?;
        let writer = commit::Writer::new(connection).map_err(|e| failed(e.into()))?;
        let checkpointer = Checkpointer::start(path).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            checkpointer,
            writer: Mutex::new(writer),
            readers: Mutex::new(Vec::new()),
            _lock: lock,
        })
    }
}

/// Makes a file that only its owner can read, if it is not there. SQLite gives its side files the same mode.
pub(super) fn touch(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let failed = |source: io::Error| OpenError::Failed { path: path.to_owned(), source: source.into() };
    // The lock is on a file beside the store: SQLite uses locks on the store itself.
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let file = touch(Path::new(&beside)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(e)) => Err(failed(e)),
    }
}

/// The version of the file, 0 for a new one, without changing it.
pub(super) fn version_of(connection: &Connection, path: &Path, known: usize) -> Result<usize, OpenError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let read = || -> rusqlite::Result<(i64, i64, i64)> {
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((pragma("application_id")?, pragma("user_version")?, tables))
    };
    let foreign = || OpenError::Foreign { path: path.to_owned() };
    let (id, version, tables) = read().map_err(|e| match e.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => foreign(),
        _ => OpenError::Failed { path: path.to_owned(), source: e.into() },
    })?;
    if id == 0 && version == 0 && tables == 0 {
        return Ok(0);
    }
    if id != i64::from(APPLICATION_ID) {
        return Err(foreign());
    }
    match usize::try_from(version) {
        Ok(version) if version > known => Err(OpenError::Newer { path: path.to_owned(), version, known }),
        Ok(version) => Ok(version),
        Err(_) => Err(foreign()),
    }
}

/// What readers and the writer have in common.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // Plans that do not depend on bound values: otherwise SQLite compiles a statement again for each new
    // value, which took a third of all time of a busy store.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// A connection that moves the write-ahead log into the file.
pub(super) fn checkpointer(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    prepare(&connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

fn configure(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    prepare(connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // 16 MiB of pages: the upper levels of every tree and the ends of the log stay in memory.
    connection.pragma_update(None, "cache_size", -16_384)?;
    // Checkpoints run beside the writer. Under constant load they never get to the end of the log, so now and
    // then the writer does the rest, and the log begins anew.
    connection.pragma_update(None, "wal_autocheckpoint", 16_384)?;
    // A log that a long read has let grow shrinks again.
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    if let Some(bytes) = options.bytes_max {
        let page: u64 =
            connection.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))?.unsigned_abs();
        connection.pragma_update(None, "max_page_count", (bytes / page).max(1).cast_signed())?;
    }
    Ok(())
}

fn migrate(
    connection: &mut Connection,
    path: &Path,
    version: usize,
    migrations: &[&str],
) -> rusqlite::Result<()> {
    if version > 0 && version < migrations.len() {
        let mut target = path.as_os_str().to_owned();
        target.push(format!(".v{version}.backup"));
        let mut fresh = target.clone();
        fresh.push(".new");
        // Left behind by a try that was cut off.
        let _ = std::fs::remove_file(&fresh);
        copy(connection, Path::new(&fresh))?;
        std::fs::rename(&fresh, &target).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
    }
    upgrade(connection, version, migrations)
}

/// Brings a file of `version` up to date, step by step.
pub(super) fn upgrade(
    connection: &mut Connection,
    version: usize,
    migrations: &[&str],
) -> rusqlite::Result<()> {
    for (i, script) in migrations.iter().enumerate().skip(version) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(script)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", (i + 1).cast_signed() as i64)?;
        transaction.commit()?;
    }
    Ok(())
}

pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    // 2 MiB each: readers lean on the operating system's cache.
    connection.pragma_update(None, "cache_size", -2_048)?;
    Ok(connection)
}

/// A consistent, compact copy of the file, for before a migration; fails if the target exists and is not empty.
fn copy(connection: &Connection, target: &Path) -> rusqlite::Result<()> {
    let Some(target) = target.to_str() else {
        return Err(rusqlite::Error::InvalidPath(target.to_owned()));
    };
    // An empty file is taken for none, but keeps its mode.
    touch(Path::new(target)).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
    connection.execute("VACUUM INTO ?1", [target]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_second_opener_is_told_that_the_file_is_in_use() {
        let folder = folder();
        let path = folder.path().join("store.db");
        let first = Sqlite::open(&path, &Options::default()).unwrap();
        assert!(matches!(Sqlite::open(&path, &Options::default()), Err(OpenError::Locked { .. })));
        drop(first);
        Sqlite::open(&path, &Options::default()).unwrap();
    }

    #[test]
    fn what_is_not_a_store_is_left_alone() {
        let folder = folder();
        let text = folder.path().join("notes.txt");
        std::fs::write(&text, "x".repeat(10_000)).unwrap();
        assert!(matches!(Sqlite::open(&text, &Options::default()), Err(OpenError::Foreign { .. })));
        assert_eq!(std::fs::read_to_string(&text).unwrap(), "x".repeat(10_000));

        let other = folder.path().join("other.db");
        Connection::open(&other)
            .unwrap()
            .execute_batch("CREATE TABLE t (a); PRAGMA user_version = 3")
            .unwrap();
        assert!(matches!(Sqlite::open(&other, &Options::default()), Err(OpenError::Foreign { .. })));
    }

    #[test]
    fn a_file_of_a_newer_version_is_refused_by_name() {
        let folder = folder();
        let path = folder.path().join("store.db");
        drop(Sqlite::open(&path, &Options::default()).unwrap());
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        let error = Sqlite::open(&path, &Options::default()).unwrap_err();
        assert!(matches!(error, OpenError::Newer { version: 99, .. }), "{error}");
    }

    #[test]
    fn a_migration_leaves_a_backup_of_the_version_before() {
        let folder = folder();
        let path = folder.path().join("store.db");
        drop(Sqlite::open(&path, &Options::default()).unwrap());
        let next: Vec<&str> = MIGRATIONS.iter().copied().chain(["CREATE TABLE later (a)"]).collect();
        drop(Sqlite::open_with(&path, &Options::default(), &next).unwrap());
        let version = |path: &Path| {
            let connection = Connection::open(path).unwrap();
            connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).unwrap()
        };
        assert_eq!(version(&path) as usize, MIGRATIONS.len() + 1);
        assert_eq!(version(&folder.path().join("store.db.v1.backup")) as usize, MIGRATIONS.len());
    }

    #[cfg(unix)]
    #[test]
    fn no_file_can_be_read_by_others() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder();
        let store = Sqlite::open(folder.path().join("store.db"), &Options::default()).unwrap();
        store.backup_to(&folder.path().join("copy.db")).unwrap();
        let entries: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
        assert!(entries.len() >= 4, "store, log, lock and copy");
        for entry in entries {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", entry.path().display());
        }
    }

    #[test]
    fn a_migration_that_was_cut_off_can_be_tried_again() {
        let folder = folder();
        let path = folder.path().join("store.db");
        drop(Sqlite::open(&path, &Options::default()).unwrap());
        std::fs::write(folder.path().join("store.db.v1.backup.new"), "half").unwrap();
        std::fs::write(folder.path().join("store.db.v1.backup"), "earlier").unwrap();
        let next: Vec<&str> = MIGRATIONS.iter().copied().chain(["CREATE TABLE later (a)"]).collect();
        Sqlite::open_with(&path, &Options::default(), &next).unwrap();
    }

    #[test]
    fn a_failed_migration_changes_nothing() {
        let folder = folder();
        let path = folder.path().join("store.db");
        drop(Sqlite::open(&path, &Options::default()).unwrap());
        let bad: Vec<&str> =
            MIGRATIONS.iter().copied().chain(["CREATE TABLE later (a); CREATE TABLE later (a)"]).collect();
        assert!(Sqlite::open_with(&path, &Options::default(), &bad).is_err());
        Sqlite::open(&path, &Options::default()).unwrap();
    }
}
