//! One API server, and what is known of it: what every call needs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concert_model::{Address, GroupKind, ResourceVersion};
use tokio::sync::watch as signal;

use super::cache::{Order, Registry};
use super::kinds::{Kinds, Resource};
use super::requests::{Requests, Verb};
use super::status::{About, Refusal, Status};
use super::transport::{Answer, Ask, Content, Transport};
use super::{Config, Spawn};
use crate::contract::Result;
use crate::error::Error;

/// How often a path that should be there is tried again: a kind that was just defined is announced a
/// moment before every part of the server has heard of it.
const SERVED_TRIES: usize = 5;
/// Between those tries.
const SERVED_WAIT: Duration = Duration::from_millis(100);

pub(super) struct Server {
    pub(super) transport: Transport,
    pub(super) kinds: Kinds,
    pub(super) registry: Registry,
    pub(super) spawn: Spawn,
    pub(super) linger: Duration,
    pub(super) closed: signal::Receiver<()>,
    /// The newest position that was ever told.
    newest: Mutex<Order>,
}

impl Server {
    pub(super) fn new(client: kube::Client, config: Config, closed: signal::Receiver<()>) -> Self {
        let Config { clock, spawn, timeout, linger } = config;
        Self {
            transport: Transport { client, clock, requests: Requests::default(), timeout },
            kinds: Kinds::default(),
            registry: Registry::default(),
            spawn,
            linger,
            closed,
            newest: Mutex::default(),
        }
    }

    /// Remembers that the server told this position.
    pub(super) fn see(&self, version: &ResourceVersion) {
        if let Some(order) = Order::of(version) {
            let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
            *newest = order.max(*newest);
        }
    }

    /// True if a position is not in the future, as far as this store knows.
    pub(super) fn has_seen(&self, order: Order) -> bool {
        order <= *self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a kind is served.
    pub(super) async fn resource(&self, kind: &GroupKind) -> Result<Arc<Resource>> {
        self.kinds.find(&self.transport, kind).await
    }

    /// Sends what `address` and `content` make of the kind and reads the answer.
    ///
    /// # Errors
    /// The server's refusal, about `about`.
    pub(super) async fn ask(
        &self,
        kind: &GroupKind,
        verb: Verb,
        about: About<'_>,
        request: impl Fn(&Resource) -> Result<(Address, Content)>,
    ) -> Result<(Arc<Resource>, Answer)> {
        let mut tries = SERVED_TRIES;
        loop {
            let resource = self.resource(kind).await?;
            let (address, content) = request(&resource)?;
            let ask = Ask { verb, resource: resource.name.clone(), path: address.into_path(), content };
            let answer = self.transport.send(&ask).await?;
            if answer.status.is_success() {
                return Ok((resource, answer));
            }
            tries -= 1;
            match Status::of(&answer).refusal(about) {
                Refusal::Error(error) => return Err(error),
                Refusal::NotServed => self.wait_until_served(kind, tries).await?,
            }
        }
    }

    /// What to do about a path that is not there: it may be there again.
    ///
    /// # Errors
    /// [`Error::UnknownKind`] if the kind is really gone.
    pub(super) async fn wait_until_served(&self, kind: &GroupKind, tries_left: usize) -> Result<()> {
        self.kinds.doubt(kind);
        self.resource(kind).await?;
        if tries_left == 0 {
            return Err(Error::UnknownKind { kind: kind.clone() });
        }
        self.transport.clock.sleep(SERVED_WAIT).await;
        Ok(())
    }
}
