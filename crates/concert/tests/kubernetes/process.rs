//! Processes under test: providers and reconcilers. They end with the value.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub use concert_testbed::workspace;
use serde_json::Value;

use crate::web;
use crate::world::{CLOUD, World, eventually};

/// A child with its log.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, with everything it says in a file of `world`.
    pub fn start(world: &World, name: &str, command: &mut Command) -> Self {
        let log = world.new_file(&format!("{name}.log"));
        let file = File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let child = command.spawn().unwrap();
        Self { child, log }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The first whole line of the log that is JSON and that `pick` finds something in.
    pub fn find<T>(&mut self, what: &str, pick: impl Fn(&Value) -> Option<T>) -> T {
        eventually(what, || {
            let log = self.log();
            let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let lines = whole.lines().filter_map(|line| serde_json::from_str(line).ok());
            let found = lines.filter_map(|line: Value| pick(&line)).next();
            if found.is_none()
                && let Ok(Some(status)) = self.child.try_wait()
            {
                panic!("{what}: the process has ended with {status}:\n{log}");
            }
            found.ok_or(log)
        })
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let end = &lines[lines.len().saturating_sub(40)..];
            eprintln!("--- the end of {}:\n{}", self.log.display(), end.join("\n"));
        }
    }
}

/// The example provider with its cloud.
pub struct Provider {
    pub process: Process,
    pub address: String,
    control: String,
}

impl Provider {
    /// Starts one with further flags.
    pub fn start(world: &World, flags: &[&str]) -> Self {
        let mut command = Command::new(concert_testbed::program("concert-provider-example").unwrap());
        command.args(["--control", "127.0.0.1:0"]).args(flags);
        if !flags.contains(&"--address") {
            command.args(["--address", "127.0.0.1:0"]);
        }
        let mut process = Process::start(world, "provider", &mut command);
        let text = |line: &Value, field: &str| line.get(field)?.as_str().map(str::to_owned);
        let (address, control) = process.find("the addresses of the provider", |line| {
            Some((text(line, "address")?, text(line, "control")?))
        });
        Self { process, address, control }
    }

    /// Asks the control port, which must agree.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, text) = web::call(&self.control, method, path, body).unwrap();
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Every thing there is.
    pub fn things(&self) -> Vec<Value> {
        self.ask("GET", "/things", &Value::Null).as_array().unwrap().clone()
    }

    /// The things that were made for an object, by its name.
    pub fn things_of(&self, object: &str) -> Vec<Value> {
        self.things().into_iter().filter(|it| it["owner"]["object"] == object).collect()
    }

    /// The truth in numbers: `created`, `live`, `doubles`.
    pub fn count(&self, what: &str) -> u64 {
        self.ask("GET", "/summary", &Value::Null)[what].as_u64().unwrap()
    }

    /// Changes a property behind the provider's back.
    pub fn drift(&self, id: &str, properties: &Value) {
        self.ask("POST", &format!("/things/{id}"), &serde_json::json!({ "properties": properties }));
    }
}

/// The kind that most tests are about. The provider serves more, and whatever is wanted and not defined
/// would keep the reconciler from being ready.
const BUCKETS: Option<(&str, &str)> = Some((CLOUD, "Bucket"));

/// The managed reconciler.
pub struct Reconciler {
    pub process: Process,
    pub probes: String,
    pub metrics: String,
}

impl Reconciler {
    /// Starts it with a configuration and further flags, and waits until it listens.
    pub fn start(world: &World, config: &Value, flags: &[&str]) -> Self {
        Self::start_as(world, &world.kubeconfig(), config, flags)
    }

    /// The same as somebody else than the administrator.
    pub fn start_as(world: &World, kubeconfig: &Path, config: &Value, flags: &[&str]) -> Self {
        let path = world.new_file("config.json");
        std::fs::write(&path, config.to_string()).unwrap();
        let mut command = program(&path, kubeconfig);
        command.args(["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"]);
        command.arg("--log-format=json").args(flags);
        if !flags.iter().any(|it| it.starts_with("--leader-election")) {
            command.arg("--leader-election=false");
        }
        let mut process = Process::start(world, "reconciler", &mut command);
        let mut listening = |what: &str| {
            process.find("the addresses of the reconciler", |line| {
                let is_it = line["message"] == "serving" && line["what"] == what;
                line["address"].as_str().filter(|_| is_it).map(str::to_owned)
            })
        };
        let (probes, metrics) = (listening("probes"), listening("metrics"));
        Self { process, probes, metrics }
    }

    /// Starts it for the Buckets of one provider.
    pub fn start_for(world: &World, provider: &Provider, flags: &[&str]) -> Self {
        Self::start(world, &config(&[("example", &provider.address, BUCKETS)]), flags)
    }

    pub fn readiness(&self) -> Result<(u16, String), String> {
        web::get(&self.probes, "/readyz")
    }

    /// Waits until `/readyz` is fine.
    pub fn wait_ready(&self) {
        eventually("the reconciler is ready", || match self.readiness()? {
            (200, _) => Ok(()),
            (status, why) => Err(format!("{status} {why}")),
        });
    }
}

/// The program with what every use of it needs.
pub fn reconciler(world: &World, config: &Path) -> Command {
    program(config, &world.kubeconfig())
}

fn program(config: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_managed-reconciler"));
    command.arg("--config").arg(config).arg("--kubeconfig").arg(kubeconfig);
    command
}

/// The name of a provider, its endpoint, and the one kind that is wanted of it, if not all are.
pub type Declared<'a> = (&'a str, &'a str, Option<(&'a str, &'a str)>);

/// A configuration file.
pub fn config(providers: &[Declared<'_>]) -> Value {
    let one = |(name, endpoint, kind): &Declared<'_>| {
        let mut provider = serde_json::json!({"name": name, "endpoint": endpoint, "useSSL": false});
        if let Some((api_version, kind)) = kind {
            provider["resourceTypes"] = serde_json::json!([{"apiVersion": api_version, "kind": kind}]);
        }
        provider
    };
    serde_json::json!({"providers": providers.iter().map(one).collect::<Vec<_>>()})
}
