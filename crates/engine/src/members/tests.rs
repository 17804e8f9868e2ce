//! Several members over one store, as their controllers see it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use concert_store::{Bytes, Chance, Clock, Error, Fence, ItemKey, Query, Work, WorkRow};

use crate::controller::{Controller, Durability, Phase};
use crate::engine::Engine;
use crate::fixtures::{Script, World, config_map, config_map_kind, quiet, seconds};
use crate::leader::Controllers;
use crate::outcome::{Failure, Outcome};
use crate::shutdown::Shutdown;
use crate::source::Objects;
use crate::tasks::{OnExit, Tasks, TokioSpawn};
use crate::watched::Watched;

use super::*;

const KEYS: usize = 60;

/// Rows that can be cut off, as for a process without a network.
struct Cut {
    work: Arc<dyn Work>,
    is_cut: Watched<bool>,
}

impl Cut {
    async fn pass(&self) {
        self.is_cut.wait_for(|is_cut| !is_cut).await;
    }
}

#[async_trait]
impl Work for Cut {
    async fn read(&self, item: &ItemKey) -> Result<Option<WorkRow>, Error> {
        self.pass().await;
        self.work.read(item).await
    }

    async fn scan(&self, controller: &str) -> Result<Vec<WorkRow>, Error> {
        self.pass().await;
        self.work.scan(controller).await
    }

    async fn claim(&self, item: &ItemKey, seen: u64, body: Bytes) -> Result<Fence, Error> {
        self.pass().await;
        self.work.claim(item, seen, body).await
    }

    async fn save(&self, fence: &Fence, body: Bytes) -> Result<(), Error> {
        self.pass().await;
        self.work.save(fence, body).await
    }

    async fn forget(&self, fence: &Fence) -> Result<(), Error> {
        self.pass().await;
        self.work.forget(fence).await
    }
}

/// One process.
struct Process {
    engine: Engine,
    script: Arc<Script>,
    shares: Shares,
    standing: Arc<Watched<Standing>>,
    cut: Arc<Cut>,
    shutdown: Shutdown,
}

fn process(world: &World, name: &str, script: Arc<Script>) -> Process {
    process_of(world, Config::new("test", name), script)
}

/// One that leaves all work to one of them.
fn leader(world: &World, name: &str) -> Process {
    let mut config = Config::new("test", name);
    config.profile.manner = Manner::Leader;
    process_of(world, config, done())
}

fn process_of(world: &World, config: Config, script: Arc<Script>) -> Process {
    let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
    let engine = Engine::new(world.store.clone(), clock.clone(), Chance::seeded(1), tasks.clone());
    let work = Arc::new(world.store.local.clone());
    let cut = Arc::new(Cut { work: work.clone(), is_cut: Watched::new(false) });
    let reconciler = script.clone();
    let build = move |under: Authority| {
        let objects = Objects::new(Query::all(config_map_kind()));
        let builder = Controller::builder("test", reconciler.clone()).objects(objects).authority(under);
        vec![builder.durability(Durability::Outcomes(work.clone())).build()]
    };
    let duty = Arc::new(Controllers::new(engine.clone(), seconds(5), build));
    let membership = Membership::new(cut.clone(), config, clock, Chance::seeded(2));
    let (shares, standing, shutdown) = (membership.shares(), membership.standing(), tasks.shutdown().clone());
    tasks.spawn("membership", OnExit::Stop, membership.run(duty, shutdown.clone()));
    Process { engine, script, shares, standing, cut, shutdown }
}

fn done() -> Arc<Script> {
    Script::new(|_| Outcome::Done)
}

impl Process {
    fn names(&self) -> BTreeSet<String> {
        self.script.names().into_iter().collect()
    }

    fn items(&self) -> BTreeSet<String> {
        let handle = self.engine.controller("test");
        let states = handle.map(|it| it.states()).unwrap_or_default();
        states.iter().map(|it| it.key.name.to_string()).collect()
    }
}

async fn world() -> World {
    let world = World::new();
    for n in 0..KEYS {
        world.create(&format!("object-{n}")).await;
    }
    world
}

/// Lets so many seconds go by in small steps: more happens here at a time than one step has patience for.
async fn pass(world: &World, seconds: u32) {
    for _ in 0..seconds * 20 {
        world.clock.advance(std::time::Duration::from_millis(50)).await;
    }
}

