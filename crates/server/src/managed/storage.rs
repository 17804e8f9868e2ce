//! Which store, and opening it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use concert_engine::{OnExit, Tasks};
use concert_store::backend::memory::Memory;
use concert_store::backend::{Backend, Sqlite, sqlite};
use concert_store::kubernetes::{self, Connect, Kubernetes, Requests};
use concert_store::seal::Keyring;
use concert_store::{Chance, Clock, Config, Local, Store, Work};

use super::error::Error;

/// Where objects live.
#[derive(Clone)]
pub enum Storage {
    /// On a Kubernetes API server: that of the process, or the one that kubectl would use.
    Kubernetes {
        /// Another kubeconfig.
        kubeconfig: Option<PathBuf>,
        /// Another context of it.
        context: Option<String>,
    },
    /// In a file, with its key file beside it.
    File(PathBuf),
    /// In memory: gone with the process.
    Memory,
    /// In a store that is open already. Who opened one of ours collects what nobody owns and compacts its
    /// past; for the others here that is done.
    Given {
        /// The store.
        store: Arc<dyn Store>,
        /// Its rows of work, where it has them.
        work: Option<Arc<dyn Work>>,
    },
}

impl Default for Storage {
    fn default() -> Self {
        Self::Kubernetes { kubeconfig: None, context: None }
    }
}

/// A store that can be used.
#[derive(Clone)]
pub(super) struct Opened {
    pub store: Arc<dyn Store>,
    pub work: Option<Arc<dyn Work>>,
    pub requests: Option<Requests>,
    /// The same store if it was opened for this process alone: nobody else looks after it.
    pub own: Option<Local>,
}

impl Storage {
    /// Opens it. What it runs, runs among `tasks`.
    pub(super) async fn open(
        &self,
        clock: &Arc<dyn Clock>,
        chance: &Chance,
        tasks: &Tasks,
    ) -> Result<Opened, Error> {
        match self {
            Storage::Given { store, work } => {
                Ok(Opened { store: store.clone(), work: work.clone(), requests: None, own: None })
            }
            Storage::Memory => local(Arc::new(Memory::new()), Config::new(clock.clone(), chance.fork())),
            Storage::File(path) => file(path, clock, chance),
            Storage::Kubernetes { kubeconfig, context } => {
                let connect = Connect { kubeconfig: kubeconfig.clone(), context: context.clone() };
                let tasks = tasks.clone();
                let spawn: kubernetes::Spawn =
                    Arc::new(move |name, task| tasks.spawn(name.to_owned(), OnExit::Log, task));
                let config = kubernetes::Config::new(clock.clone(), spawn);
                let store = Kubernetes::connect(&connect, config).await.map_err(Error::store)?;
                let requests = Some(store.requests().clone());
                Ok(Opened { store: Arc::new(store), work: None, requests, own: None })
            }
        }
    }
}

fn file(path: &Path, clock: &Arc<dyn Clock>, chance: &Chance) -> Result<Opened, Error> {
    let backend = Sqlite::open(path, &sqlite::Options::default()).map_err(Error::store)?;
    let keyring = Keyring::open(path.with_extension("key"), chance).map_err(Error::store)?;
    local(Arc::new(backend), Config::new(clock.clone(), chance.fork()).sealed(keyring))
}

fn local(backend: Arc<dyn Backend>, config: Config) -> Result<Opened, Error> {
    let own = Local::open(backend, config).map_err(Error::store)?;
    let store = Arc::new(own.clone());
    Ok(Opened { store: store.clone(), work: Some(store), requests: None, own: Some(own) })
}
