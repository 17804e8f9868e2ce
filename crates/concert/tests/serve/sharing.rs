//! Several control planes on one database share the work, and what one loses another takes up.

use concert_testbed::Postgres;
use serde_json::{Value, json};

use crate::managed::{Provider, account, bucket, provider, workspace};
use crate::plane::Plane;
use crate::wait::eventually;
use crate::wire::call;

/// Short, so that tests need not wait long for a takeover.
const LEASE: &str = "3s";
const NODES: &str = "/api/v1/cluster/nodes";

/// Replicas, and the folder with their keys.
struct Replicas {
    planes: Vec<Plane>,
    flags: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Replicas {
    fn start(count: usize, more: &[&str]) -> Option<Self> {
        let server = Postgres::shared()?;
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys").to_str().unwrap().to_owned();
        let url = server.fresh_url();
        let flags = ["--dev", "--store", &url, "--key-file", &keys, "--member-lease", LEASE];
        let flags: Vec<String> = flags.iter().chain(more).map(ToString::to_string).collect();
        let mut replicas = Self { planes: Vec::new(), flags, _folder: folder };
        for _ in 0..count {
            replicas.join()?;
        }
        Some(replicas)
    }

    fn join(&mut self) -> Option<()> {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.planes.push(Plane::start_with(&flags)?);
        Some(())
    }

    fn first(&self) -> &Plane {
        &self.planes[0]
    }

    /// Waits until the first of them sees so many that live and have everything between them. Returns how
    /// much each has.
    fn settle(&self, count: usize) -> Vec<u64> {
        eventually("the work is shared", || {
            let nodes = nodes(self.first());
            let live = nodes.iter().filter(|it| it["status"] == "Ready" && it["is_leaving"] == false);
            let shares: Vec<u64> = live.filter_map(|it| it["shares"].as_u64()).collect();
            let max = nodes.first().and_then(|it| it["shares_max"].as_u64()).unwrap_or_default();
            let is_one_enough = self.flags.iter().any(|it| it == "--leader-election");
            // Whoever has just come has nothing before others have given it something.
            let is_dealt = is_one_enough || shares.iter().all(|it| *it > 10);
            let is_settled =
                shares.len() == count && shares.iter().sum::<u64>() == max && is_dealt && max > 0;
            if is_settled { Ok(shares) } else { Err(format!("{nodes:?}")) }
        })
    }

    /// Makes buckets through one of them, and waits until all are ready.
    fn make(&self, names: &[String]) {
        let items: Vec<Value> = names.iter().map(|name| bucket(name)).collect();
        self.first().apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}));
        self.await_ready(names);
    }

    fn await_ready(&self, names: &[String]) {
        eventually("all are ready", || {
            let list: Value =
                serde_json::from_str(&self.first().kubectl(&["get", "buckets", "-o", "json"])).unwrap();
            let is_ready = |name: &str| {
                let found = list["items"].as_array().into_iter().flatten();
                let mut found = found.filter(|it| it["metadata"]["name"] == *name);
                found.any(|it| {
                    let conditions = it["status"]["conditions"].as_array().into_iter().flatten();
                    conditions.filter(|it| it["type"] == "Ready").any(|it| it["status"] == "True")
                })
            };
            let missing: Vec<&String> = names.iter().filter(|name| !is_ready(name)).collect();
            if missing.is_empty() {
                Ok(())
            } else {
                Err(format!("{} are not, such as {:?}", missing.len(), missing[0]))
            }
        });
    }
}

fn nodes(plane: &Plane) -> Vec<Value> {
    let answer = call(&plane.address, "GET", NODES, "").map(|(_, text)| text).unwrap_or_default();
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    answer["nodes"].as_array().cloned().unwrap_or_default()
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}-{n:03}")).collect()
}

/// What the cloud knows of what was made in it.
fn truth(provider: &Provider) -> Value {
    let (_, text) = call(&provider.2, "GET", "/truth", "").unwrap();
    serde_json::from_str(&text).unwrap()
}

fn open_cloud(replicas: &Replicas) -> Provider {
    let plane = replicas.first();
    let provider = provider(plane);
    plane.kubectl(&["apply", "-f", workspace().join("providers/example/crds").to_str().unwrap()]);
    plane.apply(&account());
    plane.apply(&json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider",
        "metadata": {"name": "cloud"}, "spec": {"endpoint": provider.1}}));
    plane.kubectl(&["wait", "--for=condition=Ready", "providers.concert.dev/cloud", "--timeout=60s"]);
    provider
}

