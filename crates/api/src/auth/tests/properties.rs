//! Nothing is granted that no rule grants, and nobody gives away what they do not have.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::fixtures::*;
use super::super::rule::{Rule, covers};
use super::super::{Access, User};

/// Few words, so that they meet.
fn some(words: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(words).prop_map(str::to_owned), 0..3)
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let resources = some(&["x", "y", "x/status", "*/status", "*"]);
    let (groups, names) = (some(&["", "a", "*"]), some(&["one", "two"]));
    (some(&["get", "list", "*"]), groups, resources, names, some(&["/p", "/p/*", "*"])).prop_map(
        |(verbs, api_groups, resources, resource_names, non_resource_urls)| Rule {
            verbs,
            api_groups,
            resources,
            resource_names,
            non_resource_urls,
        },
    )
}

fn any_role() -> impl Strategy<Value = Value> {
    let place = prop::sample::select(&["r1", "r2", "n1/r1", "n2/r1"][..]);
    (place, prop::collection::vec(any_rule(), 0..3)).prop_map(|(place, rules)| role(place, json!(rules)))
}

fn any_binding() -> impl Strategy<Value = Value> {
    let place = prop::sample::select(&["b1", "b2", "n1/b1", "n1/b2", "n2/b1"][..]);
    let to = prop::sample::select(&["ClusterRole/r1", "ClusterRole/r2", "Role/r1"][..]);
    let subject = prop::sample::select(&["User/u", "User/v", "Group/g", "ServiceAccount/n1/s"][..]);
    (place, to, subject).prop_map(|(place, to, subject)| binding(place, to, subject))
}

/// One of each name, as a store would have.
fn any_objects() -> impl Strategy<Value = Vec<Value>> {
    let (roles, bindings) =
        (prop::collection::vec(any_role(), 0..5), prop::collection::vec(any_binding(), 0..5));
    (roles, bindings).prop_map(|(roles, bindings)| {
        let mut all: Vec<Value> = roles.into_iter().chain(bindings).collect();
        let id = |it: &Value| format!("{} {}", it["kind"], it["metadata"]);
        all.sort_by_key(id);
        all.dedup_by_key(|it| id(it));
        all
    })
}

fn every_user() -> Vec<User> {
    vec![user("u"), User::known("w", ["g".into()]), User::service_account("n1", "s", "1"), user("nobody")]
}

fn every_access() -> Vec<Access<'static>> {
    let mut all = Vec::new();
    for verb in ["get", "list"] {
        for path in ["/p", "/p/q", "/z"] {
            all.push(Access::Path { verb, path });
        }
        for (group, resource) in [("", "x"), ("a", "x"), ("a", "y")] {
            for (subresource, name) in [("", "one"), ("", ""), ("status", "two")] {
                for namespace in ["", "n1", "n2"] {
                    all.push(Access::Resource { verb, group, resource, subresource, namespace, name });
                }
            }
        }
    }
    all
}

/// The definition, read off slowly.
fn is_granted(objects: &[Value], user: &User, access: &Access<'_>) -> bool {
    let of =
        |kind: &'static str| objects.iter().filter(move |it| it["kind"].as_str().unwrap().ends_with(kind));
    let wanted = match access {
        Access::Path { .. } => "",
        Access::Resource { namespace, .. } => namespace,
    };
    of("Binding").any(|binding| {
        let home = binding["metadata"]["namespace"].as_str().unwrap_or_default();
        let is_subject = binding["subjects"].as_array().unwrap().iter().any(|subject| {
            let name = subject["name"].as_str().unwrap();
            match subject["kind"].as_str().unwrap() {
                "User" => *user.name == *name,
                "Group" => user.groups.iter().any(|group| **group == *name),
                _ => {
                    *user.name
                        == format!("system:serviceaccount:{}:{name}", subject["namespace"].as_str().unwrap())
                }
            }
        });
        let to = &binding["roleRef"];
        let is_it = |role: &&Value| {
            let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
            role["kind"] == to["kind"]
                && role["metadata"]["name"] == to["name"]
                && (namespace.is_empty() || namespace == home)
        };
        let allows = |rule: &Value| serde_json::from_value::<Rule>(rule.clone()).unwrap().allows(access);
        (home.is_empty() || home == wanted)
            && is_subject
            && of("Role").filter(is_it).any(|role| role["rules"].as_array().unwrap().iter().any(allows))
    })
}

proptest! {
    #[test]
    fn an_index_grants_exactly_what_a_rule_grants(objects in any_objects()) {
        let whole = index(&objects);
        for user in every_user() {
            for access in every_access() {
                let grant = whole.grant(&user, &access);
                prop_assert_eq!(grant.is_some(), is_granted(&objects, &user, &access), "{:?} {:?}", user, access);
                // What it says its answer rests on is enough for the answer.
                let Some(witnesses) = grant else { continue };
                let is_witness = |it: &&Value| {
                    let key = encoded((*it).clone()).key().clone();
                    witnesses.iter().any(|(witness, _)| *witness == key)
                };
                let rest: Vec<Value> = objects.iter().filter(is_witness).cloned().collect();
                prop_assert!(index(&rest).grant(&user, &access).is_some());
            }
        }
    }

    #[test]
    fn who_holds_what_covers_a_rule_may_do_all_that_it_allows(
        held in prop::collection::vec(any_rule(), 0..4),
        wanted in any_rule(),
    ) {
        let missing = covers(&held, std::slice::from_ref(&wanted));
        for access in every_access() {
            let is_held = held.iter().any(|rule| rule.allows(&access));
            let is_missing = missing.iter().any(|rule| rule.allows(&access));
            prop_assert!(!wanted.allows(&access) || is_held || is_missing, "{:?}", access);
        }
        prop_assert!(covers(std::slice::from_ref(&wanted), std::slice::from_ref(&wanted)).is_empty());
    }
}
