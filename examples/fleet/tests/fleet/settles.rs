//! A fresh entry settles, in an order that nobody has told.

use serde_json::{Value, json};

use crate::fleet::{Fleet, Layout};
use crate::secrets::assert_nothing_leaks;
use crate::wait::eventually;

const ITEMS: &str = "/apis/mothership.concert.dev/v1alpha1/items";

fn settings() -> Value {
    json!({"settings": {"region": "westeurope", "cidr": "10.1.0.0/16", "component": {"version": "1.0.0"}}})
}

/// When a section was first written.
fn first_write(fleet: &Fleet, id: &str, section: &str) -> String {
    let path = format!("/inventory/v1/entries/{id}/sections/{section}/history");
    let history = fleet.inventory().web.get(&path);
    let times = history["items"].as_array().or(history.as_array()).unwrap();
    times.iter().filter_map(|it| it["at"].as_str().or(it["updated_at"].as_str())).min().unwrap().to_owned()
}

/// Every state of every item since a version of them all.
fn past(fleet: &Fleet, since: &str) -> Vec<Value> {
    let path = format!("{ITEMS}?watch=true&resourceVersion={since}&timeoutSeconds=1");
    // One event is JSON, several are not.
    let text = match fleet.mothership.web.get(&path) {
        Value::String(text) => text,
        event => event.to_string(),
    };
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.map(|mut event| event["object"].take()).collect()
}

fn story(layout: Layout) {
    let Some(mut fleet) = Fleet::start_all(layout) else { return };
    let since = fleet.mothership.web.get(ITEMS)["metadata"]["resourceVersion"].clone();
    fleet.create("rt-1", "runtime", &settings());
    fleet.wait_ready("rt-1");
    let past = past(&fleet, since.as_str().unwrap());
    for (reconciler, waited_for) in
        [("shoot", "network"), ("kubeconfig", "cluster"), ("component", "credentials")]
    {
        assert_eq!(fleet.item("rt-1", reconciler)["status"]["state"], "ready");
        let has_waited = |item: &Value| {
            let mut waits_for = item["status"]["waitsFor"].as_array().into_iter().flatten();
            item["metadata"]["name"] == format!("rt-1.{reconciler}")
                && item["status"]["state"] == "not_ready"
                && waits_for.any(|it| it["section"] == waited_for)
        };
        assert!(past.iter().any(has_waited), "{reconciler} has waited for {waited_for}");
    }
    let order = ["network", "cluster", "credentials"].map(|it| first_write(&fleet, "rt-1", it));
    assert!(order.is_sorted(), "{order:?}");

    later_passes_run_in_any_order(&fleet);
    a_deleted_object_comes_back(&fleet);
    a_rotation_wakes_only_consumers(&mut fleet);
    a_brought_cluster_skips_network_and_shoot(&fleet);
    assert_nothing_leaks(&fleet, &["rt-1", "mine"]);
}

fn later_passes_run_in_any_order(fleet: &Fleet) {
    for reconciler in ["component", "network", "kubeconfig", "shoot"] {
        let before = fleet.runs(reconciler, "rt-1");
        fleet.ask_for_run("rt-1", reconciler);
        eventually(&format!("{reconciler} runs again"), || match fleet.runs(reconciler, "rt-1") {
            runs if runs > before => Ok(()),
            runs => Err(format!("{runs} runs")),
        });
        fleet.wait_item("rt-1", reconciler, "ready");
    }
}

fn a_deleted_object_comes_back(fleet: &Fleet) {
    fleet.world.target.kubectl(&["delete", "configmap", "component", "-n", "fleet"]).unwrap();
    eventually("the deleted object is back", || {
        fleet.world.in_target("configmap", "component").ok_or("".into())
    });
}

fn a_rotation_wakes_only_consumers(fleet: &mut Fleet) {
    let counts = |fleet: &Fleet| {
        ["network", "shoot", "component", "connectivity-proxy"].map(|it| fleet.runs(it, "rt-1"))
    };
    let version = fleet.section("rt-1", "credentials")["version"].clone();
    let before = counts(fleet);
    // Another account of the same name: the token that was handed out is worth nothing any more.
    fleet.world.target.kubectl(&["delete", "serviceaccount", "fleet-components", "-n", "fleet"]).unwrap();
    fleet.ask_for_run("rt-1", "kubeconfig");
    eventually("the consumers have run", || {
        let is_new = fleet.section("rt-1", "credentials")["version"] != version;
        let now = counts(fleet);
        if is_new && now[2] > before[2] && now[3] > before[3] {
            Ok(())
        } else {
            Err(format!("{before:?} {now:?}"))
        }
    });
    fleet.wait_item("rt-1", "component", "ready");
    let now = counts(fleet);
    assert_eq!(before[..2], now[..2], "network and shoot have nothing to do with credentials");
}

fn a_brought_cluster_skips_network_and_shoot(fleet: &Fleet) {
    let admin = fleet.world.admin_kubeconfig(fleet.world.target.token());
    fleet.create("mine", "byoc", &json!({"admin": {"kubeconfig": admin}}));
    fleet.wait_ready("mine");
    let sections = fleet.entry("mine")["sections"].as_object().unwrap().clone();
    assert!(!sections.contains_key("network") && !sections.contains_key("cluster"), "{:?}", sections.keys());
    assert_eq!((fleet.runs("network", "mine"), fleet.runs("shoot", "mine")), (0, 0));
    assert!(fleet.item("mine", "network").is_null() && fleet.item("mine", "shoot").is_null());
    assert!(fleet.world.shoot("mine").is_none());
}

#[test]
fn a_fresh_entry_settles_in_one_process() {
    story(Layout::Together);
}

#[test]
fn a_fresh_entry_settles_with_inventory_and_mothership_apart() {
    story(Layout::Apart);
}
