//! `managed-reconciler plan`.

use serde_json::{Value, json};

use crate::declared::{declared, define_providers};
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
    // Kubernetes renews the leases of its own programs all the time.
    let ours = ["--field-selector", "metadata.namespace!=kube-system"];
    let kinds = ["get", "buckets,secrets,leases,providerconfigusages", "-A", "-o", "yaml"];
    let objects = || world.kubectl(&[&kinds[..], &ours[..]].concat());
    let (before, summary) = (objects(), provider.ask("GET", "/summary", &Value::Null));

    let larger = bucket("edited", &json!({"forProvider": {"region": "eu", "size": 4}}));
    let moved = bucket("same", &json!({"forProvider": {"region": "us", "size": 1}}));
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

    // What cannot change in place is no change that would be made, and none that may be passed over.
    std::fs::write(&file, moved.to_string()).unwrap();
    let (code, text, said) = plan(&["--detailed-exitcode"]);
    assert_eq!(code, Some(2), "{text}{said}");
    assert!(text.starts_with("replace Bucket default/same (") && text.contains("would be refused"), "{text}");

    // A provider that an object declares is asked as well.
    std::fs::write(&file, manifests[0].to_string()).unwrap();
    std::fs::write(&config_file, config(&[]).to_string()).unwrap();
    let (code, text, said) = plan(&["--detailed-exitcode"]);
    assert_eq!((code, text.contains("no provider serves")), (Some(2), true), "{text}{said}");
    define_providers(&world);
    world.apply(&declared("cloud", endpoint));
    let (code, text, said) = plan(&["--detailed-exitcode"]);
    assert_eq!((code, text.as_str()), (Some(0), "none Bucket default/same\n"), "{text}{said}");
}
