//! What a client of one replica hears of what happens at another, and limits that hold for all of them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::company::{Replicas, declare_cloud, names, truth};
use crate::managed::provider;
use crate::plane::{Plane, widget};
use crate::wait::eventually;
use crate::watcher::{Watcher, position};
use crate::wire::{WIDGETS, call};

/// Longest that anything may take that is waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// A stream of server-sent events.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(plane: &Plane, last: &str) -> Self {
        let mut stream = TcpStream::connect(&plane.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let last = if last.is_empty() { String::new() } else { format!("Last-Event-ID: {last}\r\n") };
        let head = format!("GET /api/v1/events HTTP/1.0\r\nHost: {}\r\n", plane.address);
        write!(stream, "{head}Accept: text/event-stream\r\n{last}\r\n").unwrap();
        let mut stream = Self(BufReader::new(stream));
        assert!(stream.line().contains(" 200 "));
        while !stream.line().contains(": connected") {}
        stream
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream has ended");
        line.trim_end().to_owned()
    }

    /// The id, the type and the name of the next event.
    fn next(&mut self) -> (String, String, String) {
        let (mut id, mut kind) = (String::new(), String::new());
        loop {
            let line = self.line();
            match line.split_once(": ") {
                Some(("id", it)) => id = it.to_owned(),
                Some(("event", it)) => kind = it.to_owned(),
                Some(("data", it)) => {
                    let data: Value = serde_json::from_str(it).unwrap();
                    return (id, kind, data["resource_name"].as_str().unwrap().to_owned());
                }
                _ => {}
            }
        }
    }
}

fn post(plane: &Plane, path: &str, body: &Value) {
    // While work moves to its place the answer is 503.
    eventually(path, || match call(&plane.address, "POST", path, &body.to_string()) {
        Some((200..300, _)) => Ok(()),
        other => Err(format!("{path}: {other:?}")),
    });
}

#[test]
fn server_sent_events_tell_of_other_replicas_and_go_on_at_another() {
    let Some(mut replicas) = Replicas::start(2, &["--plugins", "off"]) else { return };
    replicas.settle(2);
    let two = replicas.planes.pop().unwrap();
    let mut one = replicas.planes.pop().unwrap();
    let kind = json!({"name": "Toy", "version": "v1", "schema": {"type": "object"}});
    post(&one, "/api/v1/resource-types", &kind);
    let worker = json!({"name": "toys", "handles": [{"resource_type": "Toy"}], "host_id": "h"});
    post(&one, "/api/v1/workers", &worker);
    let toy = |name: &str| {
        json!({"name": name, "resource_type_name": "Toy", "resource_type_version": "v1",
        "spec": {"size": 1}})
    };
    let mut stream = Stream::open(&one, "");
    post(&two, "/api/v1/resources", &toy("a"));
    let (id, kind, name) = stream.next();
    assert_eq!((&*kind, &*name), ("CREATED", "a"));
    post(&two, "/api/v1/resources", &toy("b"));
    one.kill();
    post(&two, "/api/v1/resources", &toy("c"));
    // Whatever the first one told after that is told again, by the other, and nothing is left out.
    let mut stream = Stream::open(&two, &id);
    for expected in ["b", "c"] {
        let (_, kind, name) = stream.next();
        assert_eq!((&*kind, &*name), ("CREATED", expected));
    }
}

#[test]
fn a_watch_goes_on_at_another_replica_from_the_same_revision() {
    let Some(mut replicas) = Replicas::start(2, &[]) else { return };
    let two = replicas.planes.pop().unwrap();
    let mut one = replicas.planes.pop().unwrap();
    one.define_widgets();
    let start = position(&one.address, WIDGETS);
    assert_eq!(position(&two.address, WIDGETS), start, "they are at the same place");
    let watcher = Watcher::start(&[one.address.clone(), two.address.clone()], WIDGETS);
    let make = |name: &str| {
        two.apply(&widget(name, &json!({"size": 1})));
        two.get("widgets", name)["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap()
    };
    let mut made: Vec<u64> = (0..5).map(|n| make(&format!("before-{n}"))).collect();
    one.kill();
    made.extend((0..5).map(|n| make(&format!("after-{n}"))));
    assert_eq!(watcher.until(*made.last().unwrap()), made);
}

#[test]
fn a_limit_of_a_provider_holds_for_all_replicas_together() {
    holds_together("rateLimit");
}

#[test]
fn a_limit_of_an_account_holds_for_all_replicas_together() {
    holds_together("accountRateLimit");
}

/// Two replicas make things in one account, with this limit.
#[expect(clippy::disallowed_methods, reason = "other processes cannot be told which time it is")]
fn holds_together(field: &str) {
    const PER_SECOND: u32 = 20;
    const BURST: u32 = 10;
    let Some(replicas) = Replicas::start(2, &["--poll-interval", "1h"]) else { return };
    replicas.settle(2);
    let cloud = provider(replicas.first());
    let calls = || truth(&cloud)["calls"].as_f64().unwrap();
    let limit = json!({"callsPerMinute": PER_SECOND * 60, "burst": BURST});
    let (began, before) = (Instant::now(), calls());
    declare_cloud(&replicas, &json!({"endpoint": cloud.1, field: limit}));
    // A network is asked for by its name, so every call of the provider is one of the cloud.
    let networks = names("limited", 60).into_iter().map(|name| {
        json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "Network",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"forProvider": {"region": "eu"}}})
    });
    let networks: Vec<Value> = networks.collect();
    let plane = replicas.first();
    plane.apply(&json!({"apiVersion": "v1", "kind": "List", "items": networks}));
    plane.kubectl(&["wait", "--for=condition=Ready", "network", "--all", "--timeout=120s"]);
    let (made, took) = (calls() - before, began.elapsed().as_secs_f64());
    // Each of them may be one call ahead in what it has saved up.
    let allowed = f64::from(BURST) + f64::from(PER_SECOND) * took + 2.0;
    assert!(made <= allowed, "{made} calls in {took} s, where {allowed} are allowed");
    assert!(made >= 120.0, "each was looked at and made: {made}");
}
