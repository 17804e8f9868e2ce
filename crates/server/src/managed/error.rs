//! Why a managed reconciler does not start.

use std::path::PathBuf;

use crate::admin::BindError;

use super::config;

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration makes no sense.
    #[error("the configuration cannot be used")]
    Config(#[from] config::Error),
    /// The certificates cannot be used.
    #[error("the certificates in {} cannot be used: {why}", folder.display())]
    Certificates {
        /// Where they are.
        folder: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A provider cannot even be tried.
    #[error("provider {name}: {why}")]
    Provider {
        /// Which.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// Nobody says in which namespace to elect.
    #[error(
        "the namespace for leader election is unknown: this process runs in no cluster and the kubeconfig's \
         context names none"
    )]
    Namespace,
    /// The store cannot be opened.
    #[error("cannot open the store")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
}

impl Error {
    /// Something to try.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Config(_) => "compare the file with docs/reference/managed-reconciler.md",
            Error::Certificates { .. } => {
                "ls the folder of --cert-dir: it holds ca.crt, or tls.crt and tls.key, or all three"
            }
            Error::Provider { .. } => "check the endpoint: HOST:PORT, https://HOST[:PORT] or unix:PATH",
            Error::Namespace => "pass --leader-election-namespace=NAMESPACE, or --leader-election=false",
            Error::Store(_) => {
                "check --store; on Kubernetes, try `kubectl version` with the same --kubeconfig and --context"
            }
            Error::Bind(_) => "pass --metrics-bind-address and --health-probe-bind-address, or 0 for none",
        }
    }

    pub(super) fn store(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Store(error.into())
    }
}
