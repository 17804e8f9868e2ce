//! What can be asked of a fleet, and what can be asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use concert_engine::workers::Leased;
use concert_engine::{ItemState, Lane, Phase};
use concert_model::condition;
use concert_model::inventory::{Grant, Lease, State, names};
use concert_model::{ObjectKey, Timestamp, Uid, time};
use concert_store::{By, Error, PageRequest, Query};
use serde::Serialize;
use serde_json::Value;
use tracing::warn;

use super::aggregate::waits;
use super::decide::held;
use super::items::Known;
use super::run::{Fleet, Running};
use super::vocabulary::reason;

/// Items that are shown of those that have taken longest.
const SLOWEST_MAX: usize = 10;
/// Failures of one reconciler that are told apart.
const FAILURES_MAX: usize = 20;
/// Entries that are named as examples of one failure.
const EXAMPLES_MAX: usize = 3;

/// A fleet at a glance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// How many entries have items.
    pub entries: usize,
    /// How many items are in which state.
    pub items: BTreeMap<&'static str, usize>,
    /// Who works on them.
    pub reconcilers: Vec<Crew>,
    /// What has not been ready for longest.
    pub slowest: Vec<Slow>,
    /// What fails, most first.
    pub failing: Vec<Failing>,
}

/// A reconciler at a glance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crew {
    /// Its name.
    pub reconciler: Arc<str>,
    /// `Ready` while one of its hosts is there.
    pub status: &'static str,
    /// Items in all.
    pub items: usize,
    /// Those that hosts have.
    pub running: usize,
    /// Those that are due and with no host.
    pub waiting: usize,
    /// How long the oldest of them has waited.
    pub queue_age_seconds: f64,
}

/// An item that has not been ready for a while.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slow {
    /// On which entry.
    pub entry: Arc<str>,
    /// Of which reconciler.
    pub reconciler: Arc<str>,
    /// Where it stands.
    pub state: &'static str,
    /// Since when it is not ready.
    pub since: String,
    /// For how long.
    pub seconds: i64,
    /// What it waits for, or what went wrong.
    pub message: String,
}

/// A failure, and how many items have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failing {
    /// Of which reconciler.
    pub reconciler: Arc<str>,
    /// In one word.
    pub reason: String,
    /// For people; of one of them.
    pub message: String,
    /// How many items.
    pub items: usize,
    /// Some of their entries.
    pub entries: Vec<Arc<str>>,
}

/// One entry and all that work on it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Its id.
    pub entry: Arc<str>,
    /// What it is at.
    pub revision: u64,
    /// Each reconciler.
    pub items: Vec<Item>,
}

/// One reconciler on one entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Item {
    /// Which reconciler.
    pub reconciler: Arc<str>,
    /// Whether it is registered, and so can be asked.
    pub is_registered: bool,
    /// Where it stands.
    pub state: &'static str,
    /// Why, in one word.
    pub reason: String,
    /// The same for people.
    pub message: String,
    /// Failures in a row.
    pub attempt: u64,
    /// What it waits for.
    pub waits_for: Vec<Value>,
    /// The host that has it.
    pub host: Option<Arc<str>>,
    /// For how long.
    pub running_seconds: Option<f64>,
    /// When it runs again, from now on.
    pub next_run_seconds: Option<f64>,
    /// Whether it is due and waits for a host.
    pub is_waiting: bool,
    /// Since when it is ready, or not.
    pub since: String,
}

/// Something that happened in a target cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The entry of the cluster.
    pub entry: String,
    /// The group of the object.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
}

/// Reconcilers by the sections that they write.
pub type Writers = BTreeMap<String, String>;

