//! All that reconciles, as one thing that begins and ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_controllers::managed::registry::Parts;
use concert_engine::leader::Duty;
use concert_engine::members::Shares;
use concert_engine::{Authority, OnExit, Tasks};
use concert_store::{Fence, Local};

use super::error::Error;
use super::mothership::Mothership;
use super::only::Only;
use super::posts::{self, Collecting, Lending, Post};
use super::workers::Workers;
use crate::managed::Reconciling;

#[cfg(test)]
mod tests;

/// How long what runs may take to end when asked to.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Managed resources and claims, and what one process does for all.
pub(super) struct Hands {
    parts: Parts,
    pub duty: Arc<Reconciling>,
    pub only: Only,
    posts: Vec<Arc<dyn Post>>,
    at_work: Mutex<Option<AtWork>>,
}

/// How it works.
#[derive(Clone)]
enum AtWork {
    /// Everything is done here.
    Alone,
    /// Posts come and go with their shares.
    Shared(Tasks),
}

impl Hands {
    pub fn new(
        store: &Local,
        parts: &Parts,
        duty: Arc<Reconciling>,
        workers: &Workers,
        mothership: &Mothership,
        only: Only,
    ) -> Self {
        let mut posts: Vec<Arc<dyn Post>> = vec![Arc::new(Collecting::new(store, parts))];
        if only.has_workers() {
            posts.push(Arc::new(Lending::new(workers.controllers.clone(), mothership)));
        }
        Self { parts: parts.clone(), duty, only, posts, at_work: Mutex::default() }
    }

    /// Whether all that works here has begun to.
    pub fn is_ready(&self) -> bool {
        // A provider that does not answer is told of in its object, and no reason to send no requests here.
        !self.only.has_managed() || self.duty.registry().is_some()
    }

    /// Starts to work on all that the store holds.
    ///
    /// # Assumptions
    /// It is not at work.
    pub fn start(&self, fence: Option<Fence>) -> Result<(), Error> {
        if self.only.has_managed() {
            self.duty.begin(fence.clone().into());
        }
        self.set(AtWork::Alone);
        self.posts.iter().try_for_each(|post| post.begin(fence.clone()))
    }

    /// Starts to work on what is held here.
    fn share(&self, shares: &Shares) {
        if self.only.has_managed() {
            self.duty.begin(Authority::Shared(shares.clone()));
        }
        let tasks = self.parts.tasks.group();
        for post in &self.posts {
            let (clock, shutdown) = (self.parts.clock.clone(), tasks.shutdown().clone());
            let holding = posts::hold(post.clone(), shares.clone(), clock, shutdown);
            tasks.spawn(post.name(), OnExit::Stop, holding);
        }
        self.set(AtWork::Shared(tasks));
    }

    fn set(&self, at_work: AtWork) {
        *self.at_work.lock().unwrap_or_else(PoisonError::into_inner) = Some(at_work);
    }

    /// Lets what is under way end, and starts nothing more.
    pub async fn stop(&self) {
        self.finish(false).await;
    }

    async fn finish(&self, is_lost: bool) {
        // Others may have all of it already, so what calls providers does not wait for anything else here to
        // end. Ended again below, it has nothing left to do.
        if is_lost && self.only.has_managed() {
            self.duty.end(true).await;
        }
        // Taken away only afterwards: whoever is interrupted here ends it again.
        let at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(AtWork::Shared(tasks)) = &at_work {
            tasks.stop(if is_lost { Duration::ZERO } else { PATIENCE }).await;
        }
        if at_work.is_some() {
            // Also what a task was in the middle of when it was ended.
            for post in self.posts.iter().rev() {
                post.end(is_lost).await;
            }
        }
        *self.at_work.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if self.only.has_managed() {
            self.duty.end(is_lost).await;
        }
    }
}

#[async_trait]
impl Duty for Hands {
    fn begin(&self, under: Authority) {
        let begun = match under {
            Authority::Alone | Authority::Term(_) => self.start(None),
            Authority::Seat(fence) => self.start(Some(fence)),
            Authority::Shared(shares) | Authority::Everywhere(shares) => {
                self.share(&shares);
                Ok(())
            }
        };
        if let Err(error) = begun {
            tracing::error!(%error, "cannot reconcile");
        }
    }

    async fn end(&self, is_lost: bool) {
        self.finish(is_lost).await;
    }
}
