//! `concert migrate-store`: from the file of a folder into a database; and `concert advance-store`, after a copy of
//! the database was put back.

use std::path::Path;
use std::sync::Arc;

use concert_model::Revision;
use concert_store::backend::transfer::Moved;
use concert_store::backend::{Sqlite, sqlite};
use concert_store::seal::Keyring;
use concert_store::{Chance, Clock, Config, Local, SystemClock, local};

use super::data::DataFolder;
use super::error::Error;
use super::storage::{Storage, connect};

/// Copies the store of a folder into an empty database, and reads everything back.
///
/// # Errors
/// [`Error::Store`] when there is none or a control plane has it open, [`Error::Database`],
/// [`Error::Keys`]. The folder is left as it is, and the database as it was.
pub fn migrate(data_dir: &Path, storage: &Storage) -> Result<Moved, Error> {
    let Storage::Database(address, key_file) = storage else {
        return Err(Error::store("no database was named"));
    };
    if !DataFolder::has_store(data_dir) {
        return Err(Error::store(format!("there is no store in {}", data_dir.display())));
    }
    let folder = DataFolder::open(data_dir)?;
    let (clock, chance): (Arc<dyn Clock>, _) = (Arc::new(SystemClock::new()), Chance::from_system());
    let source = Sqlite::open(folder.store(), &sqlite::Options::default()).map_err(Error::store)?;
    let keys = |path: &Path, keyring: Result<Keyring, _>| {
        keyring.map_err(|error: concert_store::seal::KeyError| Error::Keys {
            path: path.to_owned(),
            source: error.into(),
        })
    };
    let theirs = keys(&folder.key(), Keyring::read_from(folder.key()))?;
    let path = key_file.clone().unwrap_or_else(|| folder.key());
    let target = connect(address, &clock, &chance)?;
    let ours = keys(&path, Keyring::open(&path, &chance))?;
    let moved = local::migrate(&source, &theirs, &target, &ours, &chance).map_err(Error::store)?;
    // What cannot be opened again is better heard of now, with the old store still there.
    let store =
        Local::open(Arc::new(target), Config::new(clock, chance).sealed(ours)).map_err(Error::store)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::store)?;
    runtime.block_on(store.verify()).map_err(Error::store)?;
    Ok(moved)
}

/// Moves all numbers of the store in a database far ahead, after a copy of the database was put back. Returns the
/// newest revision from then on.
///
/// # Errors
/// [`Error::Store`] when no database was named or it cannot be written, [`Error::Database`].
pub fn advance(storage: &Storage) -> Result<Revision, Error> {
    let Storage::Database(address, _) = storage else { return Err(Error::store("no database was named")) };
    let (clock, chance): (Arc<dyn Clock>, _) = (Arc::new(SystemClock::new()), Chance::from_system());
    connect(address, &clock, &chance)?.move_ahead().map_err(Error::store)
}
