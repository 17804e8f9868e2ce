//! Several control planes on one database share the work, and what one loses another takes up.

use concert_model::{GroupKind, ObjectKey};
use concert_store::{By, Delete, Error, Fence, Local, Store as _, Work as _};
use serde_json::{Value, json};

use crate::company::{Replicas, names, nodes, open_cloud, truth};
use crate::explaining::attempt;
use crate::managed::bucket;
use crate::plane::Plane;
use crate::wait::eventually;
use crate::wire::call;

/// The claims that a replica has on its shares.
async fn claims(store: &Local, member: &str) -> Vec<Fence> {
    let rows = store.scan("shares/concert-serve").await.unwrap();
    let own = rows.into_iter().filter(|it| it.body[..] == *member.as_bytes());
    own.map(|it| Fence { item: it.item, number: it.fence }).collect()
}

/// What comes under a claim whose share somebody else has is refused by the store, whatever it is.
async fn try_late(store: &Local, claim: &Fence) {
    let saved = store.save(claim, "late".into()).await;
    assert!(matches!(saved, Err(Error::Fenced { .. })), "{claim:?}: {saved:?}");
    let key = ObjectKey::namespaced(GroupKind::new("cloud.concert.dev", "Bucket"), "default", "all-000");
    let by = By::actor("late").fenced(claim.clone());
    let deleted = store.delete(&key, &Delete::default(), &by).await;
    assert!(matches!(deleted, Err(Error::Fenced { .. })), "{claim:?}: {deleted:?}");
}

#[test]
fn replicas_share_the_work_and_take_up_what_one_loses() {
    let Some(mut replicas) = Replicas::start(3, &["--poll-interval", "1h"]) else { return };
    replicas.settle(3);
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
    let (store, runtime) = (replicas.store(), tokio::runtime::Runtime::new().unwrap());
    let is_frozen =
        |it: &Value| it["address"].as_str().unwrap_or_default().ends_with(&replicas.planes[1].address);
    let member = nodes(replicas.first()).into_iter().find(is_frozen).unwrap();
    let claims = runtime.block_on(claims(&store, member["node_id"].as_str().unwrap()));
    let frozen = names("frozen", 60);
    let items: Vec<Value> = frozen.iter().map(|name| bucket(name)).collect();
    replicas.first().apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}));
    replicas.planes[1].signal("STOP");
    replicas.await_ready(&frozen);
    replicas.settle(2);
    assert!(!claims.is_empty());
    for claim in &claims {
        runtime.block_on(try_late(&store, claim));
    }
    replicas.planes[1].signal("CONT");
    eventually("it notices that it comes too late", || {
        let log = replicas.planes[1].log();
        if log.contains("lost its membership") { Ok(()) } else { Err(log) }
    });
    replicas.settle(3);
    replicas.make(&names("again", 30));

    // One is asked to stop: it hands over first, and others need not wait for its lease.
    let losses = |log: &str| log.matches("lost its membership").count();
    let before = losses(&replicas.planes[3].log());
    replicas.planes[3].signal("TERM");
    let log = eventually("it has left", || {
        let log = replicas.planes[3].log();
        if log.contains("\"stopped\"") { Ok(log) } else { Err(log) }
    });
    assert_eq!(losses(&log), before, "{log}");
    replicas.settle(2);
    replicas.make(&names("left", 30));

    let truth = truth(&provider);
    assert_eq!(truth["doubles"], json!([]), "nothing is made twice");
    assert_eq!(truth["summary"]["late"], 0, "nothing is changed by one who was replaced");
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
fn what_a_replica_has_lent_may_be_reported_while_it_leaves() {
    let Some(replicas) = Replicas::start(2, &["--plugins", "off"]) else { return };
    replicas.settle(2);
    let ask = |plane: &Plane, path: &str, body: &Value| {
        eventually("an answer", || match call(&plane.address, "POST", path, &body.to_string()) {
            Some((200..300, text)) => Ok(serde_json::from_str::<Value>(&text).unwrap_or_default()),
            other => Err(format!("{path}: {other:?}")),
        })
    };
    let kind = json!({"name": "Toy", "version": "v1", "schema": {"type": "object"}});
    ask(replicas.first(), "/api/v1/resource-types", &kind);
    let handles = json!([{"resource_type": "Toy"}]);
    ask(replicas.first(), "/api/v1/workers", &json!({"name": "toys", "handles": handles, "host_id": "h"}));
    let toy = json!({"name": "toy-1", "resource_type_name": "Toy", "resource_type_version": "v1",
        "spec": {"size": 1}});
    ask(replicas.first(), "/api/v1/resources", &toy);
    let claimed = eventually("an item", || {
        let wanted = json!({"host_id": "h", "limit": 1, "wait_seconds": 5});
        let answer = ask(replicas.first(), "/api/v1/workers/toys/claim", &wanted);
        answer["items"].get(0).cloned().ok_or_else(|| answer.to_string())
    });

    let lender = nodes(replicas.first()).into_iter().find(|it| it["role"] == "leader").unwrap();
    let is_lender = |it: &&Plane| lender["address"].as_str().unwrap().ends_with(&it.address);
    let leaving = replicas.planes.iter().find(is_lender).unwrap();
    let staying = replicas.planes.iter().find(|it| !is_lender(it)).unwrap();
    leaving.signal("TERM");
    eventually("it leaves", || {
        let nodes = nodes(staying);
        let is_leaving =
            nodes.iter().any(|it| it["node_id"] == lender["node_id"] && it["is_leaving"] == true);
        if is_leaving { Ok(()) } else { Err(format!("{nodes:?}")) }
    });
    let result = json!({"item": claimed["item"], "fence": claimed["lease"]["fence"], "outcome": "ready"});
    let done = ask(staying, "/api/v1/workers/toys/results", &json!({"results": [result]}));
    assert_eq!(done["results"][0]["status"], 200, "{done} for {claimed}");
    eventually("it is ready", || {
        let path = "/api/v1/resources/by-name/Toy/v1/toy-1";
        let (_, text) = call(&staying.address, "GET", path, "").unwrap_or_default();
        if text.contains("\"ready\"") { Ok(()) } else { Err(text) }
    });
    eventually("it has left", || {
        let log = leaving.log();
        if log.contains("\"stopped\"") { Ok(()) } else { Err(log) }
    });
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
            let sentence = said.lines().next().unwrap_or_default();
            if attempt(sentence, "cloud").is_some_and(|it| it > 0) { Ok(()) } else { Err(said) }
        });
    }
}