/// Why something that was asked for is not done.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// There is no such item.
    #[error("no reconciler {reconciler} works on entry {entry}")]
    Unknown {
        /// Which entry.
        entry: String,
        /// Which reconciler.
        reconciler: String,
    },
    /// Nobody knows yet who works on what: to be asked again in a moment.
    #[error("it is not known yet who works on entries")]
    NotYet,
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Running {
    /// The fleet at a glance.
    pub fn overview(&self) -> Overview {
        let all = self.0.items.all();
        let mut entries: Vec<&Arc<str>> = all.iter().map(|it| &it.0).collect();
        entries.dedup();
        Overview {
            entries: entries.len(),
            items: self.0.counts(&all).into_iter().map(|(state, count)| (state.as_str(), count)).collect(),
            reconcilers: self.0.crew_views(&all),
            slowest: slowest(&all, self.0.parts.clock.now()),
            failing: failing(&all),
        }
    }

    /// One entry and all that work on it; none if there is no such entry.
    ///
    /// # Errors
    /// Of the inventory.
    pub async fn entry(&self, id: &str) -> Result<Option<Entry>, Error> {
        let fleet = &*self.0;
        let object = match fleet.parts.inventory.get(&names::entry_key(id)).await {
            Ok(object) => object.decode(),
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let revision = fleet.sections.revision(&concert_model::inventory::Entry(&object).uid());
        let items = fleet.parts_of(&object).into_iter().map(|part| {
            let (leased, state) = fleet.live(id, &part.reconciler);
            item(part, leased.as_ref(), state.as_ref(), fleet.parts.clock.elapsed())
        });
        Ok(Some(Entry { entry: id.into(), revision, items: items.collect() }))
    }

    /// Who writes which section.
    ///
    /// # Errors
    /// Of the inventory.
    pub async fn writers(&self) -> Result<Writers, Error> {
        let query = Query::all(names::grant_kind());
        let page = match self.0.parts.inventory.list(&query, &PageRequest::whole()).await {
            Err(Error::UnknownKind { .. }) => return Ok(Writers::new()),
            page => page?,
        };
        let mut writers = Writers::new();
        for object in page.items.iter().map(concert_model::Encoded::decode) {
            for section in Grant::of(&object).write {
                writers.entry(section).or_insert_with(|| object.name().to_owned());
            }
        }
        Ok(writers)
    }

    /// Has an item run now. One that was stopped goes on.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn run(&self, entry: &str, reconciler: &str, actor: &str) -> Result<(), Denied> {
        self.0.check_listening(reconciler)?;
        let unknown = || Denied::Unknown { entry: entry.into(), reconciler: reconciler.into() };
        let key = names::entry_key(entry);
        // First: what is refused changes nothing.
        if self.0.crews().get(reconciler).is_none_or(|it| it.handle.state(&key).is_none()) {
            return Err(unknown());
        }
        let is_stopped = self.0.items.get(entry, reconciler).is_some_and(|it| it.is_stopped);
        if is_stopped {
            let by = By::actor(actor.to_owned()).because("run");
            self.0.items.set_stopped(entry, reconciler, false, &by).await?;
        }
        if self.0.wake(entry, reconciler, Lane::User, "asked") { Ok(()) } else { Err(unknown()) }
    }

    /// Stops an item: what a host is doing about it is no longer wanted, and nobody gets it until it is
    /// asked for again. Of one that a host had it says which claim the host is too late for: whoever takes
    /// writes is to be told.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn halt(&self, entry: &str, reconciler: &str, actor: &str) -> Result<Option<Lease>, Denied> {
        let fleet = &*self.0;
        fleet.check_listening(reconciler)?;
        let unknown = || Denied::Unknown { entry: entry.into(), reconciler: reconciler.into() };
        let (key, by) = (names::entry_key(entry), By::actor(actor.to_owned()).because("stop"));
        let object = match fleet.parts.inventory.get(&key).await {
            Err(Error::NotFound { .. }) => return Err(unknown()),
            object => object?.decode(),
        };
        let of = concert_model::inventory::Entry(&object);
        if !fleet.items.get(entry, reconciler).is_some_and(|it| it.is_of(&of.uid())) {
            let is_item = fleet.crews().get(reconciler).is_some_and(|it| it.handle.state(&key).is_some());
            if !is_item {
                return Err(unknown());
            }
            fleet.items.ensure(of, reconciler, &by).await?;
        }
        match fleet.items.set_stopped(entry, reconciler, true, &by).await {
            Err(Error::NotFound { .. }) => return Err(unknown()),
            done => done?,
        }
        let taken = fleet.parts.board.take_back(reconciler, &format!("{entry}/{reconciler}"));
        // Told here, since nobody may ask for work for a long time.
        let now = fleet.parts.clock.now();
        let say = |before: &Value| held(before, State::Stopped, reason::STOPPED, "", now);
        if let Err(error) = fleet.items.say(of, reconciler, &by, say).await {
            // It is stopped all the same, and says so at the latest when it is asked for.
            warn!(%reconciler, %error, "cannot say that an item is stopped");
        }
        fleet.wake(entry, reconciler, Lane::User, "asked");
        Ok(taken.and_then(|it| following(&it)))
    }

    /// Wakes whoever cares for what happened in target clusters. Says how many items that woke; none if it is
    /// not known yet who cares, and they are to be told again.
    pub fn events(&self, events: &[Event]) -> Option<usize> {
        let is_told = self.0.crews().values().all(|it| it.handle.is_ready());
        if !is_told || !self.0.is_listening() {
            return None;
        }
        let components = self.reconcilers();
        let mut woken = 0;
        for event in events {
            let cares = |it: &&Arc<super::Component>| {
                it.events.iter().any(|it| it.matches(&event.group, &event.kind, &event.namespace))
            };
            for component in components.iter().filter(cares) {
                woken += usize::from(self.0.wake_softly(&event.entry, &component.name));
            }
        }
        Some(woken)
    }
}

