//! Replicas on one database, and a cloud for them.

use std::sync::Arc;

use concert_store::backend::postgres::{Address, Options};
use concert_store::seal::Keyring;
use concert_store::{Chance, Config, Local, SystemClock};
use concert_testbed::{Network, Postgres};
use serde_json::{Value, json};

use crate::managed::{Provider, account, bucket, provider, workspace};
use crate::plane::Plane;
use crate::wait::eventually;
use crate::wire::call;

/// Short, so that tests need not wait long for a takeover.
const LEASE: &str = "3s";
const NODES: &str = "/api/v1/cluster/nodes";

/// Replicas, and the folder with their keys.
pub struct Replicas {
    pub planes: Vec<Plane>,
    flags: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Replicas {
    pub fn start(count: usize, more: &[&str]) -> Option<Self> {
        Self::start_on(Postgres::shared()?, count, more)
    }

    /// On a server of one's own.
    pub fn start_on(server: &Postgres, count: usize, more: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys").to_str().unwrap().to_owned();
        let url = server.fresh_url();
        let flags = ["--dev", "--store", &url, "--key-file", &keys, "--member-lease", LEASE];
        let flags: Vec<String> = flags.iter().chain(more).map(ToString::to_string).collect();
        let mut replicas = Self { planes: Vec::new(), flags, _folder: folder };
        for _ in 0..count {
            replicas.join()?;
        }
        Some(replicas)
    }

    pub fn join(&mut self) -> Option<()> {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.planes.push(Plane::start_with(&flags)?);
        Some(())
    }

    /// One more, which has no other way to the database than this network.
    pub fn join_in(&mut self, network: &Network, server: &Postgres) -> Option<()> {
        let way = network.forward(server.port()).unwrap();
        let moved = |flag: &String| flag.replace(&format!("127.0.0.1:{}", server.port()), &way);
        let mut flags: Vec<String> = self.flags.iter().map(moved).collect();
        let address = flags.iter_mut().find(|it| it.contains(&way)).unwrap();
        // It is not on the same machine, as far as addresses tell.
        address.push_str("&sslmode=disable");
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.planes.push(Plane::start_in(network, &flags)?);
        Some(())
    }

    pub fn first(&self) -> &Plane {
        &self.planes[0]
    }

    /// What all of them stand on, as one more process has it.
    pub fn store(&self) -> Local {
        let said = |flag: &str| {
            let place = self.flags.iter().position(|it| it == flag).unwrap();
            self.flags[place + 1].as_str()
        };
        let (clock, chance) = (Arc::new(SystemClock::new()), Chance::from_system());
        let options = Options::new(clock.clone(), chance.fork());
        let address = Address::parse(said("--store")).unwrap();
        let backend = concert_store::backend::Postgres::open(&address, options).unwrap();
        let keyring = Keyring::read_from(said("--key-file")).unwrap();
        Local::open(Arc::new(backend), Config::new(clock, chance).sealed(keyring)).unwrap()
    }

    /// Waits until the first of them sees so many that live and have everything between them. Returns how
    /// much each has.
    pub fn settle(&self, count: usize) -> Vec<u64> {
        eventually("the work is shared", || {
            let nodes = nodes(self.first());
            let live = nodes.iter().filter(|it| it["status"] == "Ready" && it["is_leaving"] == false);
            let shares: Vec<u64> = live.filter_map(|it| it["shares"].as_u64()).collect();
            let max = nodes.first().and_then(|it| it["shares_max"].as_u64()).unwrap_or_default();
            let is_one_enough = self.flags.iter().any(|it| it == "--leader-election");
            // Whoever has just come has nothing before others have given it something, and they do so one
            // by one. Of 128 a third is 43, give or take 5: none has less than this when all is dealt.
            let is_dealt = is_one_enough || shares.iter().all(|it| *it > 15);
            let is_settled =
                shares.len() == count && shares.iter().sum::<u64>() == max && is_dealt && max > 0;
            if is_settled { Ok(shares) } else { Err(format!("{nodes:?}")) }
        })
    }

    /// Makes buckets through one of them, and waits until all are ready.
    pub fn make(&self, names: &[String]) {
        let items: Vec<Value> = names.iter().map(|name| bucket(name)).collect();
        self.first().apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}));
        self.await_ready(names);
    }

    pub fn await_ready(&self, names: &[String]) {
        eventually("all are ready", || {
            let list: Value =
                serde_json::from_str(&self.first().kubectl(&["get", "buckets", "-o", "json"])).unwrap();
            let is_ready = |name: &str| {
                let found = list["items"].as_array().into_iter().flatten();
                let mut found = found.filter(|it| it["metadata"]["name"] == *name);
                found.any(|it| {
                    let conditions = it["status"]["conditions"].as_array().into_iter().flatten();
                    conditions.filter(|it| it["type"] == "Ready").any(|it| it["status"] == "True")
                })
            };
            let missing: Vec<&String> = names.iter().filter(|name| !is_ready(name)).collect();
            if missing.is_empty() {
                Ok(())
            } else {
                Err(format!("{} are not, such as {:?}", missing.len(), missing[0]))
            }
        });
    }
}

pub fn nodes(plane: &Plane) -> Vec<Value> {
    let answer = call(&plane.address, "GET", NODES, "").map(|(_, text)| text).unwrap_or_default();
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    answer["nodes"].as_array().cloned().unwrap_or_default()
}

pub fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}-{n:03}")).collect()
}

/// What the cloud knows of what was made in it.
pub fn truth(provider: &Provider) -> Value {
    let (_, text) = call(&provider.2, "GET", "/truth", "").unwrap();
    serde_json::from_str(&text).unwrap()
}

pub fn open_cloud(replicas: &Replicas) -> Provider {
    let provider = provider(replicas.first());
    declare_cloud(replicas, &json!({"endpoint": provider.1}));
    provider
}

/// Has all of them work with the cloud at an endpoint, as the `spec` of a Provider says.
pub fn declare_cloud(replicas: &Replicas, spec: &Value) {
    let plane = replicas.first();
    plane.kubectl(&["apply", "-f", workspace().join("providers/example/crds").to_str().unwrap()]);
    plane.apply(&account());
    plane.apply(&json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider",
        "metadata": {"name": "cloud"}, "spec": spec}));
    plane.kubectl(&["wait", "--for=condition=Ready", "providers.concert.dev/cloud", "--timeout=60s"]);
}
