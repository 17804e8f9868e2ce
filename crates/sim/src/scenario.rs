//! One simulated life: users, processes and bad weather, then calm, then the questions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use concert_engine::leader::{Config as ElectionConfig, Controllers, Election, RowSeat};
use concert_engine::{Controller, Durability, Engine, Objects, OnExit, Tasks};
use concert_model::{Object, Revision};
use concert_store::{By, Chance, Clock, Config, Delete, Error, Local, PageRequest, Query, Store};
use futures_util::FutureExt;
use serde_json::json;

use crate::executor::{Executor, Group};
use crate::faults::{Disk, Fault, Remote, Weather};
use crate::toy::decide::is_ready;
use crate::toy::run::{Bug, Toy};
use crate::toy::{self, thing_of};
use crate::world::World;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const PROCESSES: u32 = 2;
/// How often objects are looked at in lives where watches lose events.
const POLL: Duration = Duration::from_secs(60);
/// And how often such watches start over.
const RELIST: Duration = Duration::from_secs(120);
/// How long bad weather lasts, in turns of up to three seconds each.
const TURNS: u64 = 120;
/// Longest time to peace once faults have stopped: a lease, the longest back-off and two polls fit in.
const SETTLE: Duration = Duration::from_secs(400);
/// How long nothing may happen then.
const QUIET: Duration = Duration::from_secs(900);

/// How one life went.
#[derive(Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Broken promises, in words; empty for a good life.
    pub violations: Vec<String>,
    /// What happened, in order.
    pub trace: Vec<String>,
    /// Equal for two lives that were the same.
    pub fingerprint: u64,
    /// Of what there was how much.
    pub counts: Counts,
}

/// Of what there was how much: a simulation in which nothing happens proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Things made in the world.
    pub creates: u64,
    /// Things removed from it.
    pub deletes: u64,
    /// Calls of former owners that the world turned away.
    pub fenced: u64,
    /// Deaths of the store with everything in it.
    pub crashes: u64,
    /// Deaths of a process.
    pub kills: u64,
    /// Processes stopped for a while.
    pub freezes: u64,
    /// Processes asked to stop.
    pub stops: u64,
    /// What else went wrong.
    pub faults: BTreeMap<Fault, u64>,
    /// Tasks polled.
    pub steps: u64,
}

/// Lives the life of `seed`, with a planted bug if one is given. A life that panics is a bad one.
pub fn run(seed: u64, bug: Option<Bug>) -> Report {
    std::panic::catch_unwind(|| live(seed, bug)).unwrap_or_else(|panic| {
        let texts =
            [panic.downcast_ref::<String>().map(String::as_str), panic.downcast_ref::<&str>().copied()];
        let text = texts.into_iter().flatten().next().unwrap_or("without a word");
        let violations = vec![format!("it panicked: {text}")];
        Report { seed, violations, trace: Vec::new(), fingerprint: 0, counts: Counts::default() }
    })
}

fn live(seed: u64, bug: Option<Bug>) -> Report {
    let mut life = Life::begin(seed, bug);
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
}

struct Life {
    executor: Executor,
    chance: Chance,
    weather: Weather,
    disk: Disk,
    world: World,
    bug: Option<Bug>,
    store: Option<Local>,
    starts: u32,
    processes: BTreeMap<u32, Process>,
    /// Asked to stop, and on their way.
    leaving: Vec<Process>,
    trace: Vec<String>,
    counts: Counts,
    violations: Vec<String>,
}

impl Life {
    fn begin(seed: u64, bug: Option<Bug>) -> Self {
        let chance = Chance::seeded(seed);
        let executor = Executor::new(chance.fork());
        // In half of all lives reads are never stale and watches lose nothing, but nobody polls either:
        // there a lost wake-up is never made good.
        let is_lossy = seed.is_multiple_of(2);
        let weather = Weather::new(is_lossy);
        let world = World::new(executor.clone(), chance.fork(), weather.clone());
        let mut life = Self {
            executor,
            chance,
            weather,
            disk: Disk::default(),
            world,
            bug,
            store: None,
            starts: 0,
            processes: BTreeMap::new(),
            leaving: Vec::new(),
            trace: Vec::new(),
            counts: Counts::default(),
            violations: Vec::new(),
        };
        life.open();
        let definition = Object::from_value(toy::definition()).expect("the definition is an object");
        life.at_once(|store| {
            Box::pin(async move { store.create(definition, &By::actor("user")).await.map(drop) })
        });
        life.weather.set_bad(true);
        life
    }

