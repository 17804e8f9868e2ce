//! Serving a provider: what an author needs beyond [`Provider`].
//!
//! One [`Server`] speaks both protocols, verifies callers, refuses writers that have been replaced,
//! and finishes what it began before it ends.

pub(crate) mod desk;
pub(crate) mod fence;
pub(crate) mod host;
mod listen;
mod peer;
mod v1;
pub(crate) mod v1alpha1;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic_health::ServingStatus;

pub use peer::Allow;

use crate::contract::{Provider, Result};
use crate::error::{Class, Error};
use crate::handshake::Protocol;
use crate::tls::Tls;
use crate::wire::v1::provider_service_server::ProviderServiceServer;
use crate::wire::v1alpha1::external_service_server::ExternalServiceServer;
use desk::Desk;
use host::Host;
use listen::Listener;

/// The name under which health is reported, besides the empty one.
const HEALTH_NAME: &str = "provider-service";

/// Most calls at a time on one connection.
const STREAMS_MAX: u32 = 1000;

/// How to serve a provider.
pub struct Server {
    provider: Arc<dyn Provider>,
    address: String,
    tls: Option<Tls>,
    protocols: Vec<Protocol>,
    allow: Option<Allow>,
    insecure: bool,
    message_bytes_max: usize,
    drain: Duration,
}

impl Server {
    /// Serves `provider` on port 50051 of every interface, in clear, to everybody, in both protocols.
    pub fn new(provider: Arc<dyn Provider>) -> Self {
        Self {
            provider,
            address: ":50051".to_owned(),
            tls: None,
            protocols: vec![Protocol::V1, Protocol::V1Alpha1],
            allow: None,
            insecure: false,
            message_bytes_max: 16 << 20,
            drain: Duration::from_secs(30),
        }
    }

    /// Listens there: `host:port`, `:port` or `unix:PATH`.
    #[must_use]
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = address.into();
        self
    }

    /// Uses TLS; with a `ca.crt` in the folder, only for callers it vouches for.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Speaks only these.
    #[must_use]
    pub fn protocols(mut self, protocols: &[Protocol]) -> Self {
        self.protocols = protocols.to_vec();
        self
    }

    /// Serves only these callers. Needs TLS with a `ca.crt`.
    #[must_use]
    pub fn allow(mut self, allow: Allow) -> Self {
        self.allow = Some(allow);
        self
    }

    /// Permits connection details to leave the machine in clear.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// Largest message in either direction.
    #[must_use]
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.message_bytes_max = bytes;
        self
    }

    /// How long calls under way may take after the shutdown was asked for.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Binds the socket, so that its address is known.
    ///
    /// # Errors
    /// [`Class::Terminal`] if it cannot be bound, [`Class::Denied`] if the certificates are unusable: a
    /// server that was asked to use TLS never falls back to none.
    pub async fn bind(self) -> Result<Bound> {
        if let Some(tls) = &self.tls {
            crate::tls::server_config(&tls.read()?)?;
        } else if self.allow.is_some() {
            return Err(Error::new(Class::Denied, "an allow list needs TLS: names come from certificates"));
        }
        let listener = Listener::bind(&self.address).await?;
        Ok(Bound { server: self, listener })
    }

    /// Serves until `shutdown` completes, then finishes what is under way.
    ///
    /// # Errors
    /// As [`Server::bind`] and [`Bound::serve`].
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
        self.bind().await?.serve(shutdown).await
    }
}

/// A server that has its socket.
pub struct Bound {
    server: Server,
    listener: Listener,
}

impl Bound {
    /// Where it listens; none for a unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.address()
    }

    /// Serves until `shutdown` completes, then finishes what is under way, within the time to drain.
    ///
    /// # Errors
    /// [`Class::Transient`] if calls were still under way when that time was over.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
        let Self { server, listener } = self;
        let desk = Desk {
            host: Arc::new(Host::new(Arc::clone(&server.provider))),
            allow: server.allow.clone().map(Arc::new),
            insecure: server.insecure,
            ending: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_service_status(HEALTH_NAME, ServingStatus::Serving).await;
        let routes = routes(&server, &desk).add_service(health_service);
        // Connections wait here only until the transport takes them.
        let (accepted, incoming) = mpsc::channel(64);
        let ending = desk.ending.clone();
        let serving = tonic::transport::Server::builder()
            .max_concurrent_streams(STREAMS_MAX)
            .http2_keepalive_interval(Some(Duration::from_secs(30)))
            .http2_keepalive_timeout(Some(Duration::from_secs(20)))
            .add_routes(routes)
            .serve_with_incoming_shutdown(ReceiverStream::new(incoming), ending.clone().cancelled_owned());
        let accepting = async {
            tokio::select! {
                () = listen::accept(listener, server.tls.clone(), accepted) => {}
                () = ending.cancelled() => {}
            }
        };
        let stop = async {
            shutdown.await;
            health.set_service_status(HEALTH_NAME, ServingStatus::NotServing).await;
            health.set_service_status("", ServingStatus::NotServing).await;
            ending.cancel();
        };
        let mut serving = std::pin::pin!(async {
            let (served, ()) = tokio::join!(serving, accepting);
            desk.tasks.close();
            desk.tasks.wait().await;
            served.map_err(|e| Error::new(Class::Transient, format!("cannot serve: {e}")))
        });
        tokio::select! {
            result = &mut serving => return result,
            () = stop => {}
        }
        match tokio::time::timeout(server.drain, serving).await {
            Ok(result) => result,
            Err(_) => {
                let message = format!("calls were still under way after {:?}", server.drain);
                Err(Error::new(Class::Transient, message))
            }
        }
    }
}

fn routes(server: &Server, desk: &Desk) -> Routes {
    let limit = server.message_bytes_max;
    let mut routes = Routes::default();
    if server.protocols.contains(&Protocol::V1) {
        let service = Arc::new(v1::Service(desk.clone()));
        let service = ProviderServiceServer::new(service)
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit);
        routes = routes.add_service(service);
    }
    if server.protocols.contains(&Protocol::V1Alpha1) {
        let service = ExternalServiceServer::new(v1alpha1::Service(desk.clone()))
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit);
        routes = routes.add_service(service);
    }
    routes
}
