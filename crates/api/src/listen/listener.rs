//! Accepting connections, as many as there may be.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concert_engine::{OnExit, Tasks};
use concert_store::Clock;
use http::{Request, Response};
use http_body::Body;
use tokio::net::TcpListener;

use super::body::Inbound;
use super::connection::{self, Accepted};
use super::limits::Limits;
use super::quota::{Quota, What};
use super::request::{Peer, Shared};
use super::tls::Certificates;

/// Pause after an accept that failed, as it does without file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Where and how to listen.
pub struct Config {
    /// Port 0 takes any that is free.
    pub address: SocketAddr,
    /// Who can read along, and who is let in.
    pub security: Security,
    /// How much there may be of everything.
    pub limits: Limits,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
}

/// Who can read along, and who is let in.
pub enum Security {
    /// HTTP/1.1 and HTTP/2 over TLS.
    Tls(Certificates),
    /// Plain HTTP/1.1 for programs on this machine, and not for websites in its browsers.
    Development,
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Everybody on the network would be let in.
    #[error("development mode has no authentication and listens on loopback only, not on {0}")]
    Exposed(SocketAddr),
    /// The address is taken, is not ours, or needs rights.
    #[error("cannot listen on {address}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A bound address that nobody is served on yet.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    config: Config,
}

impl Listener {
    /// Binds the address. From now on clients wait rather than fail.
    ///
    /// # Errors
    /// [`ListenError`].
    pub async fn bind(config: Config) -> Result<Self, ListenError> {
        let address = config.address;
        if matches!(config.security, Security::Development) && !address.ip().to_canonical().is_loopback() {
            return Err(ListenError::Exposed(address));
        }
        let failed = |source| ListenError::Bind { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address, config })
    }

    /// The address, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `tasks` are asked to stop. Then nothing more is accepted, requests under way are
    /// answered, watches end, and connections are closed; [`Tasks::stop`] waits for that.
    pub fn serve<S, F, B>(self, service: S, tasks: &Tasks)
    where
        S: Fn(Request<Inbound>, Peer) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Self { socket, address, config } = self;
        let Config { security, limits, clock, .. } = config;
        let limits = Arc::new(limits);
        let (tls, development_port) = match security {
            Security::Tls(certificates) => (Some(certificates), None),
            Security::Development => (None, Some(address.port())),
        };
        let shared = Arc::new(Shared {
            service,
            quota: Quota::new(limits.clone()),
            limits,
            clock,
            shutdown: tasks.shutdown().clone(),
            development_port,
        });
        let connections = tasks.group();
        tasks.spawn("listen", OnExit::Stop, accept(socket, tls, shared, connections));
    }
}

async fn accept<S, F, B>(
    socket: TcpListener,
    tls: Option<Certificates>,
    shared: Arc<Shared<S>>,
    connections: Tasks,
) where
    S: Fn(Request<Inbound>, Peer) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut stop = pin!(shared.shutdown.requested());
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.as_mut() => return,
            accepted = socket.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                shared.clock.sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = shared.quota.take(What::Connection, address.ip(), shared.clock.elapsed()) else {
            tracing::debug!(peer = %address, "connection closed: there are enough");
            continue;
        };
        let peer = Peer { address, is_encrypted: tls.is_some() };
        let (tls, shared, tasks) = (tls.clone(), shared.clone(), connections.clone());
        connections.spawn("connection", OnExit::Log, async move {
            connection::serve(Accepted { stream, peer, permit }, tls.as_ref(), &shared, &tasks).await;
        });
    }
}