    /// Opens the store on the disk and starts all processes.
    fn open(&mut self) {
        self.disk.revive();
        let config = Config::new(Arc::new(self.executor.clone()), self.chance.fork()).inline();
        let store = Local::open(Arc::new(self.disk.clone()), config);
        self.store = Some(store.expect("what was stored can be opened"));
        for process in 0..PROCESSES {
            self.start(process);
        }
    }

    fn start(&mut self, process: u32) {
        let Some(store) = self.store.clone() else { return };
        self.starts += 1;
        let group = Group(self.starts);
        self.note(format!("process {process} starts as {}", self.starts));
        let clock: Arc<dyn Clock> = Arc::new(self.executor.clone());
        let (executor, chance) = (self.executor.clone(), self.chance.fork());
        let remote = Remote::new(store, executor.clone(), chance.fork(), self.weather.clone());
        let remote = Arc::new(remote);
        let tasks = Tasks::new(self.executor.spawner(group), clock.clone());
        let engine = Engine::new(remote.clone(), clock.clone(), chance.fork(), tasks.clone());
        let toy = Arc::new(Toy::new(remote.clone(), self.world.clone(), executor, self.bug));
        let work = remote.clone();
        let seat = Arc::new(RowSeat::new(work.clone(), "toy"));
        let is_polling = self.weather.is_lossy();
        let build = move |fence| {
            let objects = Objects::new(Query::all(toy::kind().group_kind));
            let builder = Controller::builder("toy", toy.clone()).objects(objects).concurrency(3);
            let builder = if is_polling { builder.poll(POLL).relist(Some(RELIST)) } else { builder };
            vec![builder.durability(Durability::Outcomes(work.clone())).fence(fence).build()]
        };
        self.processes.insert(process, Process { group, engine: engine.clone(), tasks: tasks.clone() });
        let duty = Arc::new(Controllers::new(engine, Duration::from_secs(5), build));
        let election =
            Election::new(seat, ElectionConfig::new(format!("process-{}", self.starts)), clock, chance);
        let shutdown = tasks.shutdown().clone();
        tasks.spawn("election", OnExit::Log, election.run(duty, shutdown));
    }

