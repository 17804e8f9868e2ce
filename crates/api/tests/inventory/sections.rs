//! Versions, hashes, preconditions, and what becomes of secrets.

use std::time::Duration;

use concert_api::inventory::sweep;
use concert_store::{By, Delete, Store};
use serde_json::{Value, json};

use crate::stage::{OBJECTS, Stage, create, data, section};

#[tokio::test]
async fn each_write_that_changes_something_is_a_version_and_a_revision() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "network");
    let first = stage.put(&path, data(json!({"vnet_name": "a"}))).await;
    assert_eq!(first.expect(200), json!({"version": 1, "revision": 1}));
    let second = stage.put(&path, data(json!({"vnet_name": "b"}))).await.expect(200);
    assert_eq!(second, json!({"version": 2, "revision": 2}));
    let other = stage.put(&section("rt-1", "spec"), data(json!({}))).await.expect(200);
    assert_eq!(other, json!({"version": 1, "revision": 3}));
    let elsewhere = stage.put(&section("rt-2", "spec"), data(json!({}))).await.expect(200);
    assert_eq!(elsewhere, json!({"version": 1, "revision": 1}));
    let read = stage.get(&path).await;
    assert_eq!(read.headers["etag"], "\"2\"");
    let read = read.expect(200);
    assert_eq!((&read["data"], &read["version"]), (&json!({"vnet_name": "b"}), &json!(2)));
    assert_eq!(read["writer"], "root");
    assert!(read["updated_at"].as_str().unwrap().starts_with("2026-"));
}

#[tokio::test]
async fn r5_equal_contents_are_no_write_whoever_writes_them() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "network");
    stage.put(&path, data(json!({"vnet_name": "a", "cidr": [1, 2]}))).await.expect(200);
    let before = stage.store.newest().await.unwrap();
    let network = stage.work("rt-1", "network").await;
    let again = stage.ask(&network, "PUT", &path, data(json!({"cidr": [1, 2], "vnet_name": "a"}))).await;
    assert_eq!(again.expect(200), json!({"version": 1, "revision": 1, "unchanged": true}));
    assert_eq!(stage.store.newest().await.unwrap(), before);
    assert_eq!(stage.get(&path).await.expect(200)["writer"], "root");
}

#[tokio::test]
async fn r2_a_section_holds_any_object_unless_its_type_says_what_it_must_be() {
    let stage = Stage::with_entries().await;
    let free = json!({"any": [1, {"thing": null}], "deep": {"er": [[]]}, "": 1.5});
    stage.put(&section("rt-1", "whatever-it-is"), data(free.clone())).await.expect(200);
    assert_eq!(stage.get(&section("rt-1", "whatever-it-is")).await.expect(200)["data"], free);
    let path = section("rt-1", "network");
    stage.put(&path, data(json!({"vnet_name": "a", "beside": true}))).await.expect(200);
    assert!(stage.put(&path, data(json!({"beside": true}))).await.detail(422).contains("vnet_name"));
    assert_eq!(stage.get(&path).await.expect(200)["version"], 1);
}

#[tokio::test]
async fn r5_a_write_may_say_what_it_is_based_on() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "spec");
    let put = async |tag: &str, number: u64| {
        stage.ask_with(&stage.admin, "PUT", &path, &[("if-match", tag)], data(json!({"n": number}))).await
    };
    assert!(put("\"1\"", 1).await.detail(412).contains("not there"));
    assert!(put("*", 1).await.detail(412).contains("not there"));
    put("\"0\"", 1).await.expect(200);
    assert!(put("\"0\"", 2).await.detail(412).contains("version \"1\""));
    put("\"1\"", 2).await.expect(200);
    assert!(put("\"1\"", 2).await.detail(412).contains("version \"2\""));
    put("*", 3).await.expect(200);
    put("first", 4).await.detail(400);
    assert_eq!(stage.get(&path).await.expect(200)["data"], json!({"n": 3}));
}