/// Each key is an item of exactly one of them.
fn assert_dealt_out(processes: &[&Process]) {
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    processes.iter().flat_map(|it| it.items()).for_each(|it| *all.entry(it).or_default() += 1);
    let wrong: Vec<_> = all.iter().filter(|(_, count)| **count != 1).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(all.len(), KEYS);
}

#[tokio::test]
async fn each_key_has_one_owner_and_only_what_must_move_does() {
    let world = world().await;
    let one = process(&world, "one", done());
    pass(&world, 5).await;
    assert_eq!(one.names().len(), KEYS);
    let two = process(&world, "two", done());
    let three = process(&world, "three", done());
    pass(&world, 10).await;
    assert_dealt_out(&[&one, &two, &three]);
    let before = [&one, &two, &three].map(Process::items);
    assert!(before.iter().all(|it| it.len() > KEYS / 10), "{before:?}");
    assert_eq!((two.shares.crowd(), one.shares.crowd()), (3, 3));
    let four = process(&world, "four", done());
    pass(&world, 10).await;
    assert_dealt_out(&[&one, &two, &three, &four]);
    for (process, before) in [&one, &two, &three].into_iter().zip(before) {
        assert!(process.items().is_subset(&before), "who comes takes for itself only");
    }
}

#[tokio::test]
async fn a_change_is_run_by_the_owner_under_the_fence_of_its_share() {
    let world = world().await;
    let (one, two) = (process(&world, "one", done()), process(&world, "two", done()));
    pass(&world, 10).await;
    let before = one.script.count() + two.script.count();
    world.change("object-7", "2").await;
    pass(&world, 1).await;
    assert_eq!(one.script.count() + two.script.count(), before + 1);
    let owner = if one.items().contains("object-7") { &one } else { &two };
    let run = owner.script.runs().pop().unwrap();
    assert_eq!(&*run.key.name, "object-7");
    let fence = run.fence.unwrap();
    assert_eq!(fence.item.item, Share::of(&config_map("object-7")).to_string().into());
    assert!(!run.is_onlooker);
}

#[tokio::test]
async fn who_leaves_hands_over_at_once() {
    let world = world().await;
    let (one, two) = (process(&world, "one", done()), process(&world, "two", done()));
    pass(&world, 10).await;
    one.shutdown.request();
    pass(&world, 2).await;
    assert_eq!(one.standing.get(), Standing::Ended);
    assert_eq!(two.items().len(), KEYS, "no waiting for a lease to run out");
    let roll = roll(&*two.cut, "test").await.unwrap();
    assert_eq!(roll.members.len(), 1);
}

#[tokio::test]
async fn a_share_is_not_handed_over_while_something_runs_in_it() {
    let world = world().await;
    let gate = Arc::new(Watched::new(false));
    let open = gate.clone();
    let slow = Script::slow(move |_| {
        let open = open.clone();
        async move {
            open.wait_for(|is_open| *is_open).await;
            Outcome::Done
        }
    });
    let one = process(&world, "one", slow);
    world.clock.drive(one.script.ran(16)).await;
    let two = process(&world, "two", done());
    pass(&world, 20).await;
    let busy: BTreeSet<String> = one.names();
    assert_eq!(busy.len(), 16, "what runs fills the controller");
    assert!(two.names().is_disjoint(&busy));
    assert!(!two.names().is_empty(), "shares in which nothing runs have moved");
    gate.set(true);
    pass(&world, 5).await;
    assert_dealt_out(&[&one, &two]);
}

#[tokio::test]
async fn who_is_cut_off_stops_before_another_takes_over_and_is_fenced_off() {
    let world = world().await;
    let (one, two) = (process(&world, "one", done()), process(&world, "two", done()));
    pass(&world, 10).await;
    let lost = one.items();
    let fence = one.shares.enter(&config_map(lost.first().unwrap())).unwrap().fence().clone();
    one.cut.is_cut.set(true);
    pass(&world, 11).await;
    assert!(one.shares.held().is_empty() && one.engine.controllers().is_empty(), "it has stopped");
    assert!(two.items().is_disjoint(&lost), "nobody has them yet");
    pass(&world, 5).await;
    assert_eq!(two.items().len(), KEYS, "within a lease and a second");
    let late = world.store.local.save(&fence, b"{}".to_vec().into()).await;
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    one.cut.is_cut.set(false);
    pass(&world, 20).await;
    assert_dealt_out(&[&one, &two]);
    assert_eq!(one.items(), lost, "the same shares come back");
}

