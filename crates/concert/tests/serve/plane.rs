//! A control plane in a folder of its own, and kubectl for it. Both end with the value.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;

use concert_testbed::Network;
use serde_json::{Value, json};

use crate::wait::{Waiting, eventually};

pub struct Plane {
    child: Child,
    folder: tempfile::TempDir,
    flags: Vec<String>,
    pub address: String,
    pub admin: String,
    kubectl: PathBuf,
}

impl Plane {
    /// One for development. None where there is no kubectl, which was said.
    pub fn start() -> Option<Self> {
        Self::start_with(&["--dev"])
    }

    pub fn start_with(flags: &[&str]) -> Option<Self> {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_concert")), flags)
    }

    /// One that has no other way out than this network. Its API can be reached from there alone.
    pub fn start_in(network: &Network, flags: &[&str]) -> Option<Self> {
        let mut command = network.command();
        command.arg(env!("CARGO_BIN_EXE_concert"));
        Self::start_by(command, flags)
    }

    fn start_by(command: Command, flags: &[&str]) -> Option<Self> {
        static KUBECTL: OnceLock<Option<PathBuf>> = OnceLock::new();
        let kubectl = KUBECTL.get_or_init(|| concert_testbed::kubectl().unwrap()).clone()?;
        let folder = tempfile::tempdir().unwrap();
        let flags = flags.iter().map(|it| (*it).to_owned()).collect();
        let child = spawn(command, folder.path(), "127.0.0.1:0", &flags);
        let (address, admin) = (String::new(), String::new());
        let mut plane = Self { child, folder, flags, address, admin, kubectl };
        plane.await_addresses();
        Some(plane)
    }

    fn await_addresses(&mut self) {
        let log = self.folder.path().join("log");
        let child = &mut self.child;
        let mut find = |what: &str| {
            eventually(&format!("the address of the {what}"), || {
                let text = std::fs::read_to_string(&log).unwrap_or_default();
                let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let is_it = |line: &Value| line["message"] == "serving" && line["what"] == what;
                let found = lines.rev().find(is_it).and_then(|it| it["address"].as_str().map(str::to_owned));
                if let (None, Ok(Some(status))) = (&found, child.try_wait()) {
                    panic!("it has ended with {status}:\n{text}");
                }
                found.ok_or(text)
            })
        };
        (self.address, self.admin) = (find("api"), find("admin"));
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.data().join("kubeconfig")
    }

    /// All that it has said since it was started last.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// A path that is nobody's.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and how it ended.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().unwrap()
    }

    /// Sends it a signal, by its name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success(), "cannot send {name}");
    }

    /// What `concert` prints; it must succeed.
    pub fn concert(&self, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_concert"));
        let command = command.args(words).env("KUBECONFIG", self.kubeconfig()).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts it again where it was, with other flags.
    pub fn start_again_with(&mut self, flags: &[&str]) {
        self.flags = flags.iter().map(|it| (*it).to_owned()).collect();
        self.start_again();
    }

    /// Starts it again where it was.
    pub fn start_again(&mut self) {
        std::fs::remove_file(self.folder.path().join("log")).unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_concert"));
        self.child = spawn(command, self.folder.path(), &self.address, &self.flags);
        self.await_addresses();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(self.kubeconfig()).args(arguments);
        command.env("KUBECACHEDIR", self.folder.path().join("cache"));
        command
    }

    /// Whatever comes of it.
    pub fn run(&self, arguments: &[&str], stdin: &str) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // One that does not read everything has its reasons, and says so itself.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// What kubectl prints; it must succeed.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.kubectl_with(arguments, "")
    }

    pub fn kubectl_with(&self, arguments: &[&str], stdin: &str) -> String {
        let output = self.run(arguments, stdin);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {} failed: {said}", arguments.join(" "));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What kubectl says on stderr; it must fail.
    pub fn refused(&self, arguments: &[&str], stdin: &str) -> String {
        let output = self.run(arguments, stdin);
        assert!(!output.status.success(), "kubectl {} succeeded", arguments.join(" "));
        String::from_utf8(output.stderr).unwrap()
    }

    pub fn apply(&self, manifest: &Value) -> String {
        self.kubectl_with(&["apply", "-f", "-"], &manifest.to_string())
    }

    pub fn get(&self, resource: &str, name: &str) -> Value {
        serde_json::from_str(&self.kubectl(&["get", resource, name, "-o", "json"])).unwrap()
    }

    /// Whether it is there.
    pub fn exists(&self, resource: &str, name: &str) -> bool {
        !self.kubectl(&["get", resource, name, "-o", "name", "--ignore-not-found"]).is_empty()
    }

    /// A kubectl that waits for something to happen: `wait`, or a `delete` of what does not go at once.
    pub fn waiting(&self, arguments: &[&str]) -> Waiting {
        Waiting::start(&mut self.command(arguments))
    }

    /// Sets an object's finalizers, none with `null`.
    pub fn set_finalizers(&self, resource: &str, name: &str, finalizers: &Value) {
        let patch = json!({"metadata": {"finalizers": finalizers}}).to_string();
        self.kubectl(&["patch", resource, name, "--type=merge", "-p", &patch]);
    }

    /// Lines of a kubectl that goes on, such as `get -w`.
    pub fn follow(&self, arguments: &[&str]) -> Follower {
        let mut child = self.command(arguments).stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Follower { child, lines }
    }

    /// Defines a kind of widgets and waits for it.
    pub fn define_widgets(&self) {
        self.apply(&widgets());
        self.kubectl(&[
            "wait",
            "--for=condition=Established",
            "crd/widgets.test.concert.dev",
            "--timeout=30s",
        ]);
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("--- the end of the log:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"));
        }
    }
}

fn spawn(mut command: Command, folder: &Path, listen: &str, flags: &Vec<String>) -> Child {
    let log = File::create(folder.join("log")).unwrap();
    command.args(["serve", "--listen", listen, "--admin-listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(folder.join("data")).args(flags);
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// A kubectl that goes on.
pub struct Follower {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Follower {
    /// The next line; empty when it has ended.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads until a line has this in it.
    pub fn until(&mut self, part: &str) -> String {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "it ended before {part:?}");
            if line.contains(part) {
                return line;
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A kind with a schema, defaults, columns and a list with keys.
fn widgets() -> Value {
    let part = json!({"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}});
    let spec = json!({"type": "object", "description": "What is wanted of the widget.", "properties": {
        "size": {"type": "integer", "minimum": 1, "description": "How large it is."},
        "colour": {"type": "string", "default": "red", "enum": ["red", "green", "blue"]},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "maxItems": 10, "items": part}},
        "x-kubernetes-validations": [{"rule": "!has(self.size) || self.size < 1000", "message": "too large"}]});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.test.concert.dev"},
        "spec": {"group": "test.concert.dev", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList",
                "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}}]}})
}

pub fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.concert.dev/v1", "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}
