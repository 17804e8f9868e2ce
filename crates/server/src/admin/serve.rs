//! Listening, and serving until asked to stop.

use std::net::SocketAddr;

use axum::Router;
use concert_engine::{OnExit, Tasks};
use tokio::net::TcpListener;
use tracing::{info, warn};

use super::Address;

/// A socket that somebody listens on.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct BindError {
    /// Which.
    pub address: Address,
    /// Why.
    #[source]
    pub error: std::io::Error,
}

impl Listener {
    /// Takes the address; none if it is nowhere.
    ///
    /// # Errors
    /// [`BindError`], also when somebody else has it.
    pub async fn bind(address: &Address) -> Result<Option<Self>, BindError> {
        let mut failure = None;
        for candidate in address.candidates() {
            match TcpListener::bind(candidate).await {
                Ok(socket) => {
                    let bound = socket.local_addr();
                    let bound = bound.map_err(|error| BindError { address: address.clone(), error })?;
                    return Ok(Some(Self { socket, address: bound }));
                }
                // Taken is taken: the other family would only hide it.
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                    return Err(BindError { address: address.clone(), error });
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(None), |error| Err(BindError { address: address.clone(), error }))
    }

    /// The address that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with `router` among `tasks`, until they are asked to stop.
    pub fn serve(self, name: &'static str, router: Router, tasks: &Tasks) {
        let shutdown = tasks.shutdown().clone();
        info!(what = name, address = %self.address, "serving");
        tasks.spawn(format!("admin/{name}"), OnExit::Stop, async move {
            let asked = async move { shutdown.requested().await };
            if let Err(error) = axum::serve(self.socket, router).with_graceful_shutdown(asked).await {
                warn!(what = name, %error, "stopped serving");
            }
        });
    }
}
