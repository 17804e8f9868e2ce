//! Leadership as candidates and their controllers see it.

use std::sync::Arc;

use concert_store::{Chance, Clock, Work};

use crate::controller::Controller;
use crate::engine::Engine;
use crate::fixtures::{Script, World, quiet, seconds, widget};
use crate::outcome::Outcome;
use crate::queue::Lane;
use crate::shutdown::Shutdown;
use crate::tasks::{OnExit, Tasks, TokioSpawn};
use crate::watched::Watched;

use super::*;

/// One process of several that share a store. Its clock can be stopped alone.
struct Member {
    engine: Engine,
    script: Arc<Script>,
    state: Arc<Watched<State>>,
    shutdown: Shutdown,
}

fn seats(world: &World) -> [Arc<dyn Seat>; 2] {
    let work: Arc<dyn Work> = Arc::new(world.store.local.clone());
    let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
    let row = RowSeat::new(work, "test");
    [Arc::new(row), Arc::new(LeaseSeat::new(world.store.clone(), clock, "default", "test"))]
}

fn member(world: &World, seat: Arc<dyn Seat>, name: &str) -> Member {
    let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
    let engine = Engine::new(world.store.clone(), clock.clone(), Chance::seeded(1), tasks.clone());
    let script = Script::new(|_| Outcome::After(seconds(1)));
    let reconciler = script.clone();
    let build = move |under| vec![Controller::builder("test", reconciler.clone()).authority(under).build()];
    let duty = Arc::new(Controllers::new(engine.clone(), seconds(5), build));
    let election = Election::new(seat, Config::new(name), clock, Chance::seeded(2));
    let (state, shutdown) = (election.state(), tasks.shutdown().clone());
    tasks.spawn("election", OnExit::Stop, election.run(duty, shutdown.clone()));
    Member { engine, script, state, shutdown }
}

impl Member {
    async fn leads(&self) {
        self.state.wait_for(|state| matches!(state, State::Leading { .. })).await;
    }

    fn is_leading(&self) -> bool {
        matches!(self.state.get(), State::Leading { .. })
    }

    fn enqueue(&self) {
        self.engine.controller("test").unwrap().enqueue(&widget("a"), Lane::Event, "changed").unwrap();
    }
}

#[tokio::test]
async fn one_leads_and_its_successor_starts_at_once_when_it_leaves() {
    for index in 0..2 {
        let world = World::new();
        let seat = || seats(&world)[index].clone();
        let one = member(&world, seat(), "one");
        world.clock.drive(one.leads()).await;
        let two = member(&world, seat(), "two");
        world.clock.advance(seconds(100)).await;
        assert!(one.is_leading());
        assert_eq!(two.state.get(), State::Following { holder: "one".into() });
        assert!(two.engine.controllers().is_empty());
        let asked = world.clock.elapsed();
        one.shutdown.request();
        world.clock.drive(two.leads()).await;
        assert!(world.clock.elapsed() - asked < seconds(3), "no waiting for a lease to run out");
        quiet().await;
        assert_eq!(one.state.get(), State::Ended);
        assert!(one.engine.controllers().is_empty());
        assert_eq!(two.engine.controllers().len(), 1);
    }
}

/// A seat whose writes can be made to hang, as for a process that is cut off or paused.
struct Cut {
    seat: Arc<dyn Seat>,
    is_cut: Watched<bool>,
}

#[async_trait]
impl Seat for Cut {
    async fn look(&self) -> Result<Option<Record>, Error> {
        self.is_cut.wait_for(|is_cut| !is_cut).await;
        self.seat.look().await
    }

    async fn take(&self, seen: Option<&Record>, claim: &Claim) -> Result<Record, Error> {
        self.seat.take(seen, claim).await
    }

    async fn renew(&self, held: &Record, claim: &Claim) -> Result<Record, Error> {
        self.is_cut.wait_for(|is_cut| !is_cut).await;
        self.seat.renew(held, claim).await
    }

    async fn leave(&self, held: &Record) -> Result<(), Error> {
        self.seat.leave(held).await
    }
}

