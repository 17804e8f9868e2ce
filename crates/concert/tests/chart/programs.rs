//! What pods are started with is what the programs understand.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::chart::{file, items, objects_of, of_kind, renderings, with_a_database, with_a_file, workloads};

/// The program that a path in the image stands for.
fn program(path: &str) -> &'static str {
    match path {
        "/usr/local/bin/concert" => env!("CARGO_BIN_EXE_concert"),
        "/usr/local/bin/managed-reconciler" => env!("CARGO_BIN_EXE_managed-reconciler"),
        other => panic!("{other} is not in the image"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text"))
}

#[test]
fn every_flag_is_one_that_the_program_knows() {
    for objects in renderings() {
        for workload in workloads(&objects) {
            let container = &workload["spec"]["template"]["spec"]["containers"][0];
            let arguments: Vec<&str> = items(&container["args"]).iter().map(text).collect();
            let commands = arguments.iter().take_while(|it| !it.starts_with("--"));
            let mut command = Command::new(program(text(&container["command"][0])));
            let help = command.args(commands).arg("--help").output().unwrap();
            let help = String::from_utf8(help.stdout).unwrap();
            let known: BTreeSet<&str> =
                help.split(|it: char| it.is_whitespace() || it == ',' || it == '=').collect();
            for argument in arguments.iter().filter(|it| it.starts_with("--")) {
                let flag = argument.split('=').next().unwrap();
                assert!(known.contains(flag), "{flag} is not in:\n{help}");
            }
        }
    }
}

#[test]
fn every_variable_is_in_the_reference() {
    let said =
        file("docs/reference/serve.md") + &file("docs/concepts/no8s.md") + &file("docs/guides/postgres.md");
    for objects in renderings() {
        for workload in workloads(&objects) {
            for variable in items(&workload["spec"]["template"]["spec"]["containers"][0]["env"]) {
                let name = text(&variable["name"]);
                // One is for the flags of the same pod, the other for the library that reads certificates.
                let is_known = said.contains(name) || ["POD_NAME", "SSL_CERT_FILE"].contains(&name);
                assert!(is_known, "{name}");
            }
        }
    }
}

#[test]
fn the_image_has_the_programs_that_pods_start() {
    for build in [file("Dockerfile"), file("Earthfile")] {
        for program in ["concert", "managed-reconciler"] {
            assert!(build.contains(&format!("target/release/{program} ")), "{program} in {build}");
        }
    }
}

/// The file that a ConfigMap holds.
fn settings(objects: &[Value]) -> &str {
    text(&of_kind(objects, "ConfigMap")[0]["data"]["config.json"])
}

#[test]
fn what_replicas_are_told_is_accepted_by_the_program() {
    for values in [with_a_file(), with_a_database()] {
        let Some(objects) = objects_of(&values) else { return };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        std::fs::write(&path, settings(&objects)).unwrap();
        let container = &workloads(&objects)[0]["spec"]["template"]["spec"]["containers"][0];
        let mut command = Command::new(program(text(&container["command"][0])));
        command.args(["config", "check", "--config"]).arg(&path);
        let is_checked = |it: &&str| !["serve", "--config"].contains(&it.split('=').next().unwrap());
        // Kubernetes puts the variable in.
        let arguments = items(&container["args"]).iter().map(text).filter(is_checked);
        command.args(arguments.map(|it| it.replace("$(POD_NAME)", "demo-concert-0")));
        for variable in items(&container["env"]) {
            let name = text(&variable["name"]);
            if variable["valueFrom"]["secretKeyRef"].is_object() {
                let is_store = name == "CONCERT_STORE";
                command.env(
                    name,
                    if is_store { "postgres://u:p@db/d" } else { "a-long-secret-of-32-characters-and-more" },
                );
            }
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn providers_reach_the_reconciler_as_they_were_given() {
    let values = crate::chart::with_a_reconciler();
    let Some(objects) = objects_of(&values) else { return };
    let config: concert_server::managed::ControllerConfig = serde_json::from_str(settings(&objects)).unwrap();
    config.check().unwrap();
    let written: Value = serde_json::from_str(settings(&objects)).unwrap();
    assert_eq!(written["providers"], values["managedReconciler"]["providers"]);
}

/// What the chart decides itself, by a flag or by a Secret.
const DECIDED: [&str; 12] = [
    "dataDir",
    "store",
    "keyFile",
    "listen",
    "adminListen",
    "dev",
    "tlsCertFile",
    "tlsKeyFile",
    "tlsNames",
    "plugins",
    "logLevel",
    "logFormat",
];
/// The same, of replicas that share their work.
const SHARED: [&str; 3] = ["leaderElection", "advertise", "memberLease"];

#[test]
fn settings_of_the_reference_can_be_given_unless_the_chart_decides_them() {
    let schema: Value = serde_json::from_str(&file("deploy/chart/concert/values.schema.json")).unwrap();
    let taken = &schema["properties"]["serve"]["properties"]["config"]["properties"];
    let reference = file("docs/reference/serve.md");
    let rows = reference.lines().filter(|it| it.starts_with("| ")).filter_map(|it| it.split('|').nth(3));
    let fields: Vec<&str> = rows
        .flat_map(|it| it.trim().split(", "))
        .filter_map(|it| it.strip_prefix('`')?.strip_suffix('`'))
        .collect();
    assert!(fields.contains(&"pollInterval") && fields.contains(&"providers"), "{fields:?}");
    for field in fields {
        let is_decided = DECIDED.contains(&field) || SHARED.contains(&field);
        assert_ne!(is_decided, taken[field].is_object(), "{field}");
    }
}

#[test]
fn the_chart_is_where_the_documents_say() {
    assert!(Path::new("../../deploy/chart/concert/Chart.yaml").exists());
    assert!(file("docs/guides/postgres.md").contains("deploy/chart/concert"));
}
