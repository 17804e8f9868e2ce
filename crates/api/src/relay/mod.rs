//! Requests that one replica answers for all: whoever else gets one passes it on, as it came.
//!
//! What a remote worker was lent is known to the replica that lent it, so claims, heartbeats and results
//! must reach that one, through whichever replica they come in. Who that is, and how to trust it, the
//! replicas tell each other in the store.

mod client;

#[cfg(test)]
mod tests;
mod way;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_store::Clock;
use http::{HeaderMap, HeaderName, Method, Response};

use crate::auth::User;
use crate::kube::Body;
use crate::rest::{Annex, Call, Error};

pub use client::Peer;
pub use way::Way;

/// Says that a request was passed on once: it is not passed on again.
const RELAYED: HeaderName = HeaderName::from_static("x-concert-relayed");

/// A worker may ask to wait for a minute; whoever does not answer then is gone.
const PATIENCE: Duration = Duration::from_secs(90);

/// Who answers now.
#[async_trait]
pub trait Whose: Send + Sync + 'static {
    /// Where the answer is.
    async fn place(&self) -> Place;
}

/// Where the answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Here.
    Here,
    /// At another replica.
    There(Peer),
    /// Nowhere yet: somebody will take it up in a moment.
    Nowhere,
}

/// Routes that are answered here or by another replica.
pub struct Relay {
    routes: Arc<dyn Annex>,
    whose: Arc<dyn Whose>,
    clock: Arc<dyn Clock>,
}

impl Relay {
    /// `routes`, wherever `whose` says.
    pub fn new(routes: Arc<dyn Annex>, whose: Arc<dyn Whose>, clock: Arc<dyn Clock>) -> Self {
        Self { routes, whose, clock }
    }
}

#[async_trait]
impl Annex for Relay {
    fn base(&self) -> &'static str {
        self.routes.base()
    }

    fn takes(&self, method: &Method, path: &[&str]) -> bool {
        self.routes.takes(method, path)
    }

    fn identify(&self, headers: &HeaderMap) -> Option<Result<User, Error>> {
        self.routes.identify(headers)
    }

    async fn answer(&self, call: &Call<'_>) -> Result<Response<Body>, Error> {
        let moving = || Error::unavailable("work moves from one replica to another: ask again");
        match self.whose.place().await {
            Place::Here => self.routes.answer(call).await,
            // Two that each take the other for the one who answers would send it round for ever.
            Place::There(_) if call.head.headers.contains_key(RELAYED) => Err(moving()),
            Place::There(peer) => {
                let answer = tokio::select! {
                    answer = client::pass_on(&peer, call.head, call.bytes) => answer,
                    () = self.clock.sleep(PATIENCE) => Err(client::NoAnswer::late()),
                };
                answer.map_err(|error| {
                    tracing::warn!(peer = %peer.url, %error, "cannot pass a request on");
                    moving()
                })
            }
            Place::Nowhere => Err(moving()),
        }
    }
}