#[tokio::test]
async fn versions_and_revisions_go_on_over_a_removal() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "spec");
    stage.put(&path, data(json!({"n": 1}))).await.expect(200);
    stage.put(&path, data(json!({"n": 2}))).await.expect(200);
    let stale = stage.ask_with(&stage.admin, "DELETE", &path, &[("if-match", "\"1\"")], Value::Null).await;
    stale.detail(412);
    assert_eq!(stage.delete(&path).await.expect(200), json!({"revision": 3}));
    stage.delete(&path).await.detail(404);
    stage.get(&path).await.detail(404);
    let shown = stage.get("/entries/rt-1").await.expect(200);
    assert_eq!((&shown["revision"], &shown["sections"]), (&json!(3), &json!({})));
    let again = stage.put(&path, data(json!({"n": 2}))).await.expect(200);
    assert_eq!(again, json!({"version": 4, "revision": 4}));
}

#[tokio::test]
async fn r2_contents_of_a_secret_section_lie_in_a_secret_of_their_own() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "credentials");
    let put = async |text: &str| stage.put(&path, data(json!({"kubeconfig": text}))).await.expect(200);
    put("one").await;
    assert_eq!(put("one").await["unchanged"], true);
    assert_eq!(put("two").await["version"], 2);
    let read = stage.get(&path).await;
    assert_eq!(read.headers["etag"], "\"2\"");
    assert_eq!(read.expect(200)["data"], json!({"kubeconfig": "two"}));
    let shown = stage.get("/entries/rt-1").await.expect(200);
    assert_eq!(shown["sections"]["credentials"]["secret"], true);
    assert_eq!(shown["sections"]["credentials"].get("data"), None);
    let secrets = stage.all("", "Secret").await;
    let names: Vec<&str> = secrets.iter().map(|it| &*it.key().name).collect();
    assert!(matches!(&names[..], [one] if one.starts_with("rt-1.credentials.2-")), "{names:?}");
    assert_eq!(secrets[0].decode().get("immutable"), &json!(true));
    stage.delete(&path).await.expect(200);
    assert!(stage.all("", "Secret").await.is_empty());
}

#[tokio::test]
async fn equal_secrets_cannot_be_told_by_their_hashes() {
    let stage = Stage::with_entries().await;
    for entry in ["rt-1", "rt-2"] {
        stage.put(&section(entry, "credentials"), data(json!({"kubeconfig": "same"}))).await.expect(200);
    }
    let sections = stage.all("inventory.concert.dev", "Section").await;
    let hashes: Vec<String> = sections.iter().map(|it| it.decode().spec()["hash"].to_string()).collect();
    assert!(hashes.iter().all(|it| it.starts_with("\"hmac:")), "{hashes:?}");
    assert_ne!(hashes[0], hashes[1]);
}

#[tokio::test]
async fn a_secret_that_nobody_points_at_is_left_to_the_sweep() {
    let stage = Stage::with_entries().await;
    let left = |name: &str, entry: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "concert-inventory",
            "labels": {"inventory.concert.dev/entry": entry, "inventory.concert.dev/section": "credentials"}},
            "data": {"content": "e30="}, "immutable": true})
    };
    create(&stage.store, left("rt-1.credentials.1", "rt-1")).await;
    create(&stage.store, left("rt-2.credentials.7", "rt-2")).await;
    let path = section("rt-1", "credentials");
    stage.put(&path, data(json!({"kubeconfig": "one"}))).await.expect(200);
    assert_eq!(stage.get(&path).await.expect(200)["data"]["kubeconfig"], "one");
    // Another process may be about to point at it.
    assert_eq!(stage.all("", "Secret").await.len(), 3);
    let by = By::actor("test");
    assert_eq!(sweep(&stage.store, &*stage.clock, &by).await.unwrap(), 0, "it may be in use in a moment");
    stage.clock.advance(Duration::from_secs(3600));
    assert_eq!(sweep(&stage.store, &*stage.clock, &by).await.unwrap(), 2);
    assert_eq!(stage.all("", "Secret").await.len(), 1);
    assert_eq!(stage.get(&path).await.expect(200)["data"]["kubeconfig"], "one");
}

