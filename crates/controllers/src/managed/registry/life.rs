//! The life of one provider: connect, ask what it serves, notice that it is gone, again.

use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Backoff, Handle, Lane, OnExit, Tasks};
use concert_provider::{Call, Connector, Error, Handshake};
use tracing::{info, warn};

use super::claims::State;
use super::{Outage, Registry};

/// How long a provider may take to introduce itself.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// Between tries to reach it. The dialler pauses about as long by itself, and a try that comes in its pause
/// fails at once, so what is back is found after twice this at most.
const RETRY: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(2) };

/// After so long its objects say that it cannot be reached. A restart of a provider takes less, and
/// would otherwise cost two writes on each object.
const LONG: Duration = Duration::from_secs(15);

/// Starts the life of `name` among `tasks`.
pub(super) fn start(registry: &Registry, name: Arc<str>, connector: Arc<dyn Connector>, tasks: &Tasks) {
    let life = Life { registry: registry.clone(), name, connector };
    let shutdown = tasks.shutdown().clone();
    tasks.spawn(format!("provider/{}", life.name), OnExit::Log, async move {
        tokio::select! {
            biased;
            () = shutdown.requested() => {}
            () = life.live() => {}
        }
    });
}

struct Life {
    registry: Registry,
    name: Arc<str>,
    connector: Arc<dyn Connector>,
}

impl Life {
    async fn live(&self) {
        let restarts = self.registry.0.parts.settings.restarts_on_disconnect;
        loop {
            let handshake = self.introduce().await;
            info!(provider = %self.name, version = %handshake.version, protocol = ?handshake.protocol,
                kinds = handshake.kinds.len(), "provider is up");
            self.registry.came(&self.name, handshake);
            self.connector.lost().await;
            if !restarts {
                return self.stay().await;
            }
            warn!(provider = %self.name, "connection lost; its controllers stop until it is back");
            self.registry.went(&self.name, "the connection was lost", false);
        }
    }

    /// The connection was lost and the controllers stay: says when it is lost and when it is back. What the
    /// provider serves is what it said first, whatever it answers now.
    async fn stay(&self) {
        loop {
            warn!(provider = %self.name, "connection lost; its controllers stay");
            let stumbled = |why: &str, is_long| {
                self.registry.stumbled(&self.name, Some(Outage { why: why.to_owned(), is_long }));
            };
            stumbled("the connection was lost", false);
            self.reach(|error, is_long| stumbled(&error.message, is_long)).await;
            info!(provider = %self.name, "provider is back");
            self.registry.stumbled(&self.name, None);
            self.connector.lost().await;
        }
    }

    /// Tries until the provider has introduced itself.
    async fn introduce(&self) -> Handshake {
        self.reach(|error, is_long| self.registry.went(&self.name, &error.message, is_long)).await
    }

    /// Tries until the provider answers. `failed` hears of each failure, and whether they have gone on for
    /// long.
    async fn reach(&self, failed: impl Fn(&Error, bool)) -> Handshake {
        let parts = &self.registry.0.parts;
        let (began, mut failures) = (parts.clock.elapsed(), 0);
        loop {
            match self.connector.handshake(&Call::within(HANDSHAKE)).await {
                Ok(handshake) => return handshake,
                Err(error) => {
                    failures += 1;
                    if failures == 1 || failures % 10 == 0 {
                        warn!(provider = %self.name, %error, failures, "provider does not answer");
                    }
                    failed(&error, parts.clock.elapsed().saturating_sub(began) >= LONG);
                }
            }
            let left = (began + LONG).saturating_sub(parts.clock.elapsed());
            let delay = RETRY.delay(failures, &parts.chance);
            // Whoever cannot be reached for long is said so in time, and not one back-off later.
            let delay = if left.is_zero() { delay } else { delay.min(left) };
            parts.clock.sleep(delay).await;
        }
    }
}

impl Registry {
    /// A provider has introduced itself.
    fn came(&self, name: &str, handshake: Handshake) {
        self.change(name, |provider| {
            provider.epochs += 1;
            provider.known.state = State::Up { handshake: Arc::new(handshake), epoch: provider.epochs };
        });
    }

    /// A provider does not answer, or is not to be called.
    pub(super) fn went(&self, name: &str, why: &str, is_long: bool) {
        self.change(name, |provider| {
            let last = provider.known.state.last().cloned();
            provider.known.state = State::Down { why: why.to_owned(), is_long, last };
        });
    }

    /// A provider whose controllers stay does not answer, or answers again. Its objects are looked at once that
    /// has gone on for long, and when it is over, as if it were time for a poll: so that they say so.
    fn stumbled(&self, name: &str, outage: Option<Outage>) {
        let is_long = outage.as_ref().is_some_and(|it| it.is_long);
        let handles: Vec<Handle> = {
            let mut desk = self.lock();
            let Some((_, provider)) = desk.providers.iter_mut().find(|(it, _)| **it == *name) else { return };
            let before = std::mem::replace(&mut provider.outage, outage);
            if before.is_some_and(|it| it.is_long) == is_long {
                return;
            }
            desk.running.values().filter(|it| it.is_of(name)).map(|it| it.handle.clone()).collect()
        };
        for handle in handles {
            for state in handle.states() {
                handle.wake(&state.key, Lane::Poll, "provider", Duration::ZERO);
            }
        }
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut super::Provider)) {
        {
            let mut desk = self.lock();
            let Some((_, provider)) = desk.providers.iter_mut().find(|(it, _)| **it == *name) else { return };
            change(provider);
        }
        self.deal();
    }
}
