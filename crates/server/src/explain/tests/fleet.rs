use std::time::Duration;

use serde_json::json;

use super::scene::{Scene, condition, object};
use crate::explain::{Component, Dependency, Facts, explain};

fn component(name: &str, state: &str) -> Component {
    Component { name: name.into(), state: state.into(), is_registered: true, ..Component::default() }
}

fn waiting(name: &str, section: &str, writer: Option<&str>) -> Component {
    let waits_for =
        vec![Dependency { what: format!("section {section}"), writer: writer.map(str::to_owned) }];
    let next_run = Some(Duration::from_secs(42));
    Component { waits_for, next_run, ..component(name, "not_ready") }
}

fn cluster(components: Vec<Component>) -> Facts {
    let ready = condition("Ready", "False", "DependenciesMissing", "x");
    let value = json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Cluster",
        "metadata": {"name": "rt-42", "generation": 2}, "spec": {"kind": "runtime"},
        "status": {"conditions": [ready]}});
    Facts { components, ..object(value) }
}

#[test]
fn who_waits_is_named_with_what_it_waits_for_and_who_writes_that() {
    let network = Component {
        running: Some(("host-1".into(), Duration::from_secs(3))),
        ..component("network", "pending")
    };
    let shoot = waiting("shoot", "network /vnet_name", Some("network"));
    let facts = cluster(vec![network, shoot, waiting("kubeconfig", "cluster", Some("shoot"))]);
    assert_eq!(
        facts.says(),
        "[not ready] Cluster rt-42 is not ready: shoot waits for section network /vnet_name, which network \
         writes, and network has been at it on host host-1 for 3s; 2 more reconcilers are not ready."
    );
    let chain = explain(&facts).to_string();
    assert_eq!(
        chain.lines().skip(1).collect::<Vec<_>>(),
        [
            "  reconciler  network     running on host-1 for 3s",
            "  reconciler  shoot       not ready, waits for section network /vnet_name, which network writes, \
             next run in 42s",
            "  reconciler  kubeconfig  not ready, waits for section cluster, which shoot writes, next run in 42s",
        ]
    );
}

#[test]
fn a_failure_comes_before_those_who_wait_for_it() {
    let network = Component {
        message: "no quota".into(),
        attempt: 3,
        next_run: Some(Duration::from_secs(30)),
        ..component("network", "failed")
    };
    let facts = cluster(vec![network, waiting("shoot", "network", Some("network"))]);
    assert_eq!(
        facts.says(),
        "[not ready] Cluster rt-42 is not ready: network failed: no quota (attempt 3, next try in 30s); one \
         more reconciler is not ready."
    );
}

#[test]
fn each_state_has_its_words() {
    let in_line = Component { is_waiting: true, ..component("network", "pending") };
    for (one, words) in [
        (component("network", "pending"), "network has not begun"),
        (in_line, "network is next in line for a host"),
        (component("network", "stopped"), "network was stopped; run it again to go on"),
        (waiting("network", "spec", None), "network waits for section spec"),
        (component("network", "running"), "network is not done yet"),
        (
            Component { is_registered: false, ..component("network", "failed") },
            "network has worked on it and is not registered any more",
        ),
    ] {
        assert_eq!(cluster(vec![one]).says(), format!("[not ready] Cluster rt-42 is not ready: {words}."));
    }
}

#[test]
fn an_entry_that_goes_waits_for_those_who_worked_on_it() {
    let facts = cluster(vec![component("network", "pending"), component("shoot", "running")]);
    let facts = facts.with_metadata("deletionTimestamp", json!("2026-11-15T11:59:30Z"));
    assert_eq!(
        facts.says(),
        "[not ready] Cluster rt-42 is being deleted (asked 30s ago) and waits for those who worked on it: \
         network has not begun and shoot is not done yet."
    );
}