#[test]
fn what_one_replica_has_lent_is_explained_by_all() {
    let Some(replicas) = Replicas::start(2, &["--plugins", "off"]) else { return };
    replicas.settle(2);
    let ask = |path: &str, body: &Value| {
        eventually("an answer", || match call(&replicas.first().address, "POST", path, &body.to_string()) {
            Some((200..300, text)) => Ok(serde_json::from_str::<Value>(&text).unwrap_or_default()),
            other => Err(format!("{path}: {other:?}")),
        })
    };
    let claim = |worker: &str| {
        let wanted = json!({"host_id": "host-77", "limit": 1, "wait_seconds": 5});
        eventually("an item", || {
            let answer = ask(&format!("/api/v1/workers/{worker}/claim"), &wanted);
            answer["items"].get(0).cloned().ok_or_else(|| answer.to_string())
        })
    };
    let toys = json!({"name": "Toy", "version": "v1", "schema": {"type": "object"}});
    ask("/api/v1/resource-types", &toys);
    let handles = json!([{"resource_type": "Toy"}]);
    ask("/api/v1/workers", &json!({"name": "toys", "handles": handles, "host_id": "host-77"}));
    let toy = json!({"name": "toy-1", "resource_type_name": "Toy", "resource_type_version": "v1",
            "spec": {"size": 1}});
    ask("/api/v1/resources", &toy);
    claim("toys");
    let reconciler = json!({"name": "shoot", "handles": [{"kind": "runtime"}], "host_id": "host-77",
        "resync_seconds": 3600, "grants": {"read": ["network"]}});
    ask("/api/v1/workers", &reconciler);
    ask("/inventory/v1/entries", &json!({"id": "rt-1", "kind": "runtime"}));
    let item = claim("shoot");
    let waits = json!([{"section": "network", "path": "/vnet_name"}]);
    let result = json!({"item": item["item"], "fence": item["lease"]["fence"], "outcome": "not_ready",
        "message": "no network", "retry_after": 600, "waits_for": waits});
    let done = ask("/api/v1/workers/shoot/results", &json!({"results": [result]}));
    assert_eq!(done["results"][0]["status"], 200, "{done}");

    for plane in &replicas.planes {
        for (path, words) in [
            ("/apis/no8s.concert.dev/v1/toys/toy-1/explain", ["host-77", "plugins/toys"]),
            ("/apis/inventory.concert.dev/v1alpha1/clusters/rt-1/explain", ["shoot", "section network"]),
        ] {
            eventually("it is explained", || {
                let (code, said) = call(&plane.address, "GET", path, "").unwrap_or_default();
                if code == 200 && words.iter().all(|it| said.contains(it)) { Ok(()) } else { Err(said) }
            });
        }
    }
}