#[tokio::test]
async fn contents_that_were_lost_are_written_again() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "credentials");
    let put = async || stage.put(&path, data(json!({"kubeconfig": "one"}))).await.expect(200);
    put().await;
    let secret = stage.all("", "Secret").await[0].key().clone();
    stage.store.delete(&secret, &Delete::default(), &By::actor("test")).await.unwrap();
    stage.get(&path).await.detail(503);
    assert_eq!(put().await, json!({"version": 2, "revision": 2}), "they are not what is there");
    assert_eq!(stage.get(&path).await.expect(200)["data"]["kubeconfig"], "one");
    assert_eq!(put().await["unchanged"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_write_one_secret_section_at_once_lose_nothing() {
    let stage = Stage::with_entries().await;
    let (path, here) = (section("rt-1", "credentials"), tokio::runtime::Handle::current());
    let replicas = [stage.replica(), stage.replica()];
    tokio::task::block_in_place(|| {
        for round in 0..50 {
            std::thread::scope(|scope| {
                for (number, client) in replicas.iter().enumerate() {
                    let (stage, path, here) = (&stage, &path, &here);
                    let body = data(json!({"kubeconfig": format!("{round} of {number}")}));
                    scope.spawn(move || {
                        here.block_on(stage.send(client, "PUT", path, body)).expect(200);
                    });
                }
            });
            let read = here.block_on(stage.get(&path)).expect(200);
            let text = read["data"]["kubeconfig"].as_str().unwrap().to_owned();
            assert!(text.starts_with(&format!("{round} of ")), "{text} after round {round}");
        }
    });
    assert_eq!(stage.all("", "Secret").await.len(), 1);
}

#[tokio::test]
async fn many_writers_of_one_section_each_get_a_version() {
    let stage = Stage::with_entries().await;
    for name in ["spec", "credentials"] {
        let path = section("rt-1", name);
        let put = |number: usize| {
            let (stage, path) = (&stage, &path);
            async move {
                let reply = stage.put(path, data(json!({"kubeconfig": number.to_string()}))).await;
                reply.expect(200)["version"].as_u64().unwrap()
            }
        };
        let mut versions = futures_util::future::join_all((0..200).map(put)).await;
        versions.sort_unstable();
        assert_eq!(versions, (1..=200).collect::<Vec<_>>(), "{name}");
    }
    assert_eq!(stage.all("", "Secret").await.len(), 1);
    assert_eq!(stage.get("/entries/rt-1").await.expect(200)["revision"], 400);
}

#[tokio::test]
async fn r13_whoever_lost_its_claim_writes_nothing_from_the_next_claim_on() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "network");
    let put = async |token: &str, name: &str| {
        stage.ask(token, "PUT", &path, data(json!({"vnet_name": name}))).await
    };
    let frozen = stage.work_under("rt-1", "network", "i", 7).await;
    put(&frozen, "a").await.expect(200);
    let next = stage.work_under("rt-1", "network", "i", 9).await;
    assert!(
        put(&frozen, "c").await.detail(409).contains("fence 7 is older than 9"),
        "nobody has written yet"
    );
    stage.ask(&frozen, "DELETE", &path, Value::Null).await.detail(409);
    put(&next, "b").await.expect(200);
    assert!(put(&frozen, "c").await.detail(409).contains("fence 7 is older than 9"));
    put(&frozen, "b").await.detail(409);
    stage.ask(&frozen, "DELETE", &path, Value::Null).await.detail(409);
    assert_eq!(stage.get(&path).await.expect(200)["data"], json!({"vnet_name": "b"}));
    // Somebody who is not at work writes, through either door; who was too late stays so.
    stage.put(&path, data(json!({"vnet_name": "by hand"}))).await.expect(200);
    put(&frozen, "c").await.detail(409);
    let object = format!("{OBJECTS}/sections/rt-1.network");
    let patch = json!({"spec": {"data": {"vnet_name": "kubectl"}}});
    let bearer = format!("Bearer {}", stage.admin);
    let headers = [("content-type", "application/merge-patch+json"), ("authorization", &*bearer)];
    stage.client.send("PATCH", &object, &headers, patch.to_string()).await.expect(200);
    put(&frozen, "c").await.detail(409);
    put(&next, "d").await.expect(200);
    // Claims that were counted elsewhere, by a mothership that lost its data, cannot be compared.
    put(&stage.work_under("rt-1", "network", "another", 1).await, "e").await.expect(200);
}

#[tokio::test]
async fn r13_a_claim_that_found_everything_right_or_took_it_away_counts_as_well() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "network");
    let put = async |token: &str, name: &str| {
        stage.ask(token, "PUT", &path, data(json!({"vnet_name": name}))).await
    };
    let claim = async |fence: u64| stage.work_under("rt-1", "network", "i", fence).await;
    put(&claim(7).await, "a").await.expect(200);
    let before = stage.store.newest().await.unwrap();
    assert_eq!(put(&claim(8).await, "a").await.expect(200)["unchanged"], true);
    assert_eq!(stage.store.newest().await.unwrap(), before, "a look writes nothing");
    put(&claim(7).await, "late").await.detail(409);
    stage.ask(&claim(9).await, "DELETE", &path, Value::Null).await.expect(200);
    put(&claim(8).await, "late").await.detail(409);
    stage.get(&path).await.detail(404);
}

