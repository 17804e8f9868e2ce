//! A provider in Go that was written for the prototype, well behaved and not.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::process::{Process, Provider, Reconciler, config, workspace};
use crate::world::{CLOUD, EXAMPLE, World, bucket, eventually, external_name, is, message};

/// Where Go is. None without it, which is said, and is a failure on CI.
#[expect(clippy::disallowed_methods, reason = "CI tells by a variable that it is")]
fn go() -> Option<&'static str> {
    let candidates = ["go", "/usr/local/go/bin/go"];
    let works = |go: &&str| Command::new(go).arg("version").output().is_ok_and(|it| it.status.success());
    let found = candidates.into_iter().find(works);
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none_or(|it| it != "true"),
            "Go is not installed; see https://go.dev/dl"
        );
        eprintln!("skipped: Go is not installed, so there is no provider in Go; see https://go.dev/dl");
    }
    found
}

/// A command about the provider, which must succeed.
fn run(go: &str, arguments: &[&str]) {
    let mut command = Command::new(go);
    let status = command.args(arguments).current_dir(workspace().join("testbed/provider")).status().unwrap();
    assert!(status.success(), "go {} failed: {status}", arguments.join(" "));
}

/// Builds the provider. None without Go.
fn program() -> Option<PathBuf> {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("go-provider");
    run(go()?, &["build", "-o", program.to_str().unwrap(), "."]);
    Some(program)
}

#[test]
fn the_provider_in_go_passes_its_own_tests() {
    let Some(go) = go() else { return };
    run(go, &["vet", "./..."]);
    run(go, &["test", "./..."]);
}

/// Starts it for one kind of the group of examples.
fn start(world: &World, program: &PathBuf, kind: &str, more: &[&str]) -> (Process, String) {
    let mut command = Command::new(program);
    command.arg("-kind").arg(format!("{EXAMPLE},{kind}")).args(more);
    let mut process = Process::start(world, "go-provider", &mut command);
    let address =
        process.find("the address of the provider", |line| line["address"].as_str().map(str::to_owned));
    (process, address)
}

fn example(kind: &str, name: &str) -> Value {
    json!({"apiVersion": EXAMPLE, "kind": kind, "metadata": {"name": name},
        "spec": {"forProvider": {"region": "eu", "size": 3}}})
}

/// Defines a kind of the group of examples that may hold anything.
fn define(world: &World, kind: &str, has_status: bool) {
    let plural = format!("{}s", kind.to_lowercase());
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": open, "status": open}});
    let subresources = if has_status { json!({"status": {}}) } else { json!({}) };
    world.apply(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.crossplane.io")},
        "spec": {"group": "example.crossplane.io", "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                "subresources": subresources, "schema": {"openAPIV3Schema": schema}}]}}));
}

#[test]
fn a_provider_of_the_prototype_works_unchanged() {
    let Some(world) = World::enter() else { return };
    let Some(program) = program() else { return };
    let truth = world.new_file("truth.jsonl");
    let (_go, address) = start(&world, &program, "ExampleResource", &["-truth", truth.to_str().unwrap()]);
    world.define(&["exampleresources.yaml"]);
    let kind = Some((EXAMPLE, "ExampleResource"));
    let _reconciler =
        Reconciler::start(&world, &config(&[("go", &address, kind)]), &["--poll-interval", "2s"]);
    world.apply(&example("ExampleResource", "a"));
    let object = world.wait_ready("exampleresource", "a");
    assert!(external_name(&object).starts_with("thg-"), "{object}");
    world.patch("exampleresource", "a", &json!({"spec": {"forProvider": {"size": 4}}}));
    let events = || -> Vec<Value> {
        let text = std::fs::read_to_string(&truth).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    eventually("the thing is updated", || match events().last() {
        Some(it) if it["event"] == "updated" && it["thing"]["properties"]["size"] == 4 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    world.kubectl(&["delete", "exampleresource", "a", "--timeout=60s"]);
    let all = events();
    assert_eq!(all.last().unwrap()["event"], "deleted", "{all:?}");
    assert_eq!(all.iter().filter(|it| it["event"] == "created").count(), 1, "{all:?}");
}

#[test]
fn a_provider_that_misbehaves_harms_nobody_else_and_is_told_on() {
    let Some(world) = World::enter() else { return };
    let Some(program) = program() else { return };
    let good = Provider::start(&world, &[]);
    world.define_cloud();
    // With what each is told on.
    let sins = [
        ("Foreign", "the provider returned another object: metadata.name is \"somebody-else\""),
        ("Empty", "the provider returned no object"),
        ("Hang", "did not answer in time"),
        ("Huge", "the provider's answer is too large"),
        ("Garbage", "the provider returned another object"),
    ];
    let mut running = Vec::new();
    for (kind, _) in sins {
        define(&world, kind, true);
        running.push(start(&world, &program, kind, &["-misbehave", &kind.to_lowercase()]));
    }
    // Well behaved, but its definition has no status to write.
    define(&world, "Mute", false);
    let (_mute, mute) = start(&world, &program, "Mute", &[]);
    let mut providers = vec![("good", good.address.as_str(), Some((CLOUD, "Bucket"))), ("mute", &mute, None)];
    let names = sins.map(|(kind, _)| kind.to_lowercase());
    for (name, (_, address)) in names.iter().zip(&running) {
        providers.push((name, address, None));
    }
    let flags = ["--poll-interval", "2s", "--reconcile-timeout", "8s"];
    let reconciler = Reconciler::start(&world, &config(&providers), &flags);
    for (kind, _) in sins {
        world.apply(&example(kind, "a"));
    }
    world.apply(&example("Mute", "a"));
    world.apply(&bucket("before", &Value::Null));
    world.wait_ready("bucket", "before");
    for (kind, told) in sins {
        // A large answer may take longer than is waited for, at first.
        let object = world.wait_for(kind, "a", told, |it| {
            is(it, "Synced", "False") && !is(it, "Ready", "True") && message(it, "Synced").contains(told)
        });
        assert_eq!(object["spec"]["forProvider"]["size"], 3, "nothing is lost: {object}");
        // Nothing was made, so the object is still as it was declared.
        assert_eq!(
            (external_name(&object), &object["metadata"]["finalizers"]),
            ("", &Value::Null),
            "{object}"
        );
    }
    eventually("the probe names the definition without a status", || match reconciler.readiness()? {
        (status, why)
            if status != 200 && why.contains("Mute.example.crossplane.io: ") && why.contains("status") =>
        {
            Ok(())
        }
        (status, why) => Err(format!("{status} {why}")),
    });
    world.apply(&bucket("after", &Value::Null));
    world.wait_ready("bucket", "after");
    world.kubectl(&["delete", "bucket", "before", "after", "--timeout=60s"]);
}
