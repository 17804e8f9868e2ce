//! Managed resources on a control plane of our own.

use std::process::{Child, Command, Stdio};

pub use concert_testbed::workspace;
use serde_json::{Value, json};

use crate::plane::Plane;
use crate::wait::eventually;

/// A provider with a simulated cloud, its address and that of its controls.
pub struct Provider(Child, pub String, pub String);

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn provider(plane: &Plane) -> Provider {
    provider_with(plane, &[])
}

/// The same with further flags.
pub fn provider_with(plane: &Plane, flags: &[&str]) -> Provider {
    let log = plane.file("provider.log");
    let mut command = Command::new(concert_testbed::program("concert-provider-example").unwrap());
    command.args(["--address", "127.0.0.1:0", "--control", "127.0.0.1:0"]).args(flags);
    let file = std::fs::File::create(&log).unwrap();
    let child = command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let said = eventually("the address of the provider", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines().find_map(|line| serde_json::from_str::<Value>(line).ok()).ok_or(text)
    });
    let address = |field: &str| said[field].as_str().unwrap_or_default().to_owned();
    Provider(child, address("address"), address("control"))
}

pub fn bucket(name: &str) -> Value {
    json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "Bucket",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"forProvider": {"region": "eu", "size": 1}}})
}

pub fn account() -> Value {
    json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "ClusterProviderConfig",
        "metadata": {"name": "default"}, "spec": {"credentials": {"source": "None"}}})
}

#[test]
fn a_provider_object_makes_buckets_real_and_takes_them_away() {
    let Some(plane) = Plane::start() else { return };
    let provider = provider(&plane);
    let crds = workspace().join("providers/example/crds");
    plane.kubectl(&["apply", "-f", crds.to_str().unwrap()]);
    plane.apply(&account());
    plane.apply(&bucket("a"));
    plane.apply(
        &json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider", "metadata": {"name": "cloud"},
        "spec": {"endpoint": provider.1}}),
    );
    plane.kubectl(&["wait", "--for=condition=Ready", "bucket/a", "--timeout=60s"]);
    plane.kubectl(&["delete", "bucket", "a", "--timeout=60s"]);
}

#[test]
fn managed_reconciler_works_on_it_as_on_kubernetes() {
    let Some(plane) = Plane::start_with(&[]) else { return };
    let provider = provider(&plane);
    let crds = workspace().join("providers/example/crds");
    plane.kubectl(&["apply", "-f", crds.to_str().unwrap()]);
    plane.apply(&account());
    let mut command = Command::new(env!("CARGO_BIN_EXE_managed-reconciler"));
    command.args([
        "--provider-endpoint",
        &provider.1,
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ]);
    command.env("KUBECONFIG", plane.kubeconfig());
    let log = std::fs::File::create(plane.file("reconciler.log")).unwrap();
    let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    let _reconciler = Provider(child, String::new(), String::new());
    plane.apply(&bucket("a"));
    plane.kubectl(&["wait", "--for=condition=Ready", "bucket/a", "--timeout=60s"]);
    plane.kubectl(&["patch", "bucket", "a", "--type=merge", "-p", r#"{"spec":{"forProvider":{"size":3}}}"#]);
    plane.kubectl(&["wait", "--for=jsonpath={.status.atProvider.size}=3", "bucket/a", "--timeout=60s"]);
    plane.kubectl(&["delete", "bucket", "a", "--timeout=60s"]);
}
