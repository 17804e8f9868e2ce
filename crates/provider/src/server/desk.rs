//! What both protocols do with a call once it is decoded.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use concert_model::{GroupVersionKind, Object};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::{Request, Status};

use super::host::Host;
use super::peer::{Allow, Peer, refusal};
use crate::contract::{Call, Configuration, Provider, Result};
use crate::details::Details;
use crate::error::{Class, Error};

/// How long a mutation goes on, at least, after its caller stopped waiting for it.
const AFTERLIFE: Duration = Duration::from_secs(60);

/// What every call needs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) host: Arc<Host>,
    pub(crate) allow: Option<Arc<Allow>>,
    pub(crate) insecure: bool,
    /// Cancelled when the server is to end.
    pub(crate) ending: CancellationToken,
    /// Mutations under way, which are waited for.
    pub(crate) tasks: TaskTracker,
}

/// A mutation, ready to run.
pub(crate) struct Job {
    pub(crate) object: Object,
    pub(crate) account: Option<Arc<Configuration>>,
    pub(crate) call: Call,
}

impl Desk {
    pub(crate) fn peer<T>(&self, request: &Request<T>) -> Arc<Peer> {
        request.extensions().get::<Arc<Peer>>().cloned().unwrap_or_default()
    }

    /// Checks that the caller may do anything here.
    pub(crate) fn welcome(&self, peer: &Peer) -> Result<(), Status> {
        match &self.allow {
            Some(allow) if !allow.knows(peer) => Err(refusal(peer, "this provider")),
            _ => Ok(()),
        }
    }

    /// Checks that the caller may use the kind, and that it is served.
    pub(crate) fn check(&self, peer: &Peer, kind: &GroupVersionKind) -> Result<()> {
        if let Some(allow) = &self.allow
            && !allow.permits(peer, kind)
        {
            return Err(Error::new(Class::Denied, refusal(peer, &kind.to_string()).message()));
        }
        self.host.serves(kind)
    }

    /// The same for the kind of an object.
    pub(crate) fn check_object(&self, peer: &Peer, object: &Object) -> Result<()> {
        let kind = object.gvk().map_err(|e| Error::new(Class::Terminal, e.to_string()))?;
        self.check(peer, &kind)
    }

    /// Connection details go to another machine only encrypted.
    pub(crate) fn guard(&self, peer: &Peer, details: Details) -> Details {
        if details.is_empty() || !peer.is_exposed || self.insecure {
            return details;
        }
        tracing::warn!("connection details withheld: the caller is on another machine and uses no TLS");
        Details::new()
    }

    /// Runs a mutation to its end even if its caller gives up or is cut off: what is half done at an
    /// external system is worse than what nobody waits for.
    pub(crate) async fn mutate<T, F>(
        &self,
        job: Job,
        work: impl FnOnce(Arc<dyn Provider>, Job) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        if self.ending.is_cancelled() {
            return Err(Error::new(Class::Transient, "the provider is shutting down"));
        }
        self.host.admit(&job.object, &job.call)?;
        let timeout = job.call.timeout;
        let work = work(Arc::clone(&self.host.provider), job);
        let task = self.tasks.spawn(async move { tokio::time::timeout(timeout + AFTERLIFE, work).await });
        let late = || Error::new(Class::Transient, format!("not finished within {timeout:?}")).in_doubt();
        match tokio::time::timeout(timeout, task).await {
            Ok(Ok(Ok(result))) => result,
            Ok(Ok(Err(_))) | Err(_) => Err(late()),
            Ok(Err(_)) => Err(Error::new(Class::Transient, "the provider panicked").in_doubt()),
        }
    }
}
