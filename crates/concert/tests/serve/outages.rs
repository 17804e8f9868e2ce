//! Replicas whose database goes away, and one that is cut off from it, while they work and are watched.
//!
//! Afterwards everything that was promised is there, everything is ready, nothing was made twice, and whoever
//! watched has heard of every write once and in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concert_testbed::{Network, Postgres};
use serde_json::{Value, json};

use crate::cloud::BUCKETS;
use crate::company::{Replicas, declare_cloud, names, open_cloud, truth};
use crate::managed::{Provider, bucket, provider};
use crate::wait::eventually;
use crate::watcher::Watcher;
use crate::wire::call;

/// Half of them restarts of the server, half of them cuts of its connections.
const OUTAGES: usize = 20;
/// Declared between two of them.
const PORTION: usize = 10;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
        .to_string()
}

/// Declares buckets, each at another replica, until each is there. Returns the uids of those that a 201 promised.
fn declare(addresses: &[String], names: &[String]) -> BTreeMap<String, String> {
    let mut promised = BTreeMap::new();
    for (n, name) in names.iter().enumerate() {
        let body = bucket(name).to_string();
        eventually(&format!("{name} is declared"), || {
            match call(&addresses[n % addresses.len()], "POST", BUCKETS, &body) {
                Some((201, text)) => {
                    let made: Value = serde_json::from_str(&text).unwrap();
                    promised.insert(name.clone(), made["metadata"]["uid"].as_str().unwrap().to_owned());
                    Ok(())
                }
                // It was made, and the answer was lost.
                Some((409, _)) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
    }
    promised
}

/// All that must be true of buckets in the end, whatever went wrong meanwhile.
fn check(
    replicas: &Replicas,
    cloud: &Provider,
    names: &[String],
    promised: &BTreeMap<String, String>,
    watcher: Watcher,
) {
    replicas.await_ready(names);
    let list: Value = serde_json::from_str(&replicas.first().kubectl(&["get", "--raw", BUCKETS])).unwrap();
    let uid = |name: &str| {
        let mut items = list["items"].as_array().unwrap().iter();
        items.find(|it| it["metadata"]["name"] == *name).map(|it| it["metadata"]["uid"].clone())
    };
    for (name, promised) in promised {
        assert_eq!(uid(name), Some(json!(promised)), "{name}");
    }
    let truth = truth(cloud);
    assert_eq!(truth["doubles"], json!([]), "nothing is made twice");
    assert_eq!(truth["summary"]["late"], 0, "nothing is changed by one who was replaced");
    assert_eq!(truth["live"].as_array().map(Vec::len), Some(names.len()));

    // The past of all buckets is what was to be heard.
    let mut past = BTreeSet::new();
    for name in names {
        let path = format!("{BUCKETS}/{name}/history?limit=500");
        let (_, text) = call(&replicas.first().address, "GET", &path, "").unwrap();
        let history: Value = serde_json::from_str(&text).unwrap();
        let items = history["items"].as_array().unwrap().iter();
        past.extend(items.map(|it| it["revision"].as_str().unwrap().parse::<u64>().unwrap()));
    }
    let heard: BTreeSet<u64> = watcher.until(*past.last().unwrap()).into_iter().collect();
    let missed: Vec<&u64> = past.difference(&heard).collect();
    assert!(missed.is_empty(), "{} of {} were missed: {missed:?}", missed.len(), past.len());
}

#[test]
fn nothing_is_lost_or_made_twice_while_the_database_comes_and_goes() {
    let Some(server) = Postgres::start(&[]).unwrap() else { return };
    let server = Arc::new(server);
    let Some(replicas) = Replicas::start_on(&server, 3, &["--poll-interval", "1h"]) else { return };
    replicas.settle(3);
    let cloud = open_cloud(&replicas);
    let addresses: Vec<String> = replicas.planes.iter().map(|it| it.address.clone()).collect();
    let watcher = Watcher::start(&addresses, BUCKETS);
    let all = names("a", OUTAGES * PORTION);
    let mut promised = BTreeMap::new();
    for (outage, portion) in all.chunks(PORTION).enumerate() {
        std::thread::scope(|scope| {
            // In the middle of it.
            let declaring = scope.spawn(|| declare(&addresses, portion));
            match outage % 2 {
                0 => server.cut_connections().unwrap(),
                _ => server.stop().and_then(|()| server.begin()).unwrap(),
            }
            promised.extend(declaring.join().unwrap());
        });
    }
    assert!(promised.len() > all.len() / 2, "most were answered: {}", promised.len());
    check(&replicas, &cloud, &all, &promised, watcher);
}

#[test]
fn a_replica_that_is_cut_off_stops_and_the_others_go_on() {
    let Some(server) = Postgres::shared() else { return };
    let Some(network) = Network::make().unwrap() else { return };
    let Some(mut replicas) = Replicas::start(2, &["--poll-interval", "1h"]) else { return };
    replicas.join_in(&network, server).unwrap();
    replicas.settle(3);
    let cloud = provider(replicas.first());
    let port = cloud.1.rsplit(':').next().unwrap().parse().unwrap();
    declare_cloud(&replicas, &json!({"endpoint": network.forward(port).unwrap(), "insecure": true}));
    let addresses: Vec<String> = replicas.planes[..2].iter().map(|it| it.address.clone()).collect();
    let watcher = Watcher::start(&addresses, BUCKETS);
    let all = names("cut", 90);
    let (first, then) = all.split_at(60);
    let mut promised = declare(&addresses, &first[..30]);
    // With a third of the work, of which some is under way.
    network.cut().unwrap();
    promised.extend(declare(&addresses, &first[30..]));
    replicas.await_ready(first);
    replicas.settle(2);
    network.mend().unwrap();
    eventually("it notices that it was replaced", || {
        let log = replicas.planes[2].log();
        if log.contains("lost its membership") { Ok(()) } else { Err(log) }
    });
    replicas.settle(3);
    promised.extend(declare(&addresses, then));
    check(&replicas, &cloud, &all, &promised, watcher);
}

#[test]
fn a_replica_that_cannot_reach_the_database_says_that_it_is_not_ready() {
    let Some(server) = Postgres::start(&[]).unwrap() else { return };
    let Some(replicas) = Replicas::start_on(&server, 1, &[]) else { return };
    let plane = replicas.first();
    let ready = |expected: u16, word: &str| {
        eventually(word, || match call(&plane.admin, "GET", "/readyz", "") {
            Some((code, text)) if code == expected && text.contains(word) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    };
    let health = |expected: u16, status: &str| {
        for path in ["/health", "/api/v1/cluster/health"] {
            eventually(path, || match call(&plane.address, "GET", path, "") {
                Some((code, text))
                    if code == expected
                        && serde_json::from_str::<Value>(&text).ok() == Some(json!({"status": status})) =>
                {
                    Ok(())
                }
                other => Err(format!("{other:?}")),
            });
        }
    };
    ready(200, "ok");
    health(200, "ok");
    server.stop().unwrap();
    ready(503, "the store has not answered");
    health(503, "disconnected");
    server.begin().unwrap();
    ready(200, "ok");
    health(200, "ok");
}

#[test]
fn a_watch_stands_while_the_database_is_away() {
    let Some(server) = Postgres::start(&[]).unwrap() else { return };
    let Some(replicas) = Replicas::start_on(&server, 1, &[]) else { return };
    let plane = replicas.first();
    let watcher = Watcher::start(std::slice::from_ref(&plane.address), MAPS);
    let create = |name: &str| call(&plane.address, "POST", MAPS, &map(name)).unwrap();
    assert_eq!(create("before").0, 201);
    server.stop().unwrap();
    // Each is refused after as long as a watch waits before it is looked at again.
    for name in ["during", "still"] {
        let (code, text) = create(name);
        assert_eq!(code, 503, "{text}");
    }
    server.begin().unwrap();
    eventually("it is written to again", || match create("after") {
        (201, _) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let last =
        plane.get("configmaps", "after")["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert_eq!(watcher.begun(), 1, "it was never ended");
    assert_eq!(watcher.until(last).len(), 2);
}

#[test]
fn a_full_disk_of_the_database_fails_writes_only_and_passes() {
    let Some(server) = Postgres::start(&[]).unwrap() else { return };
    let Some(replicas) = Replicas::start_on(&server, 1, &[]) else { return };
    let plane = replicas.first();
    assert_eq!(call(&plane.address, "POST", MAPS, &map("before")).unwrap().0, 201);
    let schema =
        server.sql("postgres", "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'fresh_%'").unwrap();
    let fail = format!(
        "CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END$$; \
         CREATE TRIGGER fail BEFORE INSERT ON {schema}.bodies EXECUTE FUNCTION {schema}.fail()"
    );
    server.sql("postgres", &fail).unwrap();
    let (code, text) = call(&plane.address, "POST", MAPS, &map("during")).unwrap();
    assert!(code == 503 && text.contains("the disk is full: make room"), "{code} {text}");
    assert_eq!(call(&plane.address, "GET", &format!("{MAPS}/before"), "").unwrap().0, 200);
    assert_eq!(call(&plane.address, "GET", &format!("{MAPS}/during"), "").unwrap().0, 404);
    server.sql("postgres", &format!("DROP TRIGGER fail ON {schema}.bodies")).unwrap();
    assert_eq!(call(&plane.address, "POST", MAPS, &map("during")).unwrap().0, 201);
}
