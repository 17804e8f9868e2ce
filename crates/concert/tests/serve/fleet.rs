//! `concert explain cluster/NAME` and `concert fleet`, in one process and with the inventory in another.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::plane::Plane;
use crate::wait::eventually;
use crate::wire::call;

/// What a command prints about a control plane.
fn concert(plane: &Plane, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_concert"));
    command.args(words).arg("--server").arg(format!("http://{}", plane.address));
    command.env_clear().env("HOME", plane.file("home")).env("CONCERT_DATA_DIR", plane.data());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (said, complained) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    assert!(output.status.success(), "{words:?}: {}", complained.unwrap());
    said.unwrap()
}

/// The code and the answer; none while nobody listens.
fn try_ask(plane: &Plane, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (code, text) = call(&plane.address, method, path, &body)?;
    Some((code, serde_json::from_str(&text).unwrap_or_default()))
}

fn ask(plane: &Plane, method: &str, path: &str, body: &Value) -> Value {
    let (code, answer) = try_ask(plane, method, path, body).unwrap();
    assert!((200..300).contains(&code), "{method} {path}: {code} {answer}");
    answer
}

/// The item of `shoot`, as soon as it is due.
fn claim(mothership: &Plane) -> Value {
    let wanted = json!({"limit": 1, "wait_seconds": 1, "host_id": "h"});
    eventually("shoot gets its item", || {
        let answer = try_ask(mothership, "POST", "/api/v1/workers/shoot/claim", &wanted);
        let item = answer.as_ref().and_then(|(_, it)| it["items"].get(0)).cloned();
        item.ok_or_else(|| format!("{answer:?}"))
    })
}

fn report(mothership: &Plane, item: &Value, result: &Value) {
    let mut result = result.clone();
    result["item"] = item["item"].clone();
    result["fence"] = item["lease"]["fence"].clone();
    let answer = ask(mothership, "POST", "/api/v1/workers/shoot/results", &json!({"results": [result]}));
    assert_eq!(answer["results"][0]["status"], 200, "{answer}");
}

/// An entry, and a reconciler that waits for its network.
fn begin(inventory: &Plane, mothership: &Plane) {
    ask(inventory, "POST", "/inventory/v1/entries", &json!({"id": "rt-1", "kind": "runtime"}));
    let body = json!({"name": "shoot", "handles": [{"kind": "runtime"}], "host_id": "h",
        "resync_seconds": 3600, "grants": {"read": ["network"]}});
    ask(mothership, "POST", "/api/v1/workers", &body);
    let item = claim(mothership);
    let waits = json!({"outcome": "not_ready", "message": "no network", "retry_after": 600,
        "waits_for": [{"section": "network", "path": "/vnet_name"}]});
    report(mothership, &item, &waits);
}

fn both_commands_say_what_waits_for_what(mothership: &Plane) {
    let explained = concert(mothership, &["explain", "cluster/rt-1"]);
    assert!(explained.contains("shoot") && explained.contains("section network"), "{explained}");
    let shown = concert(mothership, &["fleet"]);
    assert!(shown.contains("1 not ready") && shown.contains("shoot"), "{shown}");
}

#[test]
fn r15_explain_and_fleet_say_what_waits_for_what() {
    let Some(plane) = Plane::start() else { return };
    begin(&plane, &plane);
    both_commands_say_what_waits_for_what(&plane);
}

#[test]
fn r1_a_mothership_sits_out_that_its_inventory_is_away() {
    let Some(mut inventory) = Plane::start_with(&["--dev", "--only", "inventory"]) else { return };
    let url = format!("http://{}", inventory.address);
    let flags = ["--dev", "--only", "mothership", "--inventory", &url];
    let Some(mothership) = Plane::start_with(&flags) else { return };
    begin(&inventory, &mothership);
    both_commands_say_what_waits_for_what(&mothership);

    inventory.kill();
    assert!(concert(&mothership, &["fleet"]).contains("1 not ready"), "it still knows how things stood");
    inventory.start_again();
    let written = json!({"data": {"vnet_name": "a"}});
    ask(&inventory, "PUT", "/inventory/v1/entries/rt-1/sections/network", &written);
    let item = claim(&mothership);
    report(&mothership, &item, &json!({"outcome": "ready"}));
    eventually("it is ready", || {
        let shown = concert(&mothership, &["explain", "cluster/rt-1"]);
        if shown.contains("is ready") { Ok(()) } else { Err(shown) }
    });
}
