//! The reconciler of a remote worker: lends an item and waits for what becomes of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use concert_model::ObjectKey;
use concert_store::{Error, Fence, ItemKey, Work};
use tokio::sync::oneshot;
use tracing::{info, warn};

use crate::outcome::{Failure, Outcome};
use crate::reconciler::{Labels, Reconciler, Request};

use super::board::Board;
use super::demand::Permit;
use super::lease::{End, Leased, Report};
use super::meaning::{Meaning, Offer, Prepared};

/// Claims in a row that others were quicker with before a run is given up.
const CLAIM_TRIES: usize = 3;

/// Runs items by lending them to the hosts of one worker.
pub struct Offers {
    board: Board,
    worker: Arc<str>,
    meaning: Arc<dyn Meaning>,
    work: Arc<dyn Work>,
    /// The newest claim of each item that ran here, which saves a read before the next one. An item
    /// that is not in it is read.
    newest: Mutex<BTreeMap<Arc<str>, u64>>,
    /// The newest number that was counted in memory; none if the store counts.
    spared: Option<AtomicU64>,
}

/// Claims that are remembered; beyond that it starts anew, which costs a read per item.
const NEWEST_MAX: usize = 100_000;

/// What is counted in memory between two claims of a controller. The 25 bits that are left of the 53 that
/// JSON of any language keeps are enough for thirty million starts.
const SPARE_BITS: u32 = 28;

impl Offers {
    /// Items of `worker`, whose ends mean what `meaning` says.
    pub fn new(
        board: Board,
        worker: impl Into<Arc<str>>,
        meaning: Arc<dyn Meaning>,
        work: Arc<dyn Work>,
    ) -> Self {
        let newest = Mutex::default();
        Self { board, worker: worker.into(), meaning, work, newest, spared: None }
    }

    /// The same, but claims are counted in memory, from the claim of the controller on: items that are
    /// merely looked at write nothing.
    ///
    /// For hosts that never write to the store under their fence themselves. It is this process then that
    /// refuses what comes late, and the controller's own claim by which the store refuses this process
    /// once there is a successor.
    #[must_use]
    pub fn sparing(mut self) -> Self {
        self.spared = Some(AtomicU64::new(0));
        self
    }

    async fn lend(
        &self,
        permit: Option<Arc<Permit>>,
        request: &Request,
        offer: &Offer,
    ) -> Result<Option<Held>, Error> {
        let fence = self.claim(&offer.row, request.fence.as_ref()).await?;
        // Nobody else has a copy: the run is the only one that got it.
        let claim = permit.and_then(Arc::into_inner).and_then(Permit::spend);
        Ok(self.board.lend(&self.worker, claim, offer, &fence, &request.reasons))
    }

    /// A claim that is newer than any before; `base` is that of the controller.
    async fn claim(&self, row: &ItemKey, base: Option<&Fence>) -> Result<Fence, Error> {
        let Some(spared) = &self.spared else { return self.claim_in_store(row).await };
        let base = base.map_or(0, |it| it.number << SPARE_BITS);
        spared.fetch_max(base, Ordering::Relaxed);
        let number = spared.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Fence { item: row.clone(), number })
    }

    async fn claim_in_store(&self, row: &ItemKey) -> Result<Fence, Error> {
        let mut known = self.newest().get(&row.item).copied();
        for _ in 0..CLAIM_TRIES {
            let seen = match known.take() {
                Some(seen) => seen,
                None => self.work.read(row).await?.map_or(0, |it| it.fence),
            };
            match self.work.claim(row, seen, Default::default()).await {
                Ok(fence) => {
                    let mut newest = self.newest();
                    if newest.len() >= NEWEST_MAX {
                        newest.clear();
                    }
                    newest.insert(row.item.clone(), fence.number);
                    return Ok(fence);
                }
                Err(Error::Fenced { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::unavailable("others claim the same item all the time"))
    }

    async fn expire(&self, leased: &Leased) -> Outcome {
        // From here on the store refuses what the host may still have under way.
        match self.claim(&leased.fence.item, None).await {
            Ok(fence) => {
                warn!(worker = %self.worker, host = %leased.host, item = %leased.item, "lease expired");
                self.meaning.expired(leased, fence).await
            }
            Err(error) => Outcome::Transient(Failure::from_error(&error).elsewhere()),
        }
    }

    fn newest(&self) -> std::sync::MutexGuard<'_, BTreeMap<Arc<str>, u64>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Reconciler for Offers {
    fn labels(&self, key: &ObjectKey) -> Labels {
        self.meaning.labels(key)
    }

    async fn reconcile(&self, mut request: Request) -> Outcome {
        let _begun = self.board.begin();
        let permit = request.permit.take();
        let offer = match self.meaning.prepare(&request).await {
            Prepared::Offer(offer) => offer,
            Prepared::Settled(outcome) => return outcome,
        };
        let held = match self.lend(permit, &request, &offer).await {
            Ok(Some(held)) => held,
            // The host left while its item was fetched: back into the queue.
            Ok(None) => return Outcome::Returned,
            Err(error) => return Outcome::Transient(Failure::from_error(&error).elsewhere()),
        };
        match held.wait().await {
            Ending::Reported(leased, report, done) => {
                let outcome = self.meaning.finished(&leased, report).await;
                done.send(()).ok();
                outcome
            }
            Ending::Expired(leased) => self.expire(&leased).await,
            Ending::Returned => {
                info!(worker = %self.worker, item = %offer.item, "a host gave its item back");
                Outcome::Returned
            }
        }
    }
}

/// An item that is lent. Dropped, the lease ends: the run is no more.
pub(super) struct Held {
    pub board: Board,
    pub worker: Arc<str>,
    pub leased: Leased,
    pub ended: oneshot::Receiver<End>,
}

enum Ending {
    Reported(Leased, Report, oneshot::Sender<()>),
    Expired(Leased),
    Returned,
}

impl Held {
    async fn wait(mut self) -> Ending {
        loop {
            let remaining = match self.board.remaining(&self.worker, &self.leased) {
                Ok(remaining) => remaining,
                Err(Some(leased)) => return Ending::Expired(*leased),
                // It has ended in another way, of which word has been sent.
                Err(None) => {
                    let end = self.ended.try_recv().ok();
                    return self.ending(end);
                }
            };
            let sleep = self.board.clock().sleep(remaining);
            tokio::select! {
                biased;
                end = &mut self.ended => return self.ending(end.ok()),
                () = sleep => {}
            }
        }
    }

    fn ending(&self, end: Option<End>) -> Ending {
        match end {
            Some(End::Reported(leased, report, done)) => Ending::Reported(*leased, report, done),
            Some(End::Returned) => Ending::Returned,
            // Its worker was forgotten.
            None => Ending::Expired(self.leased.clone()),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.board.drop_lease(&self.worker, &self.leased);
    }
}
