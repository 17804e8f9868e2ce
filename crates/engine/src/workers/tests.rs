//! Hosts, leases and demand, on a clock that is moved by hand.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_store::{By, Error, Fence, ItemKey, Query, Store};
use futures_util::FutureExt;
use prometheus_client::registry::Registry;
use serde_json::json;

use super::*;
use crate::controller::{Controller, Handle, Phase};
use crate::fixtures::{World, config_map, config_map_kind, quiet, seconds};
use crate::outcome::{Failure, Outcome};
use crate::queue::Lane;
use crate::reconciler::Request;
use crate::source::{Objects, except_status};
use crate::watched::Watched;

/// Items are called as their objects; every end is remembered.
#[derive(Default)]
struct Plain {
    store: Option<Arc<dyn Store>>,
    ends: Watched<Vec<String>>,
    fences: Watched<Vec<(u64, u64)>>,
}

#[async_trait]
impl Meaning for Plain {
    async fn prepare(&self, request: &Request) -> Prepared {
        let Ok(object) = self.store.as_ref().unwrap().get(&request.key).await else {
            return Prepared::Settled(Outcome::Done);
        };
        let item: Arc<str> = request.key.name.clone();
        let row = ItemKey { controller: "leases".into(), item: item.clone() };
        let object = Arc::new(object.decode());
        Prepared::Offer(Box::new(Offer {
            item,
            row,
            key: request.key.clone(),
            object,
            attempt: u64::from(request.attempt),
            context: Arc::default(),
        }))
    }

    async fn finished(&self, lease: &Leased, report: Report) -> Outcome {
        let said = lease.said.as_deref().unwrap_or("nothing");
        self.ends.change(|it| it.push(format!("{} {} {said}", lease.item, report.message)));
        if report.success == Some(false) {
            return Outcome::Transient(Failure::new(&*report.message).retried_after(seconds(5)));
        }
        report.requeue_after.map_or(Outcome::Done, Outcome::After)
    }

    async fn expired(&self, lease: &Leased, fence: Fence) -> Outcome {
        self.ends.change(|it| it.push(format!("{} expired", lease.item)));
        self.fences.change(|it| it.push((lease.fence.number, fence.number)));
        Outcome::Transient(Failure::new("lease expired").retried_after(seconds(30)))
    }
}

struct Scene {
    world: World,
    board: Board,
    plain: Arc<Plain>,
    handle: Handle,
}

async fn scene(names: &[&str]) -> Scene {
    let world = World::new();
    for name in names {
        world.create(name).await;
    }
    let board = Board::new(Arc::new(world.clock.clone()));
    let plain = Arc::new(Plain { store: Some(world.store.clone()), ..Plain::default() });
    let work = Arc::new(world.store.local.clone());
    let offers = Offers::new(board.clone(), "w", plain.clone(), work);
    let controller = Controller::builder("plugins/w", Arc::new(offers))
        .objects(Objects::new(Query::all(config_map_kind())).changed(except_status))
        .demand(board.demand("w", "ConfigMap"))
        .timeout(seconds(1_000_000))
        .concurrency(1000);
    let handle = world.engine.start(controller.build()).unwrap();
    handle.ready().await;
    quiet().await;
    Scene { world, board, plain, handle }
}

fn ask(host: &str, limit: usize, wait: u64) -> Ask {
    Ask { host: host.into(), limit, wait: seconds(wait), ..Ask::default() }
}

fn names(claimed: &[Claimed]) -> Vec<&str> {
    claimed.iter().map(|it| &*it.item).collect()
}

fn report(message: &str) -> Report {
    Report { success: Some(true), message: message.into(), ..Report::default() }
}

impl Scene {
    /// A claim, with the clock moved as far as it takes.
    async fn claim(&self, host: &str, limit: usize) -> Vec<Claimed> {
        self.world.clock.drive(self.board.claim("w", ask(host, limit, 0))).await
    }

    fn phase(&self, name: &str) -> Phase {
        self.handle.state(&config_map(name)).unwrap().phase
    }
}

