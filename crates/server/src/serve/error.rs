//! Why a control plane does not start.

use std::borrow::Cow;
use std::path::PathBuf;

use concert_store::backend::postgres::Trouble;

use crate::admin::BindError;
use crate::managed;

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration makes no sense.
    #[error("the configuration cannot be used")]
    Config(#[from] managed::config::Error),
    /// The data directory cannot be used.
    #[error("cannot write {}", path.display())]
    Data {
        /// Which part of it.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// The store cannot be opened.
    #[error("cannot open the store")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database cannot be used.
    #[error("cannot open the store")]
    Database(#[source] Box<Trouble>),
    /// The store is sealed with other keys.
    #[error("cannot open the store with the keys in {}", path.display())]
    Keys {
        /// The key file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The API cannot be served.
    #[error("cannot serve the API")]
    Listen(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What was said of the inventory elsewhere cannot be used.
    #[error("cannot use the inventory")]
    Inventory(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The way to providers cannot be used.
    #[error(transparent)]
    Providers(#[from] managed::Error),
}

impl Error {
    /// Something to try.
    pub fn hint(&self) -> Cow<'static, str> {
        let hint = match self {
            Error::Config(_) => "concert config check --config FILE",
            Error::Data { .. } => "pass --data-dir with a folder that you may write to",
            Error::Store(_) => "if another `concert serve` has it, stop that one or pass another --data-dir",
            Error::Database(trouble) => return trouble.hint().into(),
            Error::Keys { .. } => {
                "pass --key-file with a copy of the key file that the first replica uses, with mode 0600"
            }
            Error::Bind(_) | Error::Listen(_) => {
                "pass --listen 127.0.0.1:PORT and --admin-listen 127.0.0.1:PORT with ports that are free"
            }
            Error::Inventory(_) => "check --inventory, --inventory-token-file and --inventory-ca",
            Error::Providers(error) => error.hint(),
        };
        hint.into()
    }

    pub(super) fn listen(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Listen(error.into())
    }

    pub(super) fn inventory(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Inventory(error.into())
    }

    pub(super) fn store(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Store(error.into())
    }
}