#[tokio::test]
async fn r13_the_inventory_hears_of_claims_from_whoever_has_tokens_made_elsewhere() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "network");
    let claim = async |fence: u64| {
        let lease = json!({"item": "i", "fence": fence});
        let item = json!({"entry": "rt-1", "reconciler": "network", "lease": lease});
        let made = stage.post("/tokens", json!({"items": [item]})).await.expect(200);
        made["tokens"][0]["token"].as_str().unwrap().to_owned()
    };
    let put = async |token: &str, name: &str| {
        stage.ask(token, "PUT", &path, data(json!({"vnet_name": name}))).await
    };
    let (late, next) = (claim(1).await, claim(2).await);
    assert!(put(&late, "late").await.detail(409).contains("fence 1 is older than 2"));
    stage.get(&path).await.detail(404);
    put(&next, "a").await.expect(200);
}

#[tokio::test]
async fn r13_a_process_that_has_forgotten_all_claims_goes_by_the_one_that_wrote() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "network");
    let body = data(json!({"vnet_name": "a"}));
    let (late, next) = (
        stage.work_under("rt-1", "network", "i", 1).await,
        stage.work_under("rt-1", "network", "i", 2).await,
    );
    stage.ask(&next, "PUT", &path, body.clone()).await.expect(200);
    let replica = stage.replica();
    let refused = stage.send_as(&replica, &late, "PUT", &path, body.clone()).await.detail(409);
    assert!(refused.contains("fence 1 is older than 2"), "{refused}");
    stage.send_as(&replica, &next, "PUT", &path, body).await.expect(200);
}

#[tokio::test]
async fn r5_history_says_who_wrote_when_and_nothing_secret() {
    let stage = Stage::with_entries().await;
    let network = stage.work("rt-1", "network").await;
    let path = section("rt-1", "network");
    stage.put(&path, data(json!({"vnet_name": "a"}))).await.expect(200);
    stage.clock.advance(Duration::from_secs(1));
    stage.ask(&network, "PUT", &path, data(json!({"vnet_name": "b"}))).await.expect(200);
    let history = stage.get(&format!("{path}/history")).await.expect(200);
    let items = history["items"].as_array().unwrap();
    let seen: Vec<_> = items.iter().map(|it| (&it["version"], &it["writer"], &it["data"])).collect();
    let (one, two) = (json!({"vnet_name": "a"}), json!({"vnet_name": "b"}));
    assert_eq!(seen, [(&json!(2), &json!("network"), &two), (&json!(1), &json!("root"), &one)]);
    let before = items[0]["position"].as_u64().unwrap();
    let rest = stage.get(&format!("{path}/history?before={before}")).await.expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    let path = section("rt-1", "credentials");
    stage.put(&path, data(json!({"kubeconfig": "x"}))).await.expect(200);
    let history = stage.get(&format!("{path}/history")).await.expect(200);
    assert_eq!((&history["items"][0]["secret"], history["items"][0].get("data")), (&json!(true), None));
    stage.get(&format!("{}/history", section("rt-1", "never"))).await.detail(404);
}

#[tokio::test]
async fn r5_an_entry_that_is_made_again_has_no_part_in_the_history_of_the_one_before() {
    let stage = Stage::with_entries().await;
    let path = section("rt-1", "spec");
    stage.put(&path, data(json!({"n": 1}))).await.expect(200);
    // Within the same second: times tell nothing.
    stage.delete("/entries/rt-1").await.expect(202);
    stage.post("/entries", json!({"id": "rt-1", "kind": "runtime"})).await.expect(201);
    stage.put(&path, data(json!({"n": 2}))).await.expect(200);
    let history = stage.get(&format!("{path}/history")).await.expect(200);
    let seen: Vec<&Value> = history["items"].as_array().unwrap().iter().map(|it| &it["data"]["n"]).collect();
    assert_eq!(seen, [&json!(2)], "{history}");
}
