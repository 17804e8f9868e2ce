//! Which cluster, and as whom.

use std::path::PathBuf;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::contract::Result;
use crate::error::Error;

/// How to find a cluster. The default is what kubectl would use, or the cluster the process runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connect {
    /// A kubeconfig file, instead of those that `KUBECONFIG` or the home directory name.
    pub kubeconfig: Option<PathBuf>,
    /// A context of it, instead of its current one.
    pub context: Option<String>,
}

impl Connect {
    /// A client for that cluster. Nothing is asked of it yet.
    pub(super) async fn client(&self) -> Result<Client> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path).map_err(unavailable)?;
                kube::Config::from_custom_kubeconfig(file, &options).await.map_err(unavailable)?
            }
            // A context that was asked for is in a kubeconfig or nowhere.
            None if self.context.is_some() => {
                kube::Config::from_kubeconfig(&options).await.map_err(unavailable)?
            }
            None => kube::Config::infer().await.map_err(unavailable)?,
        };
        // What may be sent again, and when, depends on the call: it is decided in `transport`.
        config.default_retry = false;
        Client::try_from(config).map_err(unavailable)
    }
}

fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Unavailable(error.into())
}
