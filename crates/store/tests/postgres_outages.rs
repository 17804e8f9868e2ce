//! PostgreSQL restarted ten times, its connections cut ten times, and its primary lost, while three replicas
//! write and watch.
//!
//! Afterwards every acknowledged write is there once, and no watcher of any replica has missed a revision.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod database;

use std::sync::Arc;

use concert_store::{By, Error, Store as _};
use concert_testbed::Postgres;
use database::traffic::Traffic;
use database::{connect, key, keyring, map, open};

const REPLICAS: usize = 3;
/// Half of them restarts, half of them cuts.
const OUTAGES: usize = 20;
/// Writes acknowledged between two outages.
const BETWEEN: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_is_lost_and_no_watcher_has_a_gap() {
    let Some(server) = Postgres::start(&[]).unwrap() else { return };
    let (url, keyring) = (server.fresh_url(), keyring());
    let server = Arc::new(server);
    let mut traffic = Traffic::start((0..REPLICAS).map(|_| open(&url, &keyring)).collect()).await;
    for outage in 0..OUTAGES {
        traffic.acknowledge(BETWEEN).await;
        let server = server.clone();
        let disturb = move || match outage % 2 {
            0 => server.cut_connections(),
            _ => server.stop().and_then(|()| server.begin()),
        };
        tokio::task::spawn_blocking(disturb).await.unwrap().unwrap();
    }
    traffic.acknowledge(BETWEEN).await;
    traffic.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_is_refused_until_it_is_promoted() {
    let Some(server) = Postgres::start(&[]).unwrap() else { return };
    let (url, by) = (server.fresh_url(), By::actor("test"));
    let store = open(&url, &keyring());
    store.create(map("a", "1"), &by).await.unwrap();
    server.stop().unwrap();
    server.begin_as_standby().unwrap();
    let trouble = connect(&url).expect_err("nobody can write there");
    assert!(matches!(trouble, concert_store::backend::postgres::Trouble::ReadOnly { .. }), "{trouble:?}");
    let Err(Error::Unavailable(why)) = store.create(map("b", "1"), &by).await else {
        panic!("nobody can write there")
    };
    assert!(why.to_string().contains("read-only") && why.to_string().contains("hint: "), "{why}");
    server.sql("postgres", "SELECT pg_promote()").unwrap();
    store.create(map("b", "2"), &by).await.unwrap();
    assert_eq!(store.get(&key("a")).await.unwrap().key(), &key("a"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_takes_over_has_all_that_was_acknowledged() {
    // What the standby does not have is not acknowledged.
    let Some(first) = Postgres::start(&["synchronous_standby_names=*"]).unwrap() else { return };
    let second = first.standby(&[]).unwrap();
    let keyring = keyring();
    let url = first.fresh_url();
    let at = |server: &Postgres| format!("127.0.0.1:{}", server.port());
    // Whichever is named first, the one that takes writes is found.
    let forth = url.replace(&at(&first), &format!("{},{}", at(&first), at(&second)));
    let back = url.replace(&at(&first), &format!("{},{}", at(&second), at(&first)));
    let addresses = [&forth, &back, &forth];
    let mut traffic = Traffic::start(addresses.map(|it| open(it, &keyring)).into()).await;
    traffic.acknowledge(BETWEEN).await;
    let take_over = move || first.stop().and_then(|()| second.promote()).map(|()| (first, second));
    let (_first, second) = tokio::task::spawn_blocking(take_over).await.unwrap().unwrap();
    for address in [&forth, &back] {
        let store = open(address, &keyring);
        let name = format!("late-{}", store.newest().await.unwrap());
        store.create(map(&name, &name), &By::actor("test")).await.unwrap();
    }
    traffic.acknowledge(BETWEEN).await;
    let story = traffic.end().await;
    let late = story.iter().filter(|it| it.name.starts_with("late-")).count();
    assert_eq!(late, 2, "they are in the story like all others");
    assert_eq!(second.sql("postgres", "SELECT pg_is_in_recovery()").unwrap(), "f");
}