#[tokio::test]
async fn nothing_runs_until_a_host_asks_and_then_only_as_much_as_it_asks_for() {
    let scene = scene(&["a", "b", "c"]).await;
    assert_eq!(scene.handle.summary().runs, 0);
    assert_eq!(scene.phase("a"), Phase::Waiting);
    let claimed = scene.claim("h", 2).await;
    assert_eq!(names(&claimed), ["a", "b"]);
    quiet().await;
    assert_eq!((scene.phase("c"), scene.board.view("w").leases), (Phase::Waiting, 2));
    assert_eq!(names(&scene.claim("h", 2).await), ["c"]);
    assert!(scene.claim("h", 2).await.is_empty(), "what is lent is lent once");
}

#[tokio::test]
async fn who_waits_gets_what_becomes_due() {
    let scene = scene(&[]).await;
    let waits = scene.board.claim("w", ask("h", 5, 60));
    let (claimed, ()) = tokio::join!(waits, async {
        quiet().await;
        scene.world.create("late").await;
    });
    assert_eq!(names(&claimed), ["late"]);
}

#[tokio::test]
async fn a_report_ends_a_lease_and_is_answered_when_it_was_dealt_with() {
    let scene = scene(&["a"]).await;
    let fence = scene.claim("h", 1).await[0].fence;
    scene.board.note("w", "a", fence, "ready").unwrap();
    scene.board.finish("w", "a", fence, report("fine")).await.unwrap();
    assert_eq!(scene.plain.ends.get(), ["a fine ready"]);
    scene.board.finish("w", "a", fence, report("again")).await.unwrap();
    assert_eq!(scene.plain.ends.get().len(), 1, "a report whose answer was lost may be repeated");
    let stale = scene.board.check("w", "a", fence).unwrap_err();
    assert_eq!(stale.to_string(), "stale fence: no lease is held on item a");
    quiet().await;
    assert_eq!(scene.phase("a"), Phase::Idle);
}

#[tokio::test]
async fn heartbeats_extend_a_lease_up_to_its_deadline() {
    let scene = scene(&["a"]).await;
    let claimed = scene.claim("h", 1).await;
    let beat = || scene.board.heartbeat("w", &"h".into(), &[("a".into(), claimed[0].fence)]).remove(0);
    for _ in 0..14 {
        scene.world.clock.advance(seconds(40)).await;
        assert!(beat().is_ok());
    }
    assert!(scene.plain.ends.get().is_empty());
    scene.world.clock.advance(seconds(40)).await;
    assert!(beat().is_err(), "ten minutes are over");
    assert_eq!(scene.plain.ends.get(), ["a expired"]);
}

#[tokio::test]
async fn a_host_that_wakes_up_late_changes_nothing() {
    let scene = scene(&["a"]).await;
    let frozen = scene.claim("frozen", 1).await.remove(0);
    scene.world.clock.advance(seconds(59)).await;
    assert!(scene.claim("other", 1).await.is_empty());
    scene.world.clock.advance(seconds(1)).await;
    assert_eq!(scene.plain.ends.get(), ["a expired"]);
    assert!(matches!(scene.phase("a"), Phase::BackingOff { .. }));
    assert_eq!(scene.handle.state(&config_map("a")).unwrap().attempt, 1);
    // The store refuses it before anybody else has claimed, and after.
    let old = Fence { item: ItemKey { controller: "leases".into(), item: "a".into() }, number: frozen.fence };
    let by = By::actor("frozen").fenced(old);
    let write = |value: u64| {
        let mut object = (*frozen.object).clone();
        object.set("data", json!({"value": value.to_string()}));
        scene.world.store.update(object, &by).map(|it| matches!(it, Err(Error::Fenced { .. })))
    };
    assert!(write(7).await);
    scene.world.clock.advance(seconds(30)).await;
    let taken = scene.claim("other", 1).await.remove(0);
    assert!(taken.fence > frozen.fence);
    assert!(write(8).await);
    let stale = scene.board.finish("w", "a", frozen.fence, report("late")).await.unwrap_err();
    assert!(matches!(stale, Stale::Older { .. }), "{stale}");
    let beat = scene.board.heartbeat("w", &"frozen".into(), &[("a".into(), frozen.fence)]);
    assert!(beat[0].is_err());
    scene.board.finish("w", "a", taken.fence, report("done")).await.unwrap();
}

