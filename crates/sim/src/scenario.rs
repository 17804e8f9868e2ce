//! One simulated life: users, processes and bad weather, then calm, then the questions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use concert_engine::members::Shares;
use concert_engine::{Engine, Tasks};
use concert_model::{Encoded, GroupKind, Object, Patch, Revision};
use concert_store::{By, Chance, Clock, Config, Delete, Error, Local, PageRequest, Part, Query, Store};
use futures_util::FutureExt;
use serde_json::Value;

pub use crate::company::Company;
use crate::company::{join, stand};
use crate::executor::{Executor, Group};
use crate::faults::{Disk, Line, Remote, Weather};
use crate::ownership::Ownership;
use crate::play::{Actor, Play, Stage, Wish};
use crate::skew::Skewed;

#[path = "rehearse.rs"]
mod rehearse;

pub use crate::report::{Counts, Report};
pub use rehearse::rehearse;

/// For how long shares are looked at once faults have stopped, beside a takeover: the longest freeze, and some
/// time.
const SHARES_WATCHED: Duration = Duration::from_secs(60 + 60);
/// Between two looks at them.
const SHARES_EVERY: Duration = Duration::from_secs(1);
/// How long bad weather lasts, in turns of up to three seconds each.
const TURNS: u64 = 120;
/// Longest time to peace once faults have stopped: a lease, the longest back-off and two polls fit in.
const SETTLE: Duration = Duration::from_secs(400);
/// The same where there were no faults but one death: a lease and two polls.
const RECOVER: Duration = Duration::from_secs(150);

/// Lives the life of `seed` in the play that `open` puts on. A life that panics is a bad one.
pub fn run<P: Play>(seed: u64, open: impl Fn(&Stage) -> P + std::panic::UnwindSafe) -> Report {
    run_in(Company::Leader, seed, open)
}

/// The same, in this company.
pub fn run_in<P: Play>(
    company: Company,
    seed: u64,
    open: impl Fn(&Stage) -> P + std::panic::UnwindSafe,
) -> Report {
    caught(seed, || live(company, seed, open))
}

/// Lives a life in fine weather, in which wishes come one after the other and the store dies at its commit number
/// `commit` after each: with every number, after every effect there is.
pub fn run_dying<P: Play>(
    seed: u64,
    commit: u64,
    wishes: impl Fn() -> Vec<Wish> + std::panic::UnwindSafe,
    open: impl Fn(&Stage) -> P + std::panic::UnwindSafe,
) -> Report {
    caught(seed, move || {
        let mut life = Life::begin(Company::Leader, seed, open);
        life.calm_down();
        life.executor.run_for(RECOVER);
        for wish in wishes() {
            life.grant(wish);
            life.die_at(commit);
            life.executor.run_for(RECOVER);
            let objects = life.objects();
            life.violations.extend(life.play.check(&objects));
        }
        life.settle_and_check();
        life.report(seed)
    })
}

fn caught(seed: u64, life: impl FnOnce() -> Report + std::panic::UnwindSafe) -> Report {
    std::panic::catch_unwind(life).unwrap_or_else(|panic| {
        let texts =
            [panic.downcast_ref::<String>().map(String::as_str), panic.downcast_ref::<&str>().copied()];
        let text = texts.into_iter().flatten().next().unwrap_or("without a word");
        let violations = vec![format!("it panicked: {text}")];
        Report { seed, violations, trace: Vec::new(), fingerprint: 0, counts: Counts::default() }
    })
}

fn live<P: Play>(company: Company, seed: u64, open: impl Fn(&Stage) -> P) -> Report {
    let mut life = Life::begin(company, seed, open);
    for _ in 0..TURNS {
        life.turn();
    }
    life.calm_down();
    life.settle_and_check();
    life.report(seed)
}

/// A process, and its engine to ask about items.
struct Process {
    group: Group,
    engine: Engine,
    tasks: Tasks,
    line: Line,
    /// What it holds, as a member.
    shares: Option<Shares>,
    /// Until then it is stopped.
    frozen_until: Duration,
}