impl Fleet {
    /// Whether all items of a reconciler are known, if it is registered.
    fn check_listening(&self, reconciler: &str) -> Result<(), Denied> {
        let is_told = self.crews().get(reconciler).is_none_or(|it| it.handle.is_ready());
        if is_told && self.is_listening() { Ok(()) } else { Err(Denied::NotYet) }
    }

    /// How many of `all` items, and of those that nobody has been lent yet, are in which state. One that a host
    /// has is running, whatever it said last.
    pub fn counts(&self, all: &[(Arc<str>, Arc<str>, Known)]) -> BTreeMap<State, usize> {
        let mut counts: BTreeMap<State, usize> = State::ALL.into_iter().map(|it| (it, 0)).collect();
        let mut written: BTreeMap<&str, usize> = BTreeMap::new();
        let known =
            |(name, crew): (&Arc<str>, &super::run::Crew)| (name.clone(), crew.handle.summary().depth.known);
        let crews: Vec<(Arc<str>, usize)> = self.crews().iter().map(known).collect();
        let leases = |(name, _): &(Arc<str>, usize)| (name.clone(), self.parts.board.leases(name));
        let leases: Vec<(Arc<str>, Vec<Leased>)> = crews.iter().map(leases).collect();
        let lent = leases.iter().flat_map(|(name, all)| all.iter().map(move |it| (&**name, &*it.key.name)));
        let lent: BTreeSet<(&str, &str)> = lent.collect();
        for (entry, reconciler, known) in all {
            *written.entry(reconciler).or_default() += 1;
            let is_lent = lent.contains(&(&**reconciler, &**entry));
            *counts.entry(if is_lent { State::Running } else { known.state }).or_default() += 1;
        }
        // What nobody has been lent yet has no object. What was written by who is not registered any more is
        // no part of what the others know.
        for (name, known) in &crews {
            let written = written.get(&**name).copied().unwrap_or_default();
            *counts.entry(State::Pending).or_default() += known.saturating_sub(written);
        }
        counts
    }

    fn crew_views(&self, all: &[(Arc<str>, Arc<str>, Known)]) -> Vec<Crew> {
        let crews = self.crews();
        let view = |(name, crew): (&Arc<str>, &super::run::Crew)| {
            let (summary, pool) = (crew.handle.summary(), self.parts.board.view(name));
            let written = all.iter().filter(|it| it.1 == *name).count();
            Crew {
                reconciler: name.clone(),
                status: pool.phase(),
                items: summary.depth.known.max(written),
                running: pool.leases,
                waiting: summary.depth.ready.iter().sum(),
                queue_age_seconds: summary.longest_wait.as_secs_f64(),
            }
        };
        crews.iter().map(view).collect()
    }

