//! What one replica does for all: collecting garbage, and lending work to remote workers.
//!
//! A process that is alone does both. Of several, each is done by the member that holds the share of its
//! name, under the fence of that share, and goes along when the share does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_controllers::managed::registry::Parts;
use concert_controllers::{gc, plugins};
use concert_engine::Shutdown;
use concert_engine::members::{End, Shares};
use concert_store::{Clock, Fence, Local};
use tracing::{error, info};

use super::error::Error;
use super::hands::PATIENCE;
use super::mothership::Mothership;
use crate::upkeep;

/// The share that lending goes with: requests of remote workers go to whoever holds it.
pub(super) const LENDING: &str = "concert/lending";
const COLLECTING: &str = "concert/collecting";

/// Before what could not begin is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How long what is lent may take to come back before another lends: less than a member that leaves has for
/// everything.
const LENT_MAX: Duration = Duration::from_secs(20);
/// Between two looks whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;

/// Something that one does for all.
#[async_trait]
pub(super) trait Post: Send + Sync + 'static {
    /// The share it goes with.
    fn name(&self) -> &'static str;

    /// Starts to do it. What has begun when it fails is ended with [`Post::end`].
    fn begin(&self, fence: Option<Fence>) -> Result<(), Error>;

    /// Begins nothing more, and waits for what only this member can see to its end: the share is asked back,
    /// and goes to another afterwards. Whoever is interrupted in it ends it.
    async fn hand_over(&self) {}

    /// Lets what is under way end; at once if it is lost. Whoever is interrupted in it calls it again.
    async fn end(&self, is_lost: bool);
}

/// Does it whenever its share is held here, until asked to stop.
pub(super) async fn hold(post: Arc<dyn Post>, shares: Shares, clock: Arc<dyn Clock>, shutdown: Shutdown) {
    loop {
        let tenure = tokio::select! {
            biased;
            () = shutdown.requested() => return,
            tenure = shares.tenure(post.name()) => tenure,
        };
        let begun = post.begin(Some(tenure.fence().clone()));
        let has_begun =
            begun.inspect_err(|error| error!(post = post.name(), %error, "cannot begin yet")).is_ok();
        if !has_begun {
            // Nobody else may do it: it is tried for as long as the share is here.
            post.end(true).await;
            drop(tenure);
            tokio::select! {
                biased;
                () = shutdown.requested() => return,
                () = clock.sleep(RETRY) => {}
            }
            continue;
        }
        info!(post = post.name(), "done here from now on");
        let end = tokio::select! {
            biased;
            end = tenure.over() => end,
            () = shutdown.requested() => End::AskedBack,
        };
        if end == End::AskedBack {
            tokio::select! {
                biased;
                () = shutdown.requested() => {}
                () = post.hand_over() => {}
            }
        }
        post.end(end == End::Lost).await;
        info!(post = post.name(), "no longer done here");
    }
}

/// Collects what nobody owns any more.
pub(super) struct Collecting {
    store: Local,
    parts: Parts,
    running: Mutex<Option<Arc<gc::Running>>>,
}

impl Collecting {
    pub fn new(store: &Local, parts: &Parts) -> Self {
        Self { store: store.clone(), parts: parts.clone(), running: Mutex::default() }
    }
}

#[async_trait]
impl Post for Collecting {
    fn name(&self) -> &'static str {
        COLLECTING
    }

    fn begin(&self, fence: Option<Fence>) -> Result<(), Error> {
        let collector = upkeep::collect(&self.store, &self.parts, fence).map_err(Error::store)?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(collector));
        Ok(())
    }

    async fn end(&self, is_lost: bool) {
        // Taken away only afterwards: whoever is interrupted here ends it again.
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(collector) = running {
            collector.stop(if is_lost { Duration::ZERO } else { PATIENCE }).await;
        }
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Lends work to remote workers: plugins, and component reconcilers of a fleet.
pub(super) struct Lending {
    parts: plugins::Parts,
    mothership: Mothership,
    running: Mutex<Option<plugins::Running>>,
}

impl Lending {
    pub fn new(parts: plugins::Parts, mothership: &Mothership) -> Self {
        Self { parts, mothership: mothership.clone(), running: Mutex::default() }
    }
}

#[async_trait]
impl Post for Lending {
    fn name(&self) -> &'static str {
        LENDING
    }

    fn begin(&self, fence: Option<Fence>) -> Result<(), Error> {
        self.parts.board.open();
        let lender = plugins::start(self.parts.clone()).map_err(Error::store)?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(lender);
        self.mothership.begin(fence)
    }

    async fn hand_over(&self) {
        let plugins::Parts { board, clock, .. } = &self.parts;
        board.drain();
        let end = clock.elapsed() + LENT_MAX;
        while board.is_lending() && clock.elapsed() < end {
            clock.sleep(LOOK_EVERY).await;
        }
    }

    async fn end(&self, is_lost: bool) {
        // Taken away only afterwards: whoever is interrupted here ends it again.
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match running {
            Some(lender) => lender.stop(is_lost).await,
            // It could not begin: nobody is to wait for work here.
            None => self.parts.board.close(),
        }
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.mothership.end(is_lost).await;
    }
}