struct Life<P> {
    company: Company,
    ownership: Ownership,
    play: P,
    executor: Executor,
    chance: Chance,
    weather: Weather,
    disk: Disk,
    store: Option<Local>,
    starts: u32,
    processes: BTreeMap<u32, Process>,
    /// Asked to stop, and on their way.
    leaving: Vec<Process>,
    trace: Vec<String>,
    counts: Counts,
    violations: Vec<String>,
    _end: End,
}

/// Ends what still runs when a life is over, also one that panicked.
struct End(Executor);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What is stored, with all that a user says: every field but the status, which is not theirs, and labels
/// and annotations besides those that others have set.
fn edited(mut stored: Object, wanted: &Object) -> Object {
    let Value::Object(fields) = wanted.clone().into_value() else { return stored };
    for (field, value) in fields {
        if !["apiVersion", "kind", "metadata", "status"].contains(&field.as_str()) {
            stored.set(&field, value);
        }
    }
    for (name, value) in wanted.labels() {
        stored.set_label(&name, &value);
    }
    for (name, value) in wanted.annotations() {
        stored.set_annotation(&name, &value);
    }
    stored
}

impl<P: Play> Life<P> {
    fn begin(company: Company, seed: u64, open: impl Fn(&Stage) -> P) -> Self {
        let chance = Chance::seeded(seed);
        let executor = Executor::new(chance.fork());
        // In half of all lives reads are never stale and watches lose nothing, but nobody polls either:
        // there a lost wake-up is never made good.
        let is_lossy = seed.is_multiple_of(2);
        let weather = Weather::new(is_lossy);
        let stage =
            Stage { executor: executor.clone(), chance: chance.fork(), weather: weather.clone(), seed };
        let mut life = Self {
            company,
            ownership: Ownership::new(&company.member("anybody")),
            play: open(&stage),
            _end: End(executor.clone()),
            executor,
            chance,
            weather,
            disk: Disk::default(),
            store: None,
            starts: 0,
            processes: BTreeMap::new(),
            leaving: Vec::new(),
            trace: Vec::new(),
            counts: Counts::default(),
            violations: Vec::new(),
        };
        life.open();
        for definition in life.play.definitions() {
            let definition = Object::from_value(definition).expect("the definition is an object");
            life.at_once(|store| {
                Box::pin(async move { store.create(definition, &By::actor("user")).await.map(drop) })
            });
        }
        life.weather.set_bad(true);
        life
    }

    /// Opens the store on the disk and starts all processes.
    fn open(&mut self) {
        self.disk.revive();
        let config = Config::new(Arc::new(self.executor.clone()), self.chance.fork()).inline();
        let store = Local::open(Arc::new(self.disk.clone()), config);
        self.store = Some(store.expect("what was stored can be opened"));
        for process in 0..self.company.processes() {
            self.start(process);
        }
    }

    fn start(&mut self, process: u32) {
        let Some(store) = self.store.clone() else { return };
        self.starts += 1;
        let group = Group(self.starts);
        self.note(format!("process {process} starts as {}", self.starts));
        let chance = self.chance.fork();
        let clock: Arc<dyn Clock> = match self.company {
            Company::Leader => Arc::new(self.executor.clone()),
            Company::Members | Company::Stubborn => Skewed::new(self.executor.clone(), &chance),
        };
        let remote = Remote::new(store, self.executor.clone(), chance.fork(), self.weather.clone());
        let remote = Arc::new(remote.seen_by(self.play.witness()));
        let tasks = Tasks::new(self.executor.spawner(group), clock.clone());
        let engine = Engine::new(remote.clone(), clock.clone(), chance.fork(), tasks.clone());
        let actor = Actor {
            remote: remote.clone(),
            engine: engine.clone(),
            tasks: tasks.clone(),
            clock: clock.clone(),
            chance: chance.fork(),
        };
        let duty = self.play.duty(actor);
        let name = format!("process-{}", self.starts);
        let line = remote.line();
        let shares = match self.company {
            Company::Leader => stand(remote, &name, duty, &tasks, clock, chance),
            Company::Members | Company::Stubborn => {
                Some(join(remote, self.company.member(&name), duty, &tasks, clock, chance))
            }
        };
        self.ownership.disturb(self.executor.elapsed());
        let frozen_until = Duration::ZERO;
        self.processes.insert(process, Process { group, engine, tasks, line, shares, frozen_until });
    }

