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
    // First: an item that came back cannot claim its row before the one it had is dropped.
    let orphans =
        core.orphans.drain(..).map(|(item, claim)| Job { item, key: None, claim: Some(claim), row: None });
    let mut jobs: Vec<Job> = orphans.collect();
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
    jobs
}

struct Saving {
    shared: Arc<Shared>,
    work: Arc<dyn Work>,
    chance: Chance,
}

impl Saving {
    async fn save(&self, mut job: Job) {
        let item = ItemKey { controller: self.shared.name.clone(), item: job.item.clone() };
        let (mut failures, mut has_read) = (0, false);
        loop {
            match self.write(&item, &job).await {
                Ok(claim) => return self.note(&job, claim),
                // A row that we do not know of, such as one whose write was answered with an error.
                Err(Error::Fenced { .. }) if !has_read && !matches!(job.claim, Some(Claim::Held(_))) => {
                    match self.work.read(&item).await {
                        Ok(row) => {
                            has_read = true;
                            job.claim = row.map(|it| Claim::Found(it.fence));
                            continue;
                        }
                        Err(error) => warn!(item = %job.item, %error, "cannot read work state"),
                    }
                }
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
        let Some(key) = &job.key else { return };
        self.shared.with(|core| {
            // The item may have gone meanwhile, with the claim that it had before this write.
            core.orphans.retain(|(item, _)| *item != job.item);
            match (core.queue.find(key), claim) {
                (Some(id), _) => {
                    let detail = core.queue.note_mut(id).detail_mut();
                    detail.row = claim;
                    detail.saved = job.row.as_ref().map(|(saved, _)| saved.clone());
                    core.queue.note_mut(id).tidy();
                    // It may want another row by now, or none.
                    core.mark_unsaved(id, key);
                }
                (None, Some(claim)) => {
                    core.orphans.push((job.item.clone(), claim));
                    core.rings.saving = true;
                }
                (None, None) => {}
            }
        });
    }
}

/// Reads all rows of a controller that are about keys of ours.
pub(super) async fn scan(
    shared: &Shared,
    work: &dyn Work,
    is_ours: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    let rows = work.scan(&shared.name).await?;
    let (now, wall) = (shared.clock.elapsed(), shared.clock.now());
    shared.with(|core| {
        core.is_list_outdated = true;
        for found in rows {
            if !is_ours(&found.item.item) {
                continue;
            }
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

#[cfg(test)]
mod tests {
    use concert_store::Query;

    use super::super::running::Surroundings;
    use super::super::{Controller, Durability};
    use super::*;
    use crate::fixtures::{Script, World, config_map_kind, seconds, widget};
    use crate::metrics::Metrics;
    use crate::outcome::{Failure, Outcome};
    use crate::queue::Lane;
    use crate::source::Objects;

    /// Without the tasks of a controller: each step is taken by hand.
    fn saving(world: &World, has_objects: bool) -> Saving {
        let (chance, work) = (Chance::seeded(1), Arc::new(world.store.local.clone()));
        let builder = Controller::builder("test", Script::new(|_| Outcome::Done));
        let mut controller = builder.durability(Durability::Outcomes(work.clone())).build();
        controller.objects = has_objects.then(|| Objects::new(Query::all(config_map_kind())));
        let (store, clock) = (world.store.clone(), Arc::new(world.clock.clone()));
        let surroundings = Surroundings { store, clock, chance: chance.clone(), metrics: Metrics::default() };
        Saving { shared: Arc::new(Shared::new(&controller, &surroundings)), work, chance }
    }

    impl Saving {
        fn run(&self, outcome: Outcome) {
            self.shared.with(|core| {
                let mut runs = Vec::new();
                core.enqueue(&widget("a"), Lane::Event, "x", seconds(0), seconds(0)).unwrap();
                core.take(1, None, seconds(0), &mut runs);
                core.settle(runs[0].item.id, 0, outcome, seconds(0));
            });
        }

        async fn save_all(&self, jobs: Vec<Job>) {
            for job in jobs {
                self.save(job).await;
            }
        }

        async fn rows(&self) -> Vec<String> {
            let rows = self.work.scan("test").await.unwrap();
            rows.iter().map(|row| String::from_utf8_lossy(&row.body).into_owned()).collect()
        }
    }

    fn down() -> Outcome {
        Outcome::Transient(Failure::new("down"))
    }

    #[tokio::test]
    async fn a_row_that_nobody_wants_any_more_when_it_is_written_is_dropped() {
        for is_forgotten in [false, true] {
            let saving = saving(&World::new(), is_forgotten);
            saving.run(down());
            let jobs = saving.shared.with(take_jobs);
            saving.run(Outcome::Done);
            assert_eq!(saving.shared.with(|core| core.queue.find(&widget("a")).is_none()), is_forgotten);
            saving.save_all(jobs).await;
            assert_eq!(saving.rows().await.len(), 1);
            saving.save_all(saving.shared.with(take_jobs)).await;
            assert_eq!(saving.rows().await.len(), 0, "forgotten: {is_forgotten}");
            saving.run(down());
            saving.save_all(saving.shared.with(take_jobs)).await;
            assert_eq!(saving.rows().await.len(), 1);
            assert!(saving.shared.with(take_jobs).is_empty(), "quiet");
        }
    }

    #[tokio::test]
    async fn an_item_that_comes_back_has_a_row_again() {
        let saving = saving(&World::new(), true);
        saving.run(down());
        saving.save_all(saving.shared.with(take_jobs)).await;
        saving.run(Outcome::Done);
        saving.run(down());
        saving.save_all(saving.shared.with(take_jobs)).await;
        assert_eq!(saving.rows().await.len(), 1);
        assert!(saving.shared.with(take_jobs).is_empty(), "quiet");
    }

    #[tokio::test]
    async fn a_claim_whose_answer_was_lost_is_found_again() {
        let saving = saving(&World::new(), false);
        let item = ItemKey { controller: "test".into(), item: widget("a").to_string().into() };
        saving.work.claim(&item, 0, b"{}".to_vec().into()).await.unwrap();
        saving.run(down());
        saving.save_all(saving.shared.with(take_jobs)).await;
        assert!(saving.rows().await[0].contains("down"));
    }
}
