//! `concert-provider-test`, the program, against this provider, the program.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const SAMPLES: &str = "
apiVersion: cloud.concert.dev/v1alpha1
kind: Bucket
metadata: {name: checked, namespace: default}
spec: {forProvider: {region: eu, size: 1}}
---
apiVersion: cloud.concert.dev/v1alpha1
kind: Bucket
metadata: {name: checked, namespace: default}
spec: {forProvider: {region: eu, size: 2}}
";

const CONFIG: &str = "
apiVersion: cloud.concert.dev/v1alpha1
kind: ClusterProviderConfig
metadata: {name: default}
spec: {credentials: {source: Secret}}
";

/// The provider, which ends with the value.
struct Provider(Child, String);

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn provider() -> Provider {
    let mut command = Command::new(env!("CARGO_BIN_EXE_concert-provider-example"));
    command.args(["--address", "127.0.0.1:0", "--creation-grace", "1s"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    Provider(child, said["address"].as_str().unwrap().to_owned())
}

fn check(program: &Path, endpoint: &str, arguments: &[&str]) -> (Output, Value) {
    let mut command = Command::new(program);
    let output = command.arg(endpoint).args(["-o", "json"]).args(arguments).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output, report)
}

/// The names of the checks for Buckets that went so.
fn went(report: &Value, verdict: &str) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap().iter();
    let is_it =
        |it: &&Value| it["verdict"] == verdict && it["kind"].as_str().unwrap().ends_with("Kind=Bucket");
    checks.filter(is_it).map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_contract_holds_in_both_protocols_and_what_cannot_be_tried_is_said() {
    let (program, provider) = (concert_testbed::program("concert-provider-test").unwrap(), provider());
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (samples, config, key) =
        (write("samples.yaml", SAMPLES), write("config.yaml", CONFIG), write("key", "good"));
    let account = ["--config-file", &config, "--credentials", &key];

    let (output, report) = check(&program, &provider.1, &[&["-f", &samples][..], &account].concat());
    assert!(output.status.success(), "{report}");
    let passed = went(&report, "pass");
    for name in ["validate", "create-twice", "plan-is-the-diff", "update-was-applied", "delete-missing"] {
        assert!(passed.iter().any(|it| it == name), "{name}: {report}");
    }
    assert_eq!(went(&report, "skip"), [""; 0]);

    let older = ["-f", &samples, "--protocol", "v1alpha1"];
    let (output, report) = check(&program, &provider.1, &older);
    assert!(output.status.success(), "{report}");
    assert!(went(&report, "skip").contains(&"plan-update".to_owned()), "{report}");

    // Nobody to speak to is a failure, and credentials without a configuration are a mistake.
    let (output, report) = check(&program, "127.0.0.1:1", &["--timeout", "5"]);
    assert!(!output.status.success() && report["ok"] == false, "{report}");
    assert_eq!(check(&program, &provider.1, &["--credentials", &key]).0.status.code(), Some(2));
}