    fn turn(&mut self) {
        self.executor.run_for(Duration::from_millis(self.chance.below(3_000)));
        self.check_doubles();
        match self.chance.below(100) {
            0..45 => self.user(),
            45..53 => self.kill(),
            53..63 => self.freeze(),
            63..70 => {
                let commits = 1 + self.chance.below(12);
                self.note(format!("the store will die at its commit {commits}"));
                self.disk.light_fuse(commits);
            }
            70..75 => self.compact(),
            75..82 => self.stop(),
            82..90 if self.company.shares_work() => self.cut(),
            _ => {}
        }
        if self.disk.is_dead() {
            self.crash();
        }
    }

    /// Lets the store die at this commit, if that comes before all is long at peace.
    fn die_at(&mut self, commit: u64) {
        self.note(format!("the store will die at its commit {commit}"));
        self.disk.light_fuse(commit);
        let until = self.executor.elapsed() + SETTLE;
        while !self.disk.is_dead() && self.executor.elapsed() < until {
            self.executor.run_for(Duration::from_secs(1));
        }
        self.disk.light_fuse(0);
        if self.disk.is_dead() {
            self.crash();
        }
    }

    fn user(&mut self) {
        let wish = self.play.wish();
        self.grant(wish);
    }

    fn grant(&mut self, wish: Wish) {
        self.note(format!("user wants {wish}"));
        let by = By::actor("user");
        let store = wish.kind().and_then(|it| self.play.store_of(&it)).or_else(|| self.store.clone());
        self.at_once_in(store, move |store| {
            Box::pin(async move {
                let wish = match wish {
                    Wish::OneOf(kind, number, change) => {
                        let Some(found) = one_of(&store, kind, number).await? else { return Ok(()) };
                        let key = found.key().clone();
                        change.map_or(Wish::Gone(key.clone()), |change| Wish::Changed(key, change))
                    }
                    Wish::Forged(kind, number, forge) => {
                        let Some(found) = one_of(&store, kind, number).await? else { return Ok(()) };
                        Wish::There(forge(&found.decode()))
                    }
                    wish => wish,
                };
                let object = match wish {
                    Wish::Gone(key) => return store.delete(&key, &Delete::default(), &by).await.map(drop),
                    Wish::Changed(key, change) => {
                        let patch = Patch::Merge(change);
                        return store.patch(&key, Part::Main, &patch, &by).await.map(drop);
                    }
                    Wish::There(object) => object,
                    Wish::OneOf(..) | Wish::Forged(..) => return Ok(()),
                };
                match store.create(object.clone(), &by).await {
                    Err(Error::AlreadyExists { key }) => {
                        let stored = store.get(&key).await?.decode();
                        store.update(edited(stored, &object), &by).await.map(drop)
                    }
                    other => other.map(drop),
                }
            })
        });
    }

    fn kill(&mut self) {
        let process = self.anybody();
        self.note(format!("process {process} is killed"));
        self.counts.kills += 1;
        if let Some(process) = self.processes.remove(&process) {
            self.check_health(&process);
            self.executor.kill(process.group);
        }
        self.start(process);
    }

    /// Asks a process to stop, and starts its successor at once.
    fn stop(&mut self) {
        let process = self.anybody();
        self.note(format!("process {process} is asked to stop"));
        self.counts.stops += 1;
        if let Some(process) = self.processes.remove(&process) {
            self.check_health(&process);
            process.tasks.shutdown().request();
            self.leaving.push(process);
        }
        self.start(process);
    }

    /// Nothing in an engine may die, whatever the weather.
    fn check_health(&mut self, process: &Process) {
        if process.tasks.root().is_requested() {
            self.violations.push("a task of an engine has died".into());
        }
        let panics: u64 = process.engine.controllers().iter().map(|summary| summary.panics).sum();
        if panics > 0 {
            self.violations.push(format!("{panics} reconciles have panicked"));
        }
    }

    fn freeze(&mut self) {
        let process = self.anybody();
        let duration = Duration::from_millis(self.chance.below(60_000));
        self.note(format!("process {process} is stopped for {duration:?}"));
        self.counts.freezes += 1;
        let until = self.executor.elapsed() + duration;
        self.ownership.disturb(until);
        if let Some(process) = self.processes.get_mut(&process) {
            process.frozen_until = until;
            self.executor.freeze(process.group, duration);
        }
    }

