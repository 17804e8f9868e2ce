//! The task that keeps the rows of work state up to date, and what reads them at the start.
//!
//! A row is written when what it says changes and dropped when there is nothing to say: items that
//! are merely polled have none.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use concert_model::ObjectKey;
use concert_store::{Chance, Clock, Error, Fence, ItemKey, Work};
use tracing::{debug, warn};

use crate::backoff::Backoff;
use crate::shutdown::Shutdown;

use super::core::Core;
use super::note::{Claim, Saved};
use super::restore::{Restored, Row};
use super::shared::Shared;

/// Between tries while the store does not answer.
const RETRY: Backoff = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(10) };

/// What is written at once before others get a turn.
const BATCH: usize = 64;

/// What is to be done to the row of one item.
struct Job {
    /// The printed key.
    item: Arc<str>,
    /// None if the item is gone.
    key: Option<ObjectKey>,
    claim: Option<Claim>,
    /// None to drop it.
    row: Option<(Saved, Option<Duration>)>,
}

/// Saves until asked to stop, and then what the workers have settled last.
pub(super) async fn run(shared: Arc<Shared>, work: Arc<dyn Work>, chance: Chance, shutdown: Shutdown) {
    let saving = Saving { shared: shared.clone(), work, chance };
    let mut stop = pin!(async {
        shutdown.requested().await;
        shared.workers.wait_for(|count| *count == 0).await;
    });
    let mut is_last = false;
    loop {
        let jobs = shared.with(take_jobs);
        if jobs.is_empty() {
            if is_last {
                return;
            }
            tokio::select! {
                biased;
                () = &mut stop => is_last = true,
                () = shared.bells.saving.notified() => {}
            }
        }
        for job in jobs {
            saving.save(job).await;
        }
    }
}

fn take_jobs(core: &mut Core) -> Vec<Job> {
    let mut jobs = Vec::new();
    while jobs.len() < BATCH {
        let Some(key) = core.unsaved.pop_front() else { break };
        let Some(id) = core.queue.find(&key) else { continue };
        let due = core.queue.view(id).and_then(|view| view.due);
        let note = core.queue.note_mut(id);
        note.is_unsaved = false;
        let row = note.to_save().map(|saved| (saved, due));
        let claim = note.detail.as_ref().and_then(|it| it.row);
        if row.is_some() || claim.is_some() {
            jobs.push(Job { item: key.to_string().into(), key: Some(key), claim, row });
        }
    }
    let orphans =
        core.orphans.drain(..).map(|(item, claim)| Job { item, key: None, claim: Some(claim), row: None });
    jobs.extend(orphans);
    jobs
}

struct Saving {
    shared: Arc<Shared>,
    work: Arc<dyn Work>,
    chance: Chance,
}

impl Saving {
    async fn save(&self, job: Job) {
        let item = ItemKey { controller: self.shared.name.clone(), item: job.item.clone() };
        let mut failures = 0;
        loop {
            match self.write(&item, &job).await {
                Ok(claim) => return self.note(&job, claim),
                Err(Error::Fenced { .. }) => {
                    // Somebody else works on it: what we know of it is of no more use to anybody.
                    warn!(item = %job.item, "work state was claimed by somebody else");
                    return self.note(&job, None);
                }
                Err(error) => warn!(item = %job.item, %error, "cannot save work state"),
            }
            failures += 1;
            self.shared.clock.sleep(RETRY.delay(failures, &self.chance)).await;
        }
    }

    async fn write(&self, item: &ItemKey, job: &Job) -> Result<Option<Claim>, Error> {
        let body = job.row.as_ref().map(|(saved, due)| {
            let row = Row::new(saved, due.map(|due| time_of(&*self.shared.clock, due)));
            // Strings, numbers and lists of them can always be written.
            serde_json::to_vec(&row).unwrap_or_default()
        });
        let fence = match (job.claim, &body) {
            (Some(Claim::Held(number)), _) => Fence { item: item.clone(), number },
            (found, body) => {
                let seen = if let Some(Claim::Found(number)) = found { number } else { 0 };
                let fence = self.work.claim(item, seen, body.clone().unwrap_or_default().into()).await?;
                if body.is_some() {
                    return Ok(Some(Claim::Held(fence.number)));
                }
                fence
            }
        };
        match body {
            Some(body) => self.work.save(&fence, body.into()).await.map(|()| Some(Claim::Held(fence.number))),
            None => self.work.forget(&fence).await.map(|()| None),
        }
    }

    fn note(&self, job: &Job, claim: Option<Claim>) {
        self.shared.with(|core| {
            let Some(id) = job.key.as_ref().and_then(|key| core.queue.find(key)) else { return };
            let Some(detail) = &mut core.queue.note_mut(id).detail else { return };
            detail.row = claim;
            detail.saved = job.row.as_ref().map(|(saved, _)| saved.clone());
        });
    }
}

/// Reads all rows of a controller.
pub(super) async fn scan(shared: &Shared, work: &dyn Work) -> Result<(), Error> {
    let rows = work.scan(&shared.name).await?;
    let (now, wall) = (shared.clock.elapsed(), shared.clock.now());
    shared.with(|core| {
        for found in rows {
            let Ok(row) = serde_json::from_slice::<Row>(&found.body) else {
                debug!(item = %found.item.item, "work state of another version is left alone");
                continue;
            };
            let due = row.left(wall).map(|left| now + left);
            core.restored.insert((*found.item.item).into(), Restored { row, fence: found.fence, due });
        }
    });
    Ok(())
}

fn time_of(clock: &dyn Clock, due: Duration) -> concert_model::Timestamp {
    let left = due.saturating_sub(clock.elapsed());
    clock.now().checked_add(left).unwrap_or(concert_model::Timestamp::MAX)
}