#[tokio::test]
async fn a_change_while_it_is_lent_gives_one_more_run() {
    let scene = scene(&["a"]).await;
    let fence = scene.claim("h", 1).await[0].fence;
    for value in ["2", "3", "4"] {
        scene.world.change("a", value).await;
        quiet().await;
    }
    assert!(scene.claim("other", 1).await.is_empty());
    scene.board.finish("w", "a", fence, report("first")).await.unwrap();
    let again = scene.claim("h", 9).await;
    assert_eq!((again.len(), again[0].object.get("data")), (1, &json!({"value": "4"})));
    scene.board.finish("w", "a", again[0].fence, report("second")).await.unwrap();
    assert!(scene.claim("h", 9).await.is_empty());
}

#[tokio::test]
async fn what_a_caller_never_got_goes_back_to_the_queue() {
    let scene = scene(&["a", "b"]).await;
    {
        let mut waits = Box::pin(scene.board.claim("w", ask("gone", 2, 60)));
        // Up to the point where both are lent and the answer is not taken.
        for _ in 0..200 {
            if scene.board.view("w").leases == 2 {
                break;
            }
            let _ = (&mut waits).now_or_never();
            tokio::task::yield_now().await;
            if scene.board.view("w").leases == 2 {
                break;
            }
        }
        assert_eq!(scene.board.view("w").leases, 2);
    }
    quiet().await;
    assert_eq!(scene.board.view("w").leases, 0);
    assert_eq!(scene.claim("h", 5).await.len(), 2);
    assert!(scene.plain.ends.get().is_empty(), "that is nobody's failure");
}

#[tokio::test]
async fn what_a_host_gives_back_is_due_again_at_once() {
    let scene = scene(&["a"]).await;
    let first = scene.claim("h", 1).await.remove(0);
    scene.board.release("w", "a", first.fence).unwrap();
    assert!(scene.board.release("w", "a", first.fence).is_err());
    let again = scene.claim("h", 1).await.remove(0);
    assert!(again.fence > first.fence);
    assert!(scene.plain.ends.get().is_empty(), "that is nobody's failure");
}

#[tokio::test]
async fn what_a_host_gives_back_has_failed_as_often_as_before_and_is_due_for_the_same_reasons() {
    let scene = scene(&["a"]).await;
    let state = || scene.handle.state(&config_map("a")).unwrap();
    let fail = async || {
        let claimed = scene.claim("h", 1).await.remove(0);
        let failed = Report { success: Some(false), ..report("no quota") };
        scene.board.finish("w", "a", claimed.fence, failed).await.unwrap();
        quiet().await;
        scene.world.clock.advance(seconds(5)).await;
        claimed.attempt
    };
    assert_eq!([fail().await, fail().await], [0, 1]);
    let given_back = scene.claim("h", 1).await.remove(0);
    scene.board.release("w", "a", given_back.fence).unwrap();
    quiet().await;
    let after = state();
    assert_eq!(
        (after.attempt, after.last_error.as_deref(), after.lane),
        (2, Some("no quota"), Some(Lane::Retry))
    );
    assert_eq!(after.reasons, given_back.reasons);
    assert_eq!(fail().await, 2);
    assert_eq!(state().attempt, 3);
}

#[tokio::test]
async fn hosts_get_only_the_kinds_they_ask_for() {
    let scene = scene(&["a"]).await;
    let kinds = |kind: &str| Some([Arc::from(kind)].into());
    let other = Ask { kinds: kinds("Secret"), ..ask("h", 1, 0) };
    assert!(scene.world.clock.drive(scene.board.claim("w", other)).await.is_empty());
    let right = Ask { kinds: kinds("ConfigMap"), ..ask("h", 1, 0) };
    assert_eq!(scene.world.clock.drive(scene.board.claim("w", right)).await.len(), 1);
}

#[tokio::test]
async fn everybody_is_sent_away_when_we_stop() {
    let scene = scene(&[]).await;
    let (claimed, ()) = tokio::join!(scene.board.claim("w", ask("h", 1, 60)), async {
        quiet().await;
        scene.board.close();
    });
    assert!(claimed.is_empty());
    assert!(scene.board.claim("w", ask("h", 1, 60)).await.is_empty());
}

