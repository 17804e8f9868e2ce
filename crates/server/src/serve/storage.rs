//! Where a control plane keeps its objects: in a file of its folder, or in a database that replicas share.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use concert_store::backend::postgres::{Address, Options, Trouble};
use concert_store::backend::{Backend as _, Postgres, Shelf};
use concert_store::seal::Keyring;
use concert_store::{Chance, Clock, Config, Local};
use serde::{Deserialize, Serialize};

use super::data::DataFolder;
use super::error::Error;

/// An address with a password in it: never shown, and never written anywhere.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct StoreUrl(String);

impl From<String> for StoreUrl {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreUrl")
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match Address::parse(&self.0) {
            Ok(address) => serializer.serialize_str(&address.to_string()),
            Err(_) => serializer.serialize_str("(not an address)"),
        }
    }
}

/// Where objects are kept.
#[derive(Clone, Debug, Default)]
pub enum Storage {
    /// In a file of the folder.
    #[default]
    Folder,
    /// In a database, sealed with the keys of this file; those of the folder if there is none.
    Database(Box<Address>, Option<PathBuf>),
}

impl Storage {
    /// What was asked for; what is wrong with it goes to `findings`.
    pub(super) fn resolve(
        store: Option<&StoreUrl>,
        key_file: Option<PathBuf>,
        findings: &mut Vec<String>,
    ) -> Self {
        let Some(StoreUrl(text)) = store else {
            if key_file.is_some() {
                findings.push("keyFile: means nothing without store, which has a key of its own".to_owned());
            }
            return Self::Folder;
        };
        match Address::parse(text) {
            Ok(address) => Self::Database(Box::new(address), key_file),
            Err(trouble) => {
                findings.push(format!("store: {trouble}; it is written {}", trouble.hint()));
                Self::Folder
            }
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Database`], [`Error::Keys`].
    pub(super) async fn open(
        &self,
        folder: &DataFolder,
        clock: &Arc<dyn Clock>,
        chance: &Chance,
    ) -> Result<Local, Error> {
        let Self::Database(address, key_file) = self else {
            return folder.open_store(clock, chance).map(|(store, _)| store);
        };
        let (address, clock, chance) = (address.clone(), clock.clone(), chance.fork());
        let key_file = key_file.clone().unwrap_or_else(|| folder.key());
        let open = move || {
            let backend = connect(&address, &clock, &chance)?;
            let is_new = backend.payloads(Shelf::Objects, 0, 1).map_err(Error::store)?.is_empty();
            // A key of its own would open nothing of what is there.
            let keyring =
                if is_new { Keyring::open(&key_file, &chance) } else { Keyring::read_from(&key_file) };
            let failed = |source| Error::Keys { path: key_file.clone(), source };
            let keyring = keyring.map_err(|error| failed(error.into()))?;
            let config = Config::new(clock, chance).sealed(keyring);
            Local::open(Arc::new(backend), config).map_err(|error| failed(error.into()))
        };
        tokio::task::spawn_blocking(open).await.map_err(Error::store)?
    }
}

pub(super) fn connect(address: &Address, clock: &Arc<dyn Clock>, chance: &Chance) -> Result<Postgres, Error> {
    let options = Options::new(clock.clone(), chance.fork());
    Postgres::open(address, options).map_err(|trouble: Trouble| Error::Database(Box::new(trouble)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str, key_file: Option<&str>) -> (Storage, Vec<String>) {
        let mut findings = Vec::new();
        let url = Some(StoreUrl(text.to_owned())).filter(|_| !text.is_empty());
        (Storage::resolve(url.as_ref(), key_file.map(PathBuf::from), &mut findings), findings)
    }

    #[test]
    fn an_address_is_checked_and_its_password_never_shown() {
        let (storage, findings) = resolved("postgres://me:s3cret@127.0.0.1/db", Some("/k"));
        assert!(findings.is_empty() && matches!(storage, Storage::Database(_, Some(_))));
        let url = StoreUrl("postgres://me:s3cret@127.0.0.1/db".into());
        let shown = format!("{storage:?} {url:?} {}", serde_json::to_string(&url).unwrap());
        assert!(shown.contains("127.0.0.1") && !shown.contains("s3cret"), "{shown}");
        let (_, findings) = resolved("redis://me:s3cret@h/db", None);
        assert!(findings[0].starts_with("store: ") && !findings[0].contains("s3cret"), "{findings:?}");
        let (_, findings) = resolved("", Some("/k"));
        assert!(findings[0].starts_with("keyFile: "), "{findings:?}");
    }
}
