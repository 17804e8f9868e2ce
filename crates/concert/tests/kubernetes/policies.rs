//! Every management policy, on a thing that was made for the object or that was there before.

use serde_json::{Value, json};

use crate::process::{Provider, Reconciler};
use crate::world::{World, bucket, condition, eventually, external_name, is, message};

const O: &str = "Observe";
const C: &str = "Create";
const U: &str = "Update";
const D: &str = "Delete";
const L: &str = "LateInitialize";

/// All sets that are supported, but for the empty one, which pauses.
const SETS: [&[&str]; 14] = [
    &["*"],
    &[O, C, U, L, D],
    &[O],
    &[O, C, U, D],
    &[O, C, U, L],
    &[O, C, U],
    &[O, C, D, L],
    &[O, C, L],
    &[O, C, D],
    &[O, C],
    &[O, D],
    &[O, U],
    &[O, L],
    &[O, U, L],
];

fn allows(set: &[&str], action: &str) -> bool {
    set.contains(&"*") || set.contains(&action)
}

fn thing(provider: &Provider, id: &str) -> Option<Value> {
    provider.things().into_iter().find(|it| it["id"] == id)
}

/// Makes the object, on a thing that is there already where it may make none, and answers with the id
/// of the thing, whose size is not the wanted one.
fn begin(world: &World, provider: &Provider, name: &str, set: &[&str]) -> String {
    let mut object = bucket(name, &json!({ "managementPolicies": set }));
    if allows(set, C) {
        world.apply(&object);
        let id = external_name(&world.wait_ready("bucket", name)).to_owned();
        provider.drift(&id, &json!({"size": 5}));
        return id;
    }
    // In the account that the default configuration stands for.
    let account = "ClusterProviderConfig.cloud.concert.dev default";
    let wanted = json!({"kind": "bucket", "account": account, "properties": {"region": "eu", "size": 5}});
    let made = provider.ask("POST", "/cloud/things", &wanted);
    let id = made["id"].as_str().unwrap().to_owned();
    object["metadata"]["annotations"] = json!({"crossplane.io/external-name": id});
    world.apply(&object);
    world.wait_ready("bucket", name);
    id
}

#[test]
fn each_policy_allows_what_it_says_and_nothing_else() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let reconciler = Reconciler::start_for(&world, &provider, &["--poll-interval", "2s"]);
    reconciler.wait_ready();
    let mut ids = Vec::new();
    for (index, set) in SETS.iter().enumerate() {
        ids.push(begin(&world, &provider, &format!("p{index}"), set));
    }
    for (index, (set, id)) in SETS.iter().zip(&ids).enumerate() {
        let name = format!("p{index}");
        if allows(set, U) {
            eventually(&format!("{set:?} updates"), || match thing(&provider, id) {
                Some(it) if it["properties"]["size"] == 1 => Ok(()),
                other => Err(format!("{other:?}")),
            });
            world.wait_for("bucket", &name, "up to date", |it| is(it, "UpToDate", "True"));
        } else {
            let object = world.wait_for("bucket", &name, "restricted", |it| {
                condition(it, "UpToDate")["reason"] == "UpdateRestricted"
            });
            assert!(is(&object, "Synced", "True"), "{set:?}: {object}");
            assert!(message(&object, "UpToDate").contains("size: 5 -> 1"), "{set:?}: {object}");
            assert_eq!(thing(&provider, id).unwrap()["properties"]["size"], 5, "{set:?}");
        }
        let tier = world.get("bucket", &name).unwrap()["spec"]["forProvider"]["tier"].clone();
        assert_eq!(tier.is_string(), allows(set, L), "{set:?} and the tier {tier}");
    }
    world.kubectl(&["delete", "buckets", "--all", "--timeout=90s"]);
    for (set, id) in SETS.iter().zip(&ids) {
        assert_eq!(thing(&provider, id).is_none(), allows(set, D), "{set:?}");
    }
    assert_eq!(provider.count("doubles"), 0);
}

#[test]
fn no_policy_pauses_and_a_set_that_makes_no_sense_is_refused() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let reconciler = Reconciler::start_for(&world, &provider, &["--poll-interval", "2s"]);
    world.apply(&bucket("paused", &json!({"managementPolicies": []})));
    world.apply(&bucket("odd", &json!({"managementPolicies": [C]})));
    world.apply(&bucket("absent", &json!({"managementPolicies": [O]})));
    world.wait_for("bucket", "paused", "paused", |it| condition(it, "Synced")["reason"] == "ReconcilePaused");
    world.wait_for("bucket", "odd", "refused", |it| {
        message(it, "Synced").contains("is set to a value([Create]) which is not supported")
    });
    world.wait_for("bucket", "absent", "said to be missing", |it| {
        message(it, "Synced") == "observe failed: external resource does not exist"
    });
    assert_eq!(provider.count("created"), 0);
    world.patch("bucket", "paused", &json!({"spec": {"managementPolicies": ["*"]}}));
    world.wait_ready("bucket", "paused");
    world.kubectl(&["delete", "bucket", "paused", "absent", "--timeout=60s"]);
    drop(reconciler);
}