    /// Who has an item, and what the engine knows of it.
    fn live(&self, entry: &str, reconciler: &str) -> (Option<Leased>, Option<ItemState>) {
        let key: ObjectKey = names::entry_key(entry);
        let state = self.crews().get(reconciler).and_then(|it| it.handle.state(&key));
        let leases = self.parts.board.leases(reconciler);
        (leases.into_iter().find(|it| it.key == key), state)
    }
}

/// The claim after this one, which is not made yet. The next one to be made has this number or a higher one.
fn following(leased: &Leased) -> Option<Lease> {
    let item = leased.context["item"].as_str().filter(|it| !it.is_empty())?;
    Some(Lease { item: Uid(item.into()), fence: leased.fence.number + 1 })
}

fn item(
    part: super::aggregate::Part,
    leased: Option<&Leased>,
    state: Option<&ItemState>,
    now: Duration,
) -> Item {
    let text = |field: &str| part.status[field].as_str().unwrap_or_default().to_owned();
    let shown = if leased.is_some() { State::Running } else { part.state };
    let due = state.filter(|_| leased.is_none()).and_then(|it| it.next_due);
    Item {
        reconciler: part.reconciler,
        is_registered: part.is_registered,
        state: shown.as_str(),
        reason: text("reason"),
        message: text("message"),
        attempt: part.status["attempt"].as_u64().unwrap_or_default(),
        waits_for: part.status["waitsFor"].as_array().cloned().unwrap_or_default(),
        host: leased.map(|it| it.host.clone()),
        running_seconds: leased.map(|it| now.saturating_sub(it.since).as_secs_f64()),
        next_run_seconds: due.map(|it| it.saturating_sub(now).as_secs_f64()),
        is_waiting: leased.is_none() && state.is_some_and(|it| it.phase == Phase::Waiting),
        since: since(&part.status),
    }
}

fn since(status: &Value) -> String {
    condition::find(status, "Ready").map(|it| it.last_transition_time).unwrap_or_default()
}

fn slowest(all: &[(Arc<str>, Arc<str>, Known)], now: Timestamp) -> Vec<Slow> {
    let is_open = |known: &Known| {
        matches!(known.state, State::Pending | State::Running | State::NotReady | State::Failed)
    };
    let slow = all.iter().filter(|it| is_open(&it.2)).map(|(entry, reconciler, known)| {
        let (status, state) = (known.status(), known.state);
        let since = since(&status);
        let age = time::parse(&since).map_or(0, |it| now.duration_since(it).as_secs());
        let said = status["message"].as_str().unwrap_or_default().to_owned();
        let message = match state {
            State::NotReady => format!("waits for {}", waits(&status)),
            _ => said,
        };
        let (entry, reconciler, state) = (entry.clone(), reconciler.clone(), state.as_str());
        Slow { entry, reconciler, state, since, seconds: age, message }
    });
    let mut slow: Vec<Slow> = slow.collect();
    slow.sort_by(|a, b| b.seconds.cmp(&a.seconds).then_with(|| a.entry.cmp(&b.entry)));
    slow.truncate(SLOWEST_MAX);
    slow
}

fn failing(all: &[(Arc<str>, Arc<str>, Known)]) -> Vec<Failing> {
    let mut by_reason: BTreeMap<(Arc<str>, String), Failing> = BTreeMap::new();
    for (entry, reconciler, known) in all.iter().filter(|it| it.2.state == State::Failed) {
        let status = known.status();
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        let failing = by_reason.entry((reconciler.clone(), text("reason"))).or_insert_with(|| Failing {
            reconciler: reconciler.clone(),
            reason: text("reason"),
            message: text("message"),
            items: 0,
            entries: Vec::new(),
        });
        failing.items += 1;
        if failing.entries.len() < EXAMPLES_MAX {
            failing.entries.push(entry.clone());
        }
    }
    let mut all: Vec<Failing> = by_reason.into_values().collect();
    all.sort_by_key(|it| std::cmp::Reverse(it.items));
    all.truncate(FAILURES_MAX);
    all
}
