//! The task of a controller that works on a share of all keys: follows what this member holds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use concert_store::{Chance, Work};
use tracing::warn;

use crate::backoff::Backoff;
use crate::members::{Authority, Share, Shares};
use crate::queue::Lane;
use crate::shutdown::Shutdown;

use super::saving;
use super::shared::Shared;

/// Shares come and go in groups: what is done for one is done for all of them.
const GATHER: Duration = Duration::from_millis(20);

/// Between tries while the store does not answer.
const RETRY: Backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(10) };

pub(super) struct Sharing {
    shared: Arc<Shared>,
    shares: Shares,
    work: Option<Arc<dyn Work>>,
    chance: Chance,
    /// What was held when rows were last read.
    held: BTreeSet<Share>,
    changes: u64,
}

impl Sharing {
    pub fn new(shared: Arc<Shared>, shares: Shares, work: Option<Arc<dyn Work>>, chance: Chance) -> Self {
        // What comes while the first rows are read counts as new: reading rows twice does no harm before
        // there are items.
        let changes = 0;
        Self { shared, shares, work, chance, held: BTreeSet::new(), changes }
    }

    pub async fn run(mut self, shutdown: Shutdown) {
        tokio::select! {
            biased;
            () = shutdown.requested() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(&mut self) {
        loop {
            self.shares.changed(self.changes).await;
            self.shared.clock.sleep(GATHER).await;
            self.changes = self.shares.changes();
            match &self.shared.authority {
                Authority::Shared(_) => self.adopt().await,
                _ => self.look_again(),
            }
        }
    }

    /// Lets go what is no longer held, and lists what is new.
    async fn adopt(&mut self) {
        let shares = &self.shares;
        self.shared.with(|core| core.disown_all_but(|key| shares.holds(key)));
        let held: BTreeSet<Share> = shares.held().into_iter().collect();
        let gained: BTreeSet<Share> = held.difference(&self.held).copied().collect();
        self.held = held;
        if gained.is_empty() {
            return;
        }
        let mut failures = 0;
        while let Some(work) = &self.work {
            let is_new = |item: &str| gained.contains(&Share::of(item));
            let Err(error) = saving::scan(&self.shared, &**work, is_new).await else { break };
            warn!(controller = %self.shared.name, %error, "cannot read work state");
            failures += 1;
            self.shared.clock.sleep(RETRY.delay(failures, &self.chance)).await;
        }
        self.shared.relists.change(|relists| *relists += 1);
    }

    /// What was only looked at may be ours to write by now.
    fn look_again(&self) {
        let now = self.shared.now();
        self.shared.with(|core| {
            let all: Vec<_> = core.queue.ids().filter_map(|id| core.queue.key(id).cloned()).collect();
            for key in all {
                core.wake_known(&key, Lane::Poll, "shares", now, now);
            }
        });
    }
}
