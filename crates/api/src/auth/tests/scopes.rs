//! Who is bound to what, and where it holds.

use serde_json::json;

use super::super::fixtures::*;
use super::super::{Access, User};

fn read() -> serde_json::Value {
    json!([rule(&["get"], "a.dev", &["buckets"])])
}

#[test]
fn a_binding_holds_where_it_is() {
    let index = index(&[
        role("reader", read()),
        role("default/local", read()),
        binding("everywhere", "ClusterRole/reader", "User/root"),
        binding("default/one", "ClusterRole/reader", "User/ann"),
        binding("default/two", "Role/local", "User/bob"),
        binding("other/two", "Role/local", "User/bob"),
        binding("wrong", "Role/local", "User/eve"),
        binding("dangling", "ClusterRole/none", "User/eve"),
    ]);
    for (name, place, is_allowed) in [
        ("root", "default/x", true),
        ("root", "other/x", true),
        ("root", "x", true),
        ("ann", "default/x", true),
        ("ann", "other/x", false),
        ("ann", "x", false),
        ("bob", "default/x", true),
        ("bob", "other/x", false),
        ("eve", "default/x", false),
        ("nobody", "default/x", false),
    ] {
        let grant = index.grant(&user(name), &access("get", "a.dev/buckets", place));
        assert_eq!(grant.is_some(), is_allowed, "{name} {place}");
    }
}

#[test]
fn subjects_are_users_groups_and_accounts() {
    let index = index(&[
        role("reader", read()),
        binding("staff", "ClusterRole/reader", "Group/staff"),
        binding("default/robot", "ClusterRole/reader", "ServiceAccount/robot"),
        binding("default/far", "ClusterRole/reader", "ServiceAccount/other/far"),
        binding("homeless", "ClusterRole/reader", "ServiceAccount/homeless"),
        binding("default/accounts", "ClusterRole/reader", "Group/system:serviceaccounts:ops"),
        binding("odd", "ClusterRole/reader", "Robot/r2"),
    ]);
    let get = access("get", "a.dev/buckets", "default/x");
    for (user, is_allowed) in [
        (User::known("ann", ["staff".into()]), true),
        (User::known("staff", []), false),
        (User::service_account("default", "robot", "1"), true),
        (User::service_account("other", "robot", "1"), false),
        (User::service_account("other", "far", "1"), true),
        (User::service_account("", "homeless", "1"), false),
        (User::service_account("ops", "any", "1"), true),
        (User::known("system:serviceaccount:default:robot", []), true),
        (User::known("r2", []), false),
    ] {
        assert_eq!(index.grant(&user, &get).is_some(), is_allowed, "{user:?}");
    }
}

#[test]
fn paths_are_of_the_whole_cluster() {
    let rules = json!([{"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}]);
    let index = index(&[
        role("logs", rules),
        binding("all", "ClusterRole/logs", "User/ann"),
        binding("default/one", "ClusterRole/logs", "User/bob"),
    ]);
    let logs = Access::Path { verb: "get", path: "/logs/today" };
    assert!(index.grant(&user("ann"), &logs).is_some());
    assert!(index.grant(&user("bob"), &logs).is_none());
}

#[test]
fn an_aggregating_role_has_the_rules_of_those_it_selects_and_none_of_its_own() {
    let labelled = |name: &str, to: &str, rules| {
        let mut role = role(name, rules);
        role["metadata"]["labels"] = json!({format!("to-{to}"): "true"});
        role
    };
    let aggregating = |name: &str, of: &str, to: &str| {
        let mut role = labelled(name, to, json!([rule(&["*"], "*", &["*"])]));
        role["aggregationRule"] =
            json!({"clusterRoleSelectors": [{"matchLabels": {format!("to-{of}"): "true"}}]});
        role
    };
    let index = index(&[
        labelled("part", "view", json!([rule(&["get"], "a.dev", &["buckets"])])),
        // A circle: each selects the other.
        aggregating("view", "view", "edit"),
        aggregating("edit", "edit", "view"),
        labelled("more", "edit", json!([rule(&["update"], "a.dev", &["buckets"])])),
        aggregating("empty", "nothing", "-"),
        binding("one", "ClusterRole/edit", "User/ann"),
        binding("two", "ClusterRole/empty", "User/bob"),
    ]);
    let may = |name, verb| index.grant(&user(name), &access(verb, "a.dev/buckets", "default/x"));
    let witnesses = may("ann", "get").unwrap();
    let names: Vec<&str> = witnesses.iter().map(|(key, _)| &*key.name).collect();
    assert_eq!(names, ["one", "edit", "part"]);
    assert!(may("ann", "update").is_some());
    assert!(may("ann", "delete").is_none() && may("bob", "get").is_none());
    assert_eq!(index.rules(&user("ann"), "default").len(), 2);
}

#[test]
fn a_selector_that_makes_no_sense_selects_no_role() {
    for bad in [json!({"matchLabels": "to=view"}), json!({"matchExpressions": {"key": "to"}}), json!(7)] {
        let mut all = role("all", json!([]));
        all["aggregationRule"] = json!({"clusterRoleSelectors": [bad]});
        let index = index(&[all, role("reader", read()), binding("one", "ClusterRole/all", "User/ann")]);
        let may = index.grant(&user("ann"), &access("get", "a.dev/buckets", "default/x"));
        assert!(may.is_none(), "{bad}");
    }
}

#[test]
fn what_makes_no_sense_grants_nothing() {
    let mut broken = role("broken", json!("everything"));
    broken["aggregationRule"] = json!(7);
    let mut unbound = binding("unbound", "ClusterRole/reader", "User/ann");
    unbound["roleRef"] = json!(null);
    let mut foreign = binding("foreign", "ClusterRole/reader", "User/ann");
    foreign["roleRef"]["apiGroup"] = json!("else.dev");
    let mut impostor = binding("impostor", "ClusterRole/reader", "User/ann");
    impostor["subjects"] =
        json!([{"kind": "User", "name": "ann", "apiGroup": "else.dev"}, 7, {"kind": "User"}]);
    let reader = role("reader", read());
    let to_broken = binding("to-broken", "ClusterRole/broken", "User/ann");
    let index = index(&[broken, unbound, foreign, impostor, reader, to_broken]);
    assert!(index.grant(&user("ann"), &access("get", "a.dev/buckets", "default/x")).is_none());
    assert!(index.grant(&user(""), &access("get", "a.dev/buckets", "default/x")).is_none());
}