    /// Cuts a process off from the store, and so from all others.
    fn cut(&mut self) {
        let process = self.anybody();
        let duration = Duration::from_millis(self.chance.below(40_000));
        self.note(format!("process {process} is cut off for {duration:?}"));
        self.counts.cuts += 1;
        self.ownership.disturb(self.executor.elapsed() + duration);
        if let Some(process) = self.processes.get(&process) {
            process.line.cut(self.executor.elapsed() + duration);
        }
    }

    fn anybody(&self) -> u32 {
        self.chance.below(u64::from(self.company.processes())) as u32
    }

    /// Every share is claimed, and by one only. A call that was sent in bad weather may take long, and its share
    /// is handed over only when it has ended: until then whoever sent it has it.
    fn check_shares(&mut self) {
        if !self.company.shares_work() {
            return;
        }
        let processes = self.processes.values().chain(&self.leaving);
        let claims: Vec<_> = processes.filter_map(|it| Some(it.shares.as_ref()?.claimed())).collect();
        let wrong = self.ownership.check(self.executor.elapsed(), &claims);
        self.violations.extend(wrong);
    }

    /// Whoever stands still cannot know what it has lost; whoever does not gives up in time.
    fn check_doubles(&mut self) {
        let now = self.executor.elapsed();
        let processes = self.processes.values().chain(&self.leaving);
        let awake = processes.filter(|it| it.frozen_until < now);
        let held: Vec<_> = awake.filter_map(|it| Some(it.shares.as_ref()?.held())).collect();
        self.violations.extend(self.ownership.check_doubles(now, &held));
    }

    fn watch_shares(&mut self) {
        let end = self.executor.elapsed() + SHARES_WATCHED + self.ownership.takeover();
        while self.executor.elapsed() < end {
            self.executor.run_for(SHARES_EVERY);
            self.check_shares();
            self.check_doubles();
        }
    }

    fn compact(&mut self) {
        self.note("the log is compacted".into());
        let floor = self.disk.newest();
        self.at_once(move |store| Box::pin(async move { store.compact(floor).await }));
    }

    /// The store and all in its process die; what was committed is there when it is opened again.
    fn crash(&mut self) {
        self.note("the store has died and is opened again".into());
        self.counts.crashes += 1;
        for process in std::mem::take(&mut self.leaving) {
            self.executor.kill(process.group);
        }
        for process in std::mem::take(&mut self.processes).into_values() {
            self.check_health(&process);
            self.executor.kill(process.group);
        }
        self.store = None;
        self.open();
    }

    fn calm_down(&mut self) {
        self.note("the weather is fine".into());
        self.weather.set_bad(false);
        self.play.calm_down();
        self.disk.light_fuse(0);
        if self.disk.is_dead() {
            self.crash();
        }
    }

    fn settle_and_check(&mut self) {
        if self.company.shares_work() {
            self.watch_shares();
        }
        self.executor.run_for(SETTLE);
        self.check_shares();
        let objects = self.objects();
        self.violations.extend(self.play.check(&objects));
        for object in &objects {
            let past = self.past(object);
            self.violations.extend(self.play.check_history(object, &past));
        }
        if !self.violations.is_empty() {
            self.explain();
        }
        let look = |life: &Self| {
            let done = life.play.done();
            let Revision(elsewhere) = life.play.newest_elsewhere();
            (Revision(life.disk.newest().0 + elsewhere), done.effects, done.runs)
        };
        let (before, quiet) = (look(self), self.company.quiet());
        self.executor.run_for(quiet);
        let after = look(self);
        if (after.0, after.1) != (before.0, before.1) {
            let (Revision(from), Revision(to)) = (before.0, after.0);
            let text = format!("not quiet: revisions {from} to {to}, effects {} to {}", before.1, after.1);
            self.violations.push(text);
        }
        let runs_max = self.play.runs_max(quiet);
        let runs = after.2 - before.2;
        if runs as f64 > runs_max {
            self.violations.push(format!("not quiet: {runs} runs, at most {runs_max} have a reason"));
        }
        for process in std::mem::take(&mut self.processes).values() {
            self.check_health(process);
        }
        self.violations.extend(self.play.violations());
    }