#[tokio::test]
async fn a_leader_that_is_cut_off_stops_before_its_successor_starts() {
    for index in 0..2 {
        let world = World::new();
        let cut = Arc::new(Cut { seat: seats(&world)[index].clone(), is_cut: Watched::new(false) });
        let one = member(&world, cut.clone(), "one");
        world.clock.drive(one.leads()).await;
        one.enqueue();
        let two = member(&world, seats(&world)[index].clone(), "two");
        world.clock.advance(seconds(20)).await;
        cut.is_cut.set(true);
        world.clock.advance(seconds(11)).await;
        assert!(!one.is_leading() && !two.is_leading());
        assert!(one.engine.controllers().is_empty(), "its controllers are stopped");
        let runs = one.script.count();
        world.clock.drive(two.leads()).await;
        world.clock.advance(seconds(10)).await;
        cut.is_cut.set(false);
        world.clock.advance(seconds(100)).await;
        assert_eq!(one.script.count(), runs, "not one run more");
        assert_eq!(one.state.get(), State::Following { holder: "two".into() });
    }
}

#[tokio::test]
async fn a_lease_tells_each_holder_a_higher_term() {
    let world = World::new();
    let [_, seat] = seats(&world);
    let claim = |holder: &str| Claim { holder: holder.into(), lease: seconds(15) };
    let one = seat.take(None, &claim("one")).await.unwrap();
    assert!(one.term.is_some_and(|it| matches!(one.authority(), Authority::Term(term) if term == it)));
    let renewed = seat.renew(&one, &claim("one")).await.unwrap();
    assert_eq!(renewed.term, one.term);
    seat.leave(&renewed).await.unwrap();
    // At the same moment, by the clock.
    let free = seat.look().await.unwrap().unwrap();
    let two = seat.take(Some(&free), &claim("two")).await.unwrap();
    assert!(two.term > one.term, "{:?} after {:?}", two.term, one.term);
}

#[tokio::test]
async fn a_new_leader_fences_off_the_old_one() {
    let world = World::new();
    let one = member(&world, seats(&world)[0].clone(), "one");
    world.clock.drive(one.leads()).await;
    let State::Leading { fence: Some(old) } = one.state.get() else { panic!("a row gives a fence") };
    one.shutdown.request();
    let two = member(&world, seats(&world)[0].clone(), "two");
    world.clock.drive(two.leads()).await;
    quiet().await;
    two.enqueue();
    two.script.ran(1).await;
    let new = two.script.runs()[0].fence.clone().unwrap();
    assert!(new.number > old.number);
    let late = world.store.local.save(&old, b"{}".to_vec().into()).await;
    assert!(matches!(late, Err(Error::Fenced { .. })));
}

#[tokio::test]
async fn a_renewal_whose_answer_was_lost_does_not_cost_the_lead() {
    let world = World::new();
    for seat in seats(&world) {
        let claim = |holder: &str| Claim { holder: holder.into(), lease: seconds(15) };
        let held = seat.take(None, &claim("one")).await.unwrap();
        world.clock.advance(seconds(1)).await;
        seat.renew(&held, &claim("one")).await.unwrap();
        world.clock.advance(seconds(1)).await;
        let again = seat.renew(&held, &claim("one")).await.unwrap();
        assert_eq!(&*again.holder, "one");
        seat.leave(&held).await.unwrap();
        let free = seat.look().await.unwrap().unwrap();
        assert_eq!(&*free.holder, "");
        seat.take(Some(&free), &claim("two")).await.unwrap();
        assert!(seat.renew(&again, &claim("one")).await.is_err(), "somebody else has it");
        assert!(seat.leave(&again).await.is_err());
    }
}

#[tokio::test]
async fn a_lease_is_never_shorter_than_its_holder_thinks() {
    let world = World::new();
    for seat in seats(&world) {
        let claim = Claim { holder: "one".into(), lease: Duration::from_millis(1_500) };
        assert!(seat.take(None, &claim).await.unwrap().lease >= claim.lease);
    }
}

#[tokio::test]
async fn a_leader_that_cannot_renew_stops_in_time_however_rarely_it_tries() {
    let world = World::new();
    let cut = Arc::new(Cut { seat: seats(&world)[0].clone(), is_cut: Watched::new(false) });
    let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
    let config = Config { retry: seconds(60), ..Config::new("one") };
    let election = Election::new(cut.clone(), config, clock, Chance::seeded(2));
    let state = election.state();
    let duty = Arc::new(Controllers::new(world.engine.clone(), seconds(5), |_| Vec::new()));
    world.tasks.spawn("election", OnExit::Stop, election.run(duty, world.tasks.shutdown().clone()));
    world.clock.drive(state.wait_for(|it| matches!(it, State::Leading { .. }))).await;
    cut.is_cut.set(true);
    world.clock.advance(seconds(11)).await;
    assert!(!matches!(state.get(), State::Leading { .. }));
}