#[tokio::test]
async fn who_drains_lends_nothing_more_and_takes_back_what_is_lent() {
    let scene = scene(&["a", "b"]).await;
    let fence = scene.claim("h", 1).await[0].fence;
    scene.board.drain();
    assert!(scene.claim("h", 1).await.is_empty());
    assert!(scene.board.heartbeat("w", &"h".into(), &[("a".into(), fence)])[0].is_ok());
    assert!(scene.board.is_lending());
    scene.board.finish("w", "a", fence, report("fine")).await.unwrap();
    quiet().await;
    assert_eq!(scene.plain.ends.get(), ["a fine nothing"]);
    assert!(!scene.board.is_lending());
    scene.board.open();
    assert_eq!(names(&scene.claim("h", 1).await), ["b"]);
    assert!(scene.board.is_lending());
}

#[tokio::test]
async fn a_forgotten_worker_leaves_nothing_behind() {
    let scene = scene(&["a"]).await;
    let fence = scene.claim("h", 1).await[0].fence;
    scene.board.remove("w");
    quiet().await;
    assert_eq!(scene.plain.ends.get(), ["a expired"]);
    assert!(scene.board.check("w", "a", fence).is_err());
    assert_eq!(scene.board.view("w").hosts.len(), 0);
    scene.world.engine.stop("plugins/w", Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_claim_that_is_made_again_gets_what_was_lost_on_the_way() {
    let scene = scene(&["a", "b", "c"]).await;
    let named = |id: &str, limit| Ask { id: Some(id.into()), ..ask("h", limit, 0) };
    let claim = async |ask: Ask| scene.world.clock.drive(scene.board.claim("w", ask)).await;
    let lost = claim(named("one", 2)).await;
    let again = claim(named("one", 2)).await;
    let fences = |all: &[Claimed]| all.iter().map(|it| it.fence).collect::<Vec<_>>();
    assert_eq!((names(&again), fences(&again)), (names(&lost), fences(&lost)));
    assert_eq!(names(&claim(named("two", 2)).await), ["c"], "another claim gets other items");
    let other = Ask { host: "other".into(), ..named("one", 2) };
    assert!(claim(other).await.is_empty(), "and so does another host");
    scene.board.finish("w", "a", again[0].fence, report("done")).await.unwrap();
    assert_eq!(names(&claim(named("one", 2)).await), ["b"], "what has ended is not lent any more");
}

#[tokio::test]
async fn who_asks_again_while_the_first_time_still_waits_takes_its_place() {
    let scene = scene(&[]).await;
    let named = || Ask { id: Some("one".into()), ..ask("h", 5, 60) };
    let (first, second, ()) =
        tokio::join!(scene.board.claim("w", named()), scene.board.claim("w", named()), async {
            quiet().await;
            assert_eq!(scene.board.view("w").claims, 1);
            scene.world.create("a").await;
        });
    assert_eq!((names(&first), names(&second)), (vec![], vec!["a"]));
}

#[tokio::test]
async fn leases_and_those_that_ran_out_and_late_writes_are_counted() {
    let scene = scene(&["a"]).await;
    let metric = |name: &str| {
        let (mut registry, mut text) = (Registry::default(), String::new());
        scene.board.register(&mut registry);
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let line =
            text.lines().find(|it| it.starts_with(&format!("{name}{{worker=\"w\"}} "))).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no {name} in {text}")).rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(metric("concert_worker_expired_leases_total"), "0");
    let claimed = scene.claim("h", 1).await;
    assert_eq!(metric("concert_worker_leases"), "1.0");
    scene.world.clock.advance(seconds(61)).await;
    quiet().await;
    assert!(scene.board.check("w", "a", claimed[0].fence).is_err());
    assert!(scene.board.finish("w", "a", claimed[0].fence, report("late")).await.is_err());
    assert_eq!(metric("concert_worker_leases"), "0.0");
    assert_eq!(metric("concert_worker_expired_leases_total"), "1");
    assert_eq!(metric("concert_worker_stale_writes_total"), "2");
    assert_eq!(metric("concert_worker_waiting_claims"), "0.0");
}

#[tokio::test]
async fn hosts_that_came_and_went_are_forgotten_after_a_while() {
    let scene = scene(&[]).await;
    for number in 0..100 {
        scene.board.touch("w", &format!("h{number}").into());
    }
    assert_eq!(scene.board.view("w").hosts.len(), 100);
    scene.world.clock.advance(seconds(3601)).await;
    scene.board.touch("w", &"new".into());
    let hosts = scene.board.view("w").hosts;
    assert_eq!(hosts.iter().map(|it| &*it.host).collect::<Vec<_>>(), ["new"]);
}