    /// What the engines know of each object: the first thing to read of a bad life.
    fn explain(&mut self) {
        let engines = self.processes.iter();
        let controllers = engines.flat_map(|(n, it)| {
            it.engine
                .controllers()
                .into_iter()
                .filter_map(move |found| Some((n, it.engine.controller(&found.name)?)))
        });
        let states: Vec<String> = controllers
            .flat_map(|(n, it)| it.states().into_iter().map(move |state| format!("process {n}: {state:?}")))
            .collect();
        states.into_iter().for_each(|state| self.note(state));
        for object in self.objects() {
            self.tell_history(&object);
        }
    }

    /// Everything that was stored under the key of an object, as far as the log goes back, oldest first.
    fn past(&self, object: &Object) -> Vec<Object> {
        let (Some(store), Ok(key)) = (self.store_of(object), object.key()) else { return Vec::new() };
        let past = store.history(&key, None, 1_000).now_or_never().expect("an inline store never waits");
        let past = past.expect("the store can be read");
        past.iter().rev().filter_map(|it| it.object.as_ref()).map(Encoded::decode).collect()
    }

    fn store_of(&self, object: &Object) -> Option<Local> {
        let kind = object.gvk().ok().map(|it| it.group_kind);
        kind.and_then(|it| self.play.store_of(&it)).or_else(|| self.store.clone())
    }

    /// Every write of an object that is left, by whom, with its metadata.
    fn tell_history(&mut self, object: &Object) {
        let (Some(store), Ok(key)) = (self.store_of(object), object.key()) else { return };
        let past = store.history(&key, None, 100).now_or_never().expect("an inline store never waits");
        for past in past.expect("the store can be read").iter().rev() {
            let metadata = past.object.as_ref().map(|it| it.body().metadata().to_vec()).unwrap_or_default();
            let (act, actor, at) = (&past.act, &past.stamp.actor, past.stamp.at);
            self.trace
                .push(format!("{at} {key}: {act:?} by {actor}: {}", String::from_utf8_lossy(&metadata)));
        }
    }

    fn objects(&self) -> Vec<Object> {
        let store = self.store.as_ref().expect("the store is open");
        let kinds = self.play.kinds().into_iter();
        let pages = kinds.map(|kind| {
            let elsewhere = self.play.store_of(&kind);
            let store = elsewhere.as_ref().unwrap_or(store);
            let (query, whole) = (Query::all(kind), PageRequest::whole());
            let page = store.list(&query, &whole).now_or_never().expect("an inline store never waits");
            page.expect("the store can be read").items
        });
        pages.flatten().map(|it: Encoded| it.decode()).collect()
    }

    /// Does what a user asks for, against the store itself. Its failures are the user's to bear.
    fn at_once(
        &mut self,
        work: impl FnOnce(Local) -> futures_util::future::BoxFuture<'static, Result<(), Error>>,
    ) {
        self.at_once_in(self.store.clone(), work);
    }

    fn at_once_in(
        &mut self,
        store: Option<Local>,
        work: impl FnOnce(Local) -> futures_util::future::BoxFuture<'static, Result<(), Error>>,
    ) {
        let Some(store) = store else { return };
        let result = work(store).now_or_never().expect("an inline store never waits");
        if let Err(error) = result {
            self.note(format!("  in vain: {error}"));
        }
    }

    fn note(&mut self, text: String) {
        self.trace.push(format!("{:>9.3} {text}", self.executor.elapsed().as_secs_f64()));
    }

    fn report(mut self, seed: u64) -> Report {
        let done = self.play.done();
        (self.counts.creates, self.counts.deletes, self.counts.fenced) =
            (done.creates, done.deletes, done.fenced);
        self.counts.faults = self.weather.hits();
        self.counts.steps = self.executor.steps();
        let (violations, trace, counts) = (self.violations, self.trace, self.counts);
        Report { seed, violations, trace, fingerprint: self.executor.fingerprint(), counts }
    }
}

/// One of a kind: a number says which, of those that there are.
async fn one_of(store: &Local, kind: GroupKind, number: u64) -> Result<Option<Encoded>, Error> {
    let mut page = store.list(&Query::all(kind), &PageRequest::whole()).await?;
    let index = number.checked_rem(page.items.len() as u64);
    Ok(index.map(|index| page.items.swap_remove(index as usize)))
}