#[tokio::test]
async fn back_off_goes_along_with_its_key() {
    let world = world().await;
    let failing = || Script::new(|_| Outcome::Transient(Failure::new("down").retried_after(seconds(3_600))));
    let one = process(&world, "one", failing());
    pass(&world, 5).await;
    let two = process(&world, "two", failing());
    pass(&world, 10).await;
    assert_dealt_out(&[&one, &two]);
    assert_eq!(two.script.count(), 0, "nothing is tried before its time");
    let handle = two.engine.controller("test").unwrap();
    let states = handle.states();
    let all_wait = states.iter().all(|it| matches!(it.phase, Phase::BackingOff { .. }) && it.attempt == 1);
    assert!(all_wait && !states.is_empty(), "{states:?}");
}

#[tokio::test]
async fn what_is_done_once_for_all_moves_with_its_share() {
    let world = World::new();
    let one = process(&world, "one", done());
    let tenure = world.clock.drive(one.shares.tenure("sweeping")).await;
    let mut others = Vec::new();
    // Somebody comes who takes the share.
    for n in 0.. {
        others.push(process(&world, &format!("other-{n}"), done()));
        pass(&world, 3).await;
        if !one.shares.holds("sweeping") {
            break;
        }
    }
    assert_eq!(tenure.over().await, End::AskedBack);
    let heir = others.last().unwrap();
    pass(&world, 20).await;
    assert!(!heir.shares.holds("sweeping"), "not before it is let go");
    let fence = tenure.fence().number;
    drop(tenure);
    let next = world.clock.drive(heir.shares.tenure("sweeping")).await;
    assert!(next.fence().number > fence);
    heir.cut.is_cut.set(true);
    pass(&world, 12).await;
    assert_eq!(next.over().await, End::Lost);
    quiet().await;
}

#[tokio::test]
async fn what_a_newer_member_tells_beside_what_is_known_is_passed_over() {
    let world = World::new();
    let work: Arc<dyn Work> = Arc::new(world.store.local.clone());
    let row = ItemKey { controller: "members/test".into(), item: "newer".into() };
    let body = r#"{"profile": {"address": "https://here", "version": "9.9", "manner": "leader", "zone": "north"},
        "leaseMillis": 15000, "renewals": 7, "isLeaving": true, "mood": {"is": "good"}}"#;
    let fence = work.claim(&row, 0, Bytes::from_static(body.as_bytes())).await.unwrap();
    let roll = roll(&*work, "test").await.unwrap();
    let seen = &roll.members[&Member("newer".into())];
    assert_eq!((&*seen.profile.address, &*seen.profile.version), ("https://here", "9.9"));
    assert_eq!(seen.profile.manner, Manner::Leader);
    assert!(seen.is_leaving && seen.lease == seconds(15) && seen.token == (fence.number, 7));
}

#[tokio::test]
async fn a_newer_member_whose_words_are_not_known_lives_all_the_same() {
    let world = World::new();
    let work: Arc<dyn Work> = Arc::new(world.store.local.clone());
    for (name, profile) in [
        ("manner", r#"{"address": "https://here", "manner": "in-turns", "since": {"epoch": 4}}"#),
        ("profile", r#""as before""#),
    ] {
        let row = ItemKey { controller: "members/test".into(), item: name.into() };
        let body = format!(r#"{{"profile": {profile}, "leaseMillis": 15000, "renewals": 7}}"#);
        work.claim(&row, 0, body.into()).await.unwrap();
    }
    let roll = roll(&*work, "test").await.unwrap();
    for seen in roll.members.values() {
        assert_eq!((seen.lease, seen.token.1, seen.profile.manner), (seconds(15), 7, Manner::Shared));
    }
    assert_eq!(&*roll.members[&Member("manner".into())].profile.address, "https://here");
    assert_eq!(super::roll::Watch::default().look(&roll, seconds(0)).len(), 2);
}

#[tokio::test]
async fn one_who_leads_has_the_whole_of_a_limit() {
    let world = World::new();
    let members: Vec<Process> = ["one", "two", "three"].map(|it| leader(&world, it)).into();
    pass(&world, 10).await;
    assert!(members.iter().all(|it| it.shares.crowd() == 1));
}
