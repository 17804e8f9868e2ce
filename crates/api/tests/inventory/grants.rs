//! One writer for each section, and who may say which.

use concert_api::auth::{Gate, User};
use concert_api::inventory::{Ensured, ensure};
use concert_model::inventory::Grant;
use serde_json::{Value, json};

use crate::stage::{OBJECTS, Stage, create, data, section};

fn grant(read: &[&str], write: &[&str]) -> Grant {
    let set = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    Grant { read: set(read), write: set(write) }
}

#[tokio::test]
async fn r4_a_section_has_one_writer_whichever_door_says_so() {
    let stage = Stage::new().await;
    let said = stage.put("/grants/other", json!({"write": ["spec", "cluster"]})).await.detail(409);
    assert_eq!(said, "section 'cluster' is written by reconciler 'shoot', and each section has one writer");
    let object = json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Grant",
        "metadata": {"name": "other"}, "spec": {"write": ["cluster"]}});
    let reply = stage.ask(&stage.admin, "POST", &format!("{OBJECTS}/grants"), object).await;
    assert_eq!((reply.code, &reply.json()["reason"]), (422, &json!("Invalid")));
    assert!(reply.json()["message"].as_str().unwrap().contains("written by reconciler 'shoot'"));
    stage.get("/grants/other").await.detail(404);
    // The same reconciler may of course be granted it again.
    let same = stage.put("/grants/shoot", json!({"write": ["cluster"]})).await.expect(200);
    assert_eq!(same, json!({"name": "shoot", "read": [], "write": ["cluster"]}));
    stage.delete("/grants/shoot").await.expect(204);
    stage.put("/grants/other", json!({"write": ["cluster"]})).await.expect(201);
    let names: Vec<Value> = stage.get("/grants").await.expect(200)["items"].as_array().unwrap().clone();
    assert_eq!(names.len(), 2);
    stage.put("/grants/bad", json!({"read": ["Not A Name"]})).await.detail(422);
}

#[tokio::test]
async fn of_two_grants_that_came_at_once_the_older_counts() {
    let stage = Stage::with_entries().await;
    // As if both had been judged before either was committed.
    let second = json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Grant",
        "metadata": {"name": "usurper"}, "spec": {"write": ["cluster"]}});
    create(&stage.store, second).await;
    let path = section("rt-1", "cluster");
    let (shoot, usurper) = (stage.work("rt-1", "shoot").await, stage.work("rt-1", "usurper").await);
    stage.ask(&usurper, "PUT", &path, data(json!({}))).await.detail(403);
    stage.ask(&shoot, "PUT", &path, data(json!({}))).await.expect(200);
    stage.ask(&usurper, "GET", &path, Value::Null).await.expect(200);
}

#[tokio::test]
async fn a_registration_brings_its_grant_only_if_who_registers_may_write_grants() {
    let stage = Stage::new().await;
    let gate = Gate::guarded(stage.store.clone(), stage.clock.clone());
    let (host, admin) = (User::known("host", []), User::known("root", ["system:masters".into()]));
    let wanted = grant(&["cluster"], &["addons"]);
    let said = ensure(&stage.store, &gate, &host, "addon_s", &wanted).await.unwrap_err();
    assert_eq!((said.code.as_u16(), said.text().contains("has no grant")), (403, true), "{}", said.text());
    assert_eq!(ensure(&stage.store, &gate, &admin, "addon_s", &wanted).await.unwrap(), Ensured::Written);
    assert_eq!(ensure(&stage.store, &gate, &host, "addon_s", &wanted).await.unwrap(), Ensured::Same);
    let said = ensure(&stage.store, &gate, &host, "addon_s", &grant(&[], &["addons"])).await.unwrap_err();
    assert!(said.text().contains("has another grant"), "{}", said.text());
    let taken = ensure(&stage.store, &gate, &admin, "addon_s", &grant(&[], &["cluster"])).await.unwrap_err();
    assert_eq!(taken.code, 409);
    assert_eq!(stage.get("/grants/addon_s").await.expect(200)["write"], json!(["addons"]));
}
