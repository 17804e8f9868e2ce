//! The chart, and what it makes of values.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

/// A file of this repository, as text.
pub fn file(path: &str) -> String {
    std::fs::read_to_string(concert_testbed::workspace().join(path)).unwrap()
}

fn renderer() -> Option<&'static PathBuf> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(|| concert_testbed::helm().unwrap()).as_ref()
}

/// The YAML that the chart makes of values, or why it does not. None where nothing can render it, which was
/// said.
pub fn text_of(values: &Value) -> Option<Result<String, String>> {
    let mut command = Command::new(renderer()?);
    command.arg(concert_testbed::workspace().join("deploy/chart/concert")).args(["demo", "default"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(values.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Some(if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) })
}

/// The objects that the chart makes of values.
pub fn objects_of(values: &Value) -> Option<Vec<Value>> {
    let text = text_of(values)?.unwrap_or_else(|error| panic!("{values} is refused: {error}"));
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    Some(documents.into_iter().filter(|it| !it.is_null()).collect())
}

/// One replica with a volume.
pub fn with_a_file() -> Value {
    json!({"serve": {"enabled": true}})
}

/// Three replicas with everything that can be asked for.
pub fn with_a_database() -> Value {
    json!({"serve": {
        "enabled": true, "replicas": 3,
        "store": {"secretName": "database", "authoritySecretName": "database-authority"},
        "keys": {"secretName": "keys"}, "jwt": {"secretName": "logins"},
        "tls": {"secretName": "certificate"}, "admin": {"secretName": "administrator"},
        "secrets": ["providers"], "leaderElection": true, "memberLease": "20s",
        "config": {"certDir": "/etc/concert/secrets/providers", "pollInterval": "30s", "jwtExpiryHours": "8",
            "providers": [{"name": "example", "endpoint": "provider-example:50051"}]},
        "nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}],
        "service": {"type": "LoadBalancer", "port": 8443, "annotations": {"a": "b"}},
    }})
}

/// The reconciler with everything that can be asked for, under another name.
pub fn with_a_reconciler() -> Value {
    json!({"fullnameOverride": "other", "image": {"tag": "1.2.3", "pullSecrets": ["registry"]},
    "managedReconciler": {
        "enabled": true, "certificates": {"secretName": "certificates"},
        "providers": [{"name": "example", "endpoint": "provider-example:50051",
            "resourceTypes": [{"apiVersion": "example.crossplane.io/v1alpha1", "kind": "ExampleResource"}]}],
        "pollInterval": "30s", "maxReconcileRate": 3, "reconcileTimeout": "1m30s",
        "rbac": {"claims": true, "kinds": [{"apiGroups": ["example.crossplane.io", "cloud.concert.dev"], "resources": ["*"]}]},
    }})
}

/// Both, with as little as possible.
pub fn with_both() -> Value {
    json!({"serve": {"enabled": true, "persistence": {"existingClaim": "there-already"}},
        "managedReconciler": {"enabled": true, "replicas": 1, "leaderElection": {"enabled": false}}})
}

/// All of them, each with what it makes.
pub fn renderings() -> Vec<Vec<Value>> {
    [with_a_file(), with_a_database(), with_a_reconciler(), with_both()]
        .iter()
        .filter_map(objects_of)
        .collect()
}

pub fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|it| it["kind"] == kind).collect()
}

/// Whatever makes pods.
pub fn workloads(objects: &[Value]) -> Vec<&Value> {
    objects.iter().filter(|it| it["spec"]["template"]["spec"].is_object()).collect()
}

/// The elements of a list; of what is not there, none.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}
