//! PostgreSQL restarted ten times, and its connections cut ten times, while three replicas write and watch.
//!
//! Afterwards every acknowledged write is there once, and no watcher of any replica has missed a revision.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod database;

use std::sync::Arc;

use concert_store::{By, Error, Store as _};
use database::traffic::Traffic;
use database::{connect, key, keyring, map, open};

const REPLICAS: usize = 3;
/// Half of them restarts, half of them cuts.
const OUTAGES: usize = 20;
/// Writes acknowledged between two outages.
const BETWEEN: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_is_lost_and_no_watcher_has_a_gap() {
    let Some(server) = concert_testbed::Postgres::start(&[]).unwrap() else { return };
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
    let Some(server) = concert_testbed::Postgres::start(&[]).unwrap() else { return };
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
