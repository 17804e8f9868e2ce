//! The cluster, a namespace in it for each test, and the program under test.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use concert_testbed::Cluster;
use serde_json::{Value, json};

pub const GROUP: &str = "client.concert.dev";
/// Longest anything may take that is waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// One test's own namespace and home directory.
pub struct World {
    pub cluster: &'static Cluster,
    pub namespace: &'static str,
    home: tempfile::TempDir,
}

/// What a run of the program left.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub said: String,
}

impl Ran {
    /// It did what was asked; answers with what it printed.
    #[track_caller]
    pub fn fine(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.said);
        self.out
    }

    /// It failed with this code, and said all of these things, a hint among them; printed nothing.
    #[track_caller]
    pub fn fails(self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.said);
        for part in parts.iter().chain(&["error: ", "\nhint: "]) {
            assert!(self.said.contains(part), "{part:?} in: {}", self.said);
        }
    }
}

impl World {
    /// None where there can be no cluster, which was said on stderr. The kind Bucket is defined.
    pub fn enter(namespace: &'static str) -> Option<Self> {
        static DEFINED: OnceLock<()> = OnceLock::new();
        let cluster = Cluster::shared()?;
        DEFINED.get_or_init(|| {
            cluster
                .kubectl_with(&["apply", "-f", "-"], &definition("buckets", "Bucket", "bkt").to_string())
                .unwrap();
            let name = format!("crd/buckets.{GROUP}");
            cluster.kubectl(&["wait", "--for=condition=Established", &name, "--timeout=60s"]).unwrap();
        });
        cluster.kubectl(&["create", "namespace", namespace]).unwrap();
        Some(Self { cluster, namespace, home: tempfile::tempdir().unwrap() })
    }

    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The program, with nothing of whoever runs the tests around it, and no server named.
    pub fn bare(&self, arguments: &[&str]) -> Command {
        bare(self.home.path(), arguments)
    }

    /// The program in the namespace of the test.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare(arguments);
        command.env("KUBECONFIG", self.cluster.kubeconfig()).env("CONCERT_NAMESPACE", self.namespace);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        ran(&mut self.command(arguments), "")
    }

    /// The same, with something on standard input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        ran(&mut self.command(arguments), input)
    }

    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.cluster.kubectl(&[&["-n", self.namespace], arguments].concat()).unwrap()
    }

    /// Sets the status of a Bucket.
    pub fn report(&self, name: &str, status: &Value) {
        let patch = json!({ "status": status }).to_string();
        self.kubectl(&["patch", "bucket", name, "--subresource=status", "--type=merge", "-p", &patch]);
    }
}

pub fn bare(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_concert"));
    command.env_clear().env("HOME", home).args(arguments);
    command
}

pub fn ran(command: &mut Command, input: &str) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that does not read has its reasons.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), said: text(output.stderr) }
}

#[expect(clippy::disallowed_methods, reason = "other processes cannot be told which time it is")]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn definition(plural: &str, kind: &str, short: &str) -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "region": {"type": "string"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "shortNames": [short],
                "categories": ["things"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Region", "type": "string", "jsonPath": ".spec.region", "priority": 1}]}]}})
}

pub fn bucket(name: &str, size: i64) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Bucket", "metadata": {"name": name}, "spec": {"size": size}})
}

/// Many documents.
pub fn documents(all: &[Value]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n")
}
