//! Why a control plane does not start.

use std::path::PathBuf;

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
    /// An address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The API cannot be served.
    #[error("cannot serve the API")]
    Listen(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The way to providers cannot be used.
    #[error(transparent)]
    Providers(#[from] managed::Error),
}

impl Error {
    /// Something to try.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Config(_) => "concert config check --config FILE",
            Error::Data { .. } => "pass --data-dir with a folder that you may write to",
            Error::Store(_) => "if another `concert serve` has it, stop that one or pass another --data-dir",
            Error::Bind(_) | Error::Listen(_) => {
                "pass --listen 127.0.0.1:PORT and --admin-listen 127.0.0.1:PORT with ports that are free"
            }
            Error::Providers(error) => error.hint(),
        }
    }

    pub(super) fn listen(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Listen(error.into())
    }

    pub(super) fn store(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Store(error.into())
    }
}
