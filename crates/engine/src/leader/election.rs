//! The life of a candidate and of a leader.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use concert_store::{Chance, Clock, Error, Fence};
use tracing::{info, warn};

use crate::shutdown::Shutdown;
use crate::watched::Watched;

use super::{Claim, Duty, Record, Seat};

/// How a candidate behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Who; different in every process and every start.
    pub holder: Arc<str>,
    /// How long others must see no renewal before they take over.
    pub lease: Duration,
    /// How long a leader may go without a renewal that worked. Shorter than `lease`: it must have
    /// stopped when others take over.
    pub renew_within: Duration,
    /// Between renewals, and between looks of a candidate.
    pub retry: Duration,
}

impl Config {
    /// Kubernetes' defaults: 15, 10 and 2 seconds.
    pub fn new(holder: impl Into<Arc<str>>) -> Self {
        let [lease, renew_within, retry] = [15, 10, 2].map(Duration::from_secs);
        Self { holder: holder.into(), lease, renew_within, retry }
    }
}

/// Where an election stands, from one candidate's view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Another one leads, or nobody yet.
    #[default]
    Waiting,
    /// Somebody else holds the seat.
    Following {
        /// Who.
        holder: Arc<str>,
    },
    /// This one leads.
    Leading {
        /// What fences off former leaders, where the store can.
        fence: Option<Fence>,
    },
    /// It has given up.
    Ended,
}

/// One candidate.
pub struct Election {
    seat: Arc<dyn Seat>,
    config: Config,
    clock: Arc<dyn Clock>,
    chance: Chance,
    state: Arc<Watched<State>>,
}

/// How leading ended.
enum End {
    Lost,
    Asked,
}

impl Election {
    /// A candidate for `seat`.
    pub fn new(seat: Arc<dyn Seat>, config: Config, clock: Arc<dyn Clock>, chance: Chance) -> Self {
        Self { seat, config, clock, chance, state: Arc::default() }
    }

    /// Where it stands.
    pub fn state(&self) -> Arc<Watched<State>> {
        self.state.clone()
    }

    /// Takes the seat whenever it can, and does its duty while it has it. When asked to stop, ends the
    /// duty first and then gives the seat free.
    pub async fn run(self, duty: Arc<dyn Duty>, shutdown: Shutdown) {
        while let Some((held, at)) = self.win(&shutdown).await {
            info!(holder = %self.config.holder, "leading");
            self.state.set(State::Leading { fence: held.fence.clone() });
            duty.begin(held.authority());
            let mut term = Term { election: &self, held, renewed: at };
            let end = tokio::select! {
                biased;
                end = term.keep() => end,
                () = shutdown.requested() => End::Asked,
            };
            match end {
                End::Asked => {
                    self.retire(term, &*duty).await;
                    break;
                }
                End::Lost => {
                    warn!(holder = %self.config.holder, "lost the lead");
                    self.state.set(State::Waiting);
                    duty.end(true).await;
                }
            }
        }
        self.state.set(State::Ended);
    }

    /// Waits for the seat. Returns the record and when it was asked for; none if asked to stop.
    async fn win(&self, shutdown: &Shutdown) -> Option<(Record, Duration)> {
        let mut stop = pin!(shutdown.requested());
        let mut seen = None;
        loop {
            let at = self.clock.elapsed();
            tokio::select! {
                biased;
                () = &mut stop => return None,
                won = self.attempt(&mut seen) => {
                    if let Some(record) = won {
                        return Some((record, at));
                    }
                }
            }
            // Some jitter, so that candidates do not all ask at once.
            let pause = self.config.retry.mul_f64(0.8 + 0.4 * self.chance.fraction());
            tokio::select! {
                biased;
                () = &mut stop => return None,
                () = self.clock.sleep(pause) => {}
            }
        }
    }

    /// One look, and one try if the seat is free. `seen` is the last record and since when it has not
    /// changed.
    async fn attempt(&self, seen: &mut Option<(Arc<str>, Duration)>) -> Option<Record> {
        let record = match self.seat.look().await {
            Ok(record) => record,
            Err(error) => {
                warn!(%error, "cannot look at the seat");
                return None;
            }
        };
        if let Some(record) = record.as_ref().filter(|it| !it.holder.is_empty()) {
            self.state.set(State::Following { holder: record.holder.clone() });
            let now = self.clock.elapsed();
            let since = match seen {
                Some((token, since)) if *token == record.token => *since,
                _ => {
                    *seen = Some((record.token.clone(), now));
                    now
                }
            };
            if now.saturating_sub(since) < record.lease {
                return None;
            }
        }
        match self.seat.take(record.as_ref(), &self.claim()).await {
            Ok(record) => Some(record),
            Err(error) => {
                info!(%error, "did not get the seat");
                None
            }
        }
    }

    /// Ends the duty while still renewing, then gives the seat free.
    async fn retire(&self, mut term: Term<'_>, duty: &dyn Duty) {
        let is_lost = {
            let mut end = pin!(duty.end(false));
            tokio::select! {
                biased;
                () = &mut end => false,
                _ = term.keep() => true,
            }
        };
        if is_lost {
            duty.end(true).await;
        } else if let Err(error) = self.seat.leave(&term.held).await {
            warn!(%error, "cannot give the seat free");
        }
    }

    fn claim(&self) -> Claim {
        Claim { holder: self.config.holder.clone(), lease: self.config.lease }
    }
}

/// The time that one has the seat.
struct Term<'a> {
    election: &'a Election,
    held: Record,
    /// When the last renewal that worked was asked for: others may count from then.
    renewed: Duration,
}

impl Term<'_> {
    /// Renews until that fails for too long.
    async fn keep(&mut self) -> End {
        let Election { clock, config, .. } = self.election;
        loop {
            let end = self.renewed + config.renew_within;
            // No longer than it may go without a renewal: others count on that.
            clock.sleep(config.retry.min(end.saturating_sub(clock.elapsed()))).await;
            let asked = clock.elapsed();
            let left = end.saturating_sub(asked);
            // A process that was paused wakes up here and must not even try.
            if left.is_zero() {
                return End::Lost;
            }
            let claim = self.election.claim();
            let renewal = tokio::select! {
                biased;
                renewal = self.election.seat.renew(&self.held, &claim) => renewal,
                () = clock.sleep(left) => return End::Lost,
            };
            match renewal {
                Ok(record) => (self.held, self.renewed) = (record, asked),
                Err(Error::Conflict { .. } | Error::Fenced { .. } | Error::NotFound { .. }) => {
                    return End::Lost;
                }
                Err(error) => warn!(%error, "cannot renew the lead"),
            }
        }
    }
}