#[test]
fn replicas_share_the_work_and_take_up_what_one_loses() {
    let Some(mut replicas) = Replicas::start(3, &["--poll-interval", "1h"]) else { return };
    let shares = replicas.settle(3);
    assert!(shares.iter().all(|it| *it > 20), "about a third each: {shares:?}");
    let provider = open_cloud(&replicas);
    replicas.make(&names("all", 60));
    let table = replicas.first().concert(&["members"]);
    assert_eq!(table.lines().filter(|line| line.contains("Ready")).count(), 3, "{table}");

    // One dies: the others have its share after the lease.
    replicas.planes[2].kill();
    replicas.settle(2);
    replicas.make(&names("dead", 30));

    // One stands still for longer than its lease, with all it had under way, and comes back too late.
    replicas.join().unwrap();
    replicas.settle(3);
    let frozen = names("frozen", 60);
    let items: Vec<Value> = frozen.iter().map(|name| bucket(name)).collect();
    replicas.first().apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}));
    replicas.planes[1].signal("STOP");
    replicas.await_ready(&frozen);
    replicas.settle(2);
    replicas.planes[1].signal("CONT");
    replicas.settle(3);
    replicas.make(&names("again", 30));

    // One is asked to stop: it hands over first, and others need not wait for its lease.
    replicas.planes[3].signal("TERM");
    eventually("it has left", || {
        let log = std::fs::read_to_string(replicas.planes[3].file("log")).unwrap();
        if log.contains("\"stopped\"") { Ok(()) } else { Err(log) }
    });
    let log = std::fs::read_to_string(replicas.planes[3].file("log")).unwrap();
    assert!(!log.contains("lost its membership"), "{log}");
    replicas.settle(2);
    replicas.make(&names("left", 30));

    let truth = truth(&provider);
    assert_eq!(truth["doubles"], json!([]), "nothing is made twice");
    assert_eq!(truth["live"].as_array().map(Vec::len), Some(60 + 30 + 60 + 30 + 30));
}

#[test]
fn one_has_all_the_work_where_that_is_asked_for() {
    let Some(mut replicas) = Replicas::start(2, &["--leader-election"]) else { return };
    let mut shares = replicas.settle(2);
    shares.sort_unstable();
    assert_eq!(shares, [0, 128]);
    let leader = nodes(replicas.first()).into_iter().find(|it| it["shares"] == 128).unwrap();
    let place =
        replicas.planes.iter().position(|it| leader["address"].as_str().unwrap().ends_with(&it.address));
    let mut gone = replicas.planes.remove(place.unwrap());
    gone.kill();
    assert_eq!(replicas.settle(1), [128]);
}

#[test]
fn a_worker_is_served_through_any_replica() {
    let Some(replicas) = Replicas::start(2, &["--plugins", "off"]) else { return };
    replicas.settle(2);
    let ask = |plane: &Plane, path: &str, body: &Value| {
        // While work moves to its place the answer is 503, and workers ask again.
        eventually("an answer", || match call(&plane.address, "POST", path, &body.to_string()) {
            Some((200..300, text)) => Ok(serde_json::from_str::<Value>(&text).unwrap_or_default()),
            other => Err(format!("{path}: {other:?}")),
        })
    };
    let [one, two] = &replicas.planes[..] else { panic!("there are two") };
    ask(
        one,
        "/api/v1/resource-types",
        &json!({"name": "Toy", "version": "v1", "schema": {"type": "object"}}),
    );
    let handles = json!([{"resource_type": "Toy"}]);
    ask(one, "/api/v1/workers", &json!({"name": "toys", "handles": handles, "host_id": "h"}));
    for (n, (claiming, reporting)) in [(one, two), (two, one)].into_iter().enumerate() {
        let name = format!("toy-{n}");
        let toy = json!({"name": name, "resource_type_name": "Toy", "resource_type_version": "v1", "spec": {"size": 1}});
        ask(two, "/api/v1/resources", &toy);
        let claimed = eventually("an item", || {
            let wanted = json!({"host_id": "h", "limit": 1, "wait_seconds": 5});
            let answer = ask(claiming, "/api/v1/workers/toys/claim", &wanted);
            answer["items"].get(0).cloned().ok_or_else(|| answer.to_string())
        });
        let result = json!({"item": claimed["item"], "fence": claimed["lease"]["fence"], "outcome": "ready"});
        let done = ask(reporting, "/api/v1/workers/toys/results", &json!({"results": [result]}));
        assert_eq!(done["results"][0]["status"], 200, "{done} for {claimed}");
        let path = format!("/api/v1/resources/by-name/Toy/v1/{name}");
        eventually("it is ready", || {
            let (_, text) = call(&claiming.address, "GET", &path, "").unwrap_or_default();
            if text.contains("\"ready\"") { Ok(()) } else { Err(text) }
        });
    }
}

#[test]
fn an_object_that_another_replica_works_on_is_explained_by_all() {
    let Some(replicas) = Replicas::start(2, &[]) else { return };
    replicas.settle(2);
    let provider = open_cloud(&replicas);
    let (code, said) = call(&provider.2, "PUT", "/settings", &json!({"errorRate": 1.0}).to_string()).unwrap();
    assert_eq!(code, 200, "{said}");
    replicas.first().apply(&bucket("a"));
    for plane in &replicas.planes {
        eventually("it says why and when", || {
            let said = plane.concert(&["explain", "bucket/a"]);
            let is_told = said.contains("attempt") || said.contains("next try") || said.contains("try");
            if is_told { Ok(()) } else { Err(said) }
        });
    }
}
