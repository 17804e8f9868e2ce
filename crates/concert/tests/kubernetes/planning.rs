//! `managed-reconciler plan`.

use serde_json::{Value, json};

use crate::process::{Provider, Reconciler, config, reconciler};
use crate::world::{World, bucket, list_of};

#[test]
fn a_plan_says_what_would_happen_and_touches_nothing() {
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[]);
    world.define_cloud();
    let running = Reconciler::start_for(&world, &provider, &["--poll-interval", "1h"]);
    for name in ["same", "edited"] {
        world.apply(&bucket(name, &Value::Null));
    }
    for name in ["same", "edited"] {
        world.wait_ready("bucket", name);
    }
    drop(running);
    let objects =
        || world.kubectl(&["get", "buckets,secrets,leases,providerconfigusages", "-A", "-o", "yaml"]);
    let (before, summary) = (objects(), provider.ask("GET", "/summary", &Value::Null));

    let larger = bucket("edited", &json!({"forProvider": {"region": "eu", "size": 4}}));
    let manifests = [bucket("same", &Value::Null), larger, bucket("new", &Value::Null)];
    let (file, config_file) = (world.new_file("buckets.json"), world.new_file("config.json"));
    let documents: Vec<String> = manifests.iter().map(ToString::to_string).collect();
    std::fs::write(&file, documents.join("\n---\n")).unwrap();
    let endpoint = provider.address.as_str();
    std::fs::write(&config_file, config(&[("example", endpoint, None)]).to_string()).unwrap();
    let plan = |more: &[&str]| {
        let output =
            reconciler(&world, &config_file).arg("plan").arg("-f").arg(&file).args(more).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), said)
    };
    let (code, text, said) = plan(&["--detailed-exitcode"]);
    assert_eq!(code, Some(2), "{text}{said}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "none Bucket default/same", "{text}{said}");
    assert_eq!(lines[1], "update Bucket default/edited", "{text}{said}");
    assert_eq!(lines[2], "  spec.forProvider.size: 1 -> 4", "{text}{said}");
    assert!(lines[3].starts_with("create Bucket default/new"), "{text}{said}");
    let (code, text, _) = plan(&["-o", "json"]);
    let plans: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &plans[2]["action"]), (Some(0), &json!("create")));

    assert_eq!(objects(), before);
    assert_eq!(provider.ask("GET", "/summary", &Value::Null), summary);
    std::fs::write(&file, list_of(&manifests).to_string()).unwrap();
    assert_eq!(plan(&["--detailed-exitcode"]).0, Some(2), "a List is many manifests");
}