    fn turn(&mut self) {
        self.executor.run_for(Duration::from_millis(self.chance.below(3_000)));
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
            _ => {}
        }
        if self.disk.is_dead() {
            self.crash();
        }
    }

    fn user(&mut self) {
        let name = NAMES[self.chance.below(NAMES.len() as u64) as usize];
        let size = self.chance.below(100).cast_signed();
        let after = NAMES[self.chance.below(NAMES.len() as u64) as usize];
        let after = Some(after).filter(|after| *after > name && self.chance.is_hit(0.4));
        let by = By::actor("user");
        if self.chance.is_hit(0.3) {
            self.note(format!("user deletes {name}"));
            self.at_once(move |store| {
                Box::pin(
                    async move { store.delete(&toy::key(name), &Delete::default(), &by).await.map(drop) },
                )
            });
            return;
        }
        self.note(format!("user wants {name} of size {size} after {after:?}"));
        self.at_once(move |store| {
            Box::pin(async move {
                match store.create(toy::widget(name, size, after), &by).await {
                    Err(Error::AlreadyExists { key }) => {
                        let mut object = store.get(&key).await?.decode();
                        object.get_mut("spec")["size"] = json!(size);
                        store.update(object, &by).await.map(drop)
                    }
                    other => other.map(drop),
                }
            })
        });
    }

    fn kill(&mut self) {
        let process = self.chance.below(u64::from(PROCESSES)) as u32;
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
        let process = self.chance.below(u64::from(PROCESSES)) as u32;
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
        let process = self.chance.below(u64::from(PROCESSES)) as u32;
        let duration = Duration::from_millis(self.chance.below(60_000));
        self.note(format!("process {process} is stopped for {duration:?}"));
        self.counts.freezes += 1;
        if let Some(process) = self.processes.get(&process) {
            self.executor.freeze(process.group, duration);
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
        self.disk.light_fuse(0);
        if self.disk.is_dead() {
            self.crash();
        }
    }

    fn settle_and_check(&mut self) {
        self.executor.run_for(SETTLE);
        self.check_things();
        if !self.violations.is_empty() {
            self.explain();
        }
        let look = |life: &Self| {
            let truth = life.world.truth();
            (life.disk.newest(), truth.mutations, truth.runs)
        };
        let before = look(self);
        self.executor.run_for(QUIET);
        let after = look(self);
        if (after.0, after.1) != (before.0, before.1) {
            let (Revision(from), Revision(to)) = (before.0, after.0);
            let text = format!("not quiet: revisions {from} to {to}, effects {} to {}", before.1, after.1);
            self.violations.push(text);
        }
        // Who does not poll has no reason to run at all.
        let polls = QUIET.div_duration_f64(POLL) + QUIET.div_duration_f64(RELIST) + 2.0;
        let runs_max = if self.weather.is_lossy() { NAMES.len() as f64 * polls } else { 0.0 };
        let runs = after.2 - before.2;
        if runs as f64 > runs_max {
            self.violations.push(format!("not quiet: {runs} runs, at most {runs_max} have a reason"));
        }
        for process in std::mem::take(&mut self.processes).values() {
            self.check_health(process);
        }
        self.violations.append(&mut self.world.truth().violations);
    }

    /// Everything declared is there once, as declared; and nothing else is.
    fn check_things(&mut self) {
        let objects = self.objects();
        let truth = self.world.truth();
        let find = |name: &str| objects.iter().find(|object| object.name() == name);
        for object in &objects {
            let name = object.name();
            let after = object.spec()["after"].as_str().map(find);
            if after.is_some_and(|after| !after.is_some_and(is_ready)) && object.deleted_at().is_none() {
                // It waits, and rightly so.
                continue;
            }
            if object.deleted_at().is_some() {
                self.violations.push(format!("{name} is still being deleted"));
                continue;
            }
            let there = truth.things.get(&*thing_of(object)).copied();
            if there != object.spec()["size"].as_i64() {
                self.violations.push(format!("{name} is {there:?} and not {}", object.spec()["size"]));
            }
            if !is_ready(object) {
                self.violations.push(format!("{name} is not said to be ready"));
            }
        }
        for thing in truth.things.keys() {
            if !objects.iter().any(|object| *thing_of(object) == **thing) {
                self.violations.push(format!("{thing} is leaked"));
            }
        }
    }

    /// What the engines know of each object: the first thing to read of a bad life.
    fn explain(&mut self) {
        let states: Vec<String> = self
            .processes
            .iter()
            .flat_map(|(n, process)| {
                let state = |name: &&str| process.engine.state("toy", &toy::key(name));
                NAMES.iter().filter_map(state).map(move |state| format!("process {n}: {state:?}"))
            })
            .collect();
        states.into_iter().for_each(|state| self.note(state));
    }

    fn objects(&self) -> Vec<Object> {
        let query = Query::all(toy::kind().group_kind);
        let store = self.store.as_ref().expect("the store is open");
        let page =
            store.list(&query, &PageRequest::whole()).now_or_never().expect("an inline store never waits");
        page.expect("the store can be read").items.iter().map(concert_model::Encoded::decode).collect()
    }

    /// Does what a user asks for, against the store itself. Its failures are the user's to bear.
    fn at_once(
        &mut self,
        work: impl FnOnce(Local) -> futures_util::future::BoxFuture<'static, Result<(), Error>>,
    ) {
        let Some(store) = self.store.clone() else { return };
        let result = work(store).now_or_never().expect("an inline store never waits");
        if let Err(error) = result {
            self.note(format!("  in vain: {error}"));
        }
    }

    fn note(&mut self, text: String) {
        self.trace.push(format!("{:>9.3} {text}", self.executor.elapsed().as_secs_f64()));
    }

    fn report(mut self, seed: u64) -> Report {
        let truth = self.world.truth();
        self.counts.creates = truth.creates.values().copied().map(u64::from).sum();
        self.counts.deletes = truth.deletes.values().copied().map(u64::from).sum();
        self.counts.fenced = truth.fenced;
        drop(truth);
        self.counts.faults = self.weather.hits();
        self.counts.steps = self.executor.steps();
        let (violations, trace, counts) = (self.violations, self.trace, self.counts);
        Report { seed, violations, trace, fingerprint: self.executor.fingerprint(), counts }
    }
}
