//! Everything together: control plane, reconcilers, and what they work on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::plane::Plane;
use crate::process::Process;
use crate::programs;
use crate::wait::eventually;
use crate::world::{Cloud, World};

/// How the control plane is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One process, one folder.
    Together,
    /// The inventory and the mothership each with their own.
    Apart,
}

/// All reconcilers, those first that come last: no order is told to anybody.
pub const ALL: [&str; 5] = ["connectivity-proxy", "component", "kubeconfig", "shoot", "network"];

pub struct Fleet {
    pub cloud: Cloud,
    pub gardener: Process,
    pub mothership: Plane,
    inventory: Option<Plane>,
    reconcilers: BTreeMap<&'static str, Process>,
    /// Between which parts of their lifetime kubeconfigs are rotated.
    rotation: (f64, f64),
    token_file: PathBuf,
    authority_file: PathBuf,
    /// Last, for the others show the ends of their logs, which are in its folder.
    pub world: World,
}

impl Fleet {
    /// None where there can be none, which was said.
    pub fn start(layout: Layout) -> Option<Self> {
        Self::start_rotating(layout, (0.6, 0.9))
    }

    pub fn start_rotating(layout: Layout, rotation: (f64, f64)) -> Option<Self> {
        let world = World::enter()?;
        let folder = world.folder.clone();
        let inventory = (layout == Layout::Apart)
            .then(|| Plane::start(&folder, "inventory", &["--only".into(), "inventory".into()]));
        let flags = inventory.as_ref().map(|it| apart(&folder, it)).unwrap_or_default();
        let mothership = Plane::start(&folder, "mothership", &flags);
        let (token_file, authority_file) = (folder.join("token"), folder.join("authorities.pem"));
        let authorities = inventory.as_ref().map(Plane::authority).unwrap_or_default();
        std::fs::write(&authority_file, authorities + &mothership.authority()).unwrap();
        let mut gardener = Process::start(&folder, "gardener", &mut world.gardener());
        gardener
            .find("the garden is tended", 0, |line| (line["message"] == "a garden is tended").then_some(()));
        let cloud = world.cloud();
        let reconcilers = BTreeMap::new();
        let mut fleet = Self {
            world,
            cloud,
            gardener,
            mothership,
            inventory,
            reconcilers,
            rotation,
            token_file,
            authority_file,
        };
        fleet.prepare();
        Some(fleet)
    }

    /// The same with all reconcilers.
    pub fn start_all(layout: Layout) -> Option<Self> {
        let mut fleet = Self::start(layout)?;
        ALL.into_iter().for_each(|name| fleet.run(name));
        Some(fleet)
    }

    /// Says which sections are secret and who may read and write what, and lets the reconcilers in.
    fn prepare(&mut self) {
        let manifests = programs::workspace().join("examples/fleet/manifests");
        let inventory = manifests.join("inventory.yaml");
        self.inventory().kubectl(&["apply", "-f", inventory.to_str().unwrap()]);
        let access = manifests.join("access.yaml");
        self.mothership.kubectl(&["apply", "-f", access.to_str().unwrap()]);
        let token = self.mothership.kubectl(&["create", "token", "reconcilers", "--duration", "2h"]);
        std::fs::write(&self.token_file, token.trim()).unwrap();
    }

    /// What the reconcilers identify with to the mothership.
    pub fn token(&self) -> String {
        std::fs::read_to_string(&self.token_file).unwrap()
    }

    /// The plane that has the inventory.
    pub fn inventory(&self) -> &Plane {
        self.inventory.as_ref().unwrap_or(&self.mothership)
    }

    pub fn planes(&self) -> Vec<&Plane> {
        std::iter::once(&self.mothership).chain(&self.inventory).collect()
    }

    /// Starts a reconciler.
    pub fn run(&mut self, name: &'static str) {
        let mut command = self.command(name);
        match self.reconcilers.get_mut(name) {
            Some(process) => process.start_again(&mut command),
            None => {
                let process = Process::start(&self.world.folder, name, &mut command);
                self.reconcilers.insert(name, process);
            }
        }
    }

    fn command(&self, name: &str) -> Command {
        if name == "network" {
            let mut command = Command::new(programs::python().expect("the world has one"));
            command.arg(programs::workspace().join("examples/fleet/network/network.py"));
            command.env("PYTHONPATH", programs::workspace().join("sdk/python/src"));
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            command.env("CONCERT_URL", self.mothership.url()).env("CONCERT_CA", &self.authority_file);
            command.env("CONCERT_TOKEN_FILE", &self.token_file).env("CLOUD_URL", self.cloud.url());
            command.env("CONCERT_LEASE_SECONDS", "6");
            return command;
        }
        let mut command = Command::new(programs::fleet());
        command.arg(name).args(["--server", &self.mothership.url(), "--lease", "6s"]);
        command.arg("--token-file").arg(&self.token_file).arg("--authority").arg(&self.authority_file);
        if ["shoot", "kubeconfig"].contains(&name) {
            command.args(["--poll", "300ms", "--garden"]).arg(self.world.garden.kubeconfig());
        }
        if name == "kubeconfig" {
            let (from, until) = self.rotation;
            command.args(["--lifetime", "10m", "--rotate-from", &from.to_string()]);
            command.args(["--rotate-until", &until.to_string()]);
        }
        command
    }

    pub fn reconciler(&mut self, name: &str) -> &mut Process {
        self.reconcilers.get_mut(name).expect("it was started")
    }

    /// SIGKILL of anything by its name, and another life for it.
    pub fn crash(&mut self, name: &'static str) {
        match name {
            "mothership" => {
                self.mothership.kill();
                self.mothership.start_again();
            }
            "inventory" => {
                let Some(inventory) = &mut self.inventory else { return };
                inventory.kill();
                inventory.start_again();
            }
            "gardener" => {
                self.gardener.kill();
                self.gardener.start_again(&mut self.world.gardener());
            }
            "cloud" => {
                self.cloud.process.kill();
                self.cloud.start_again();
            }
            "garden" => self.world.garden.restart_api_server().unwrap(),
            "target" => self.world.target.restart_api_server().unwrap(),
            name => {
                self.reconciler(name).kill();
                self.run(name);
            }
        }
    }

    /// Every log there is, by the name of who wrote it.
    pub fn logs(&self) -> BTreeMap<String, String> {
        let mut logs: BTreeMap<String, String> =
            self.reconcilers.iter().map(|(name, it)| ((*name).to_owned(), it.log())).collect();
        logs.insert("mothership".into(), self.mothership.log());
        logs.extend(self.inventory.as_ref().map(|it| ("inventory".into(), it.log())));
        logs.insert("gardener".into(), self.gardener.log());
        logs
    }

    // Entries.

    pub fn create(&self, id: &str, kind: &str, sections: &Value) {
        let body = json!({"id": id, "kind": kind, "sections": sections});
        self.inventory().web.good("POST", "/inventory/v1/entries", &body);
    }

    pub fn entry(&self, id: &str) -> Value {
        self.inventory().web.get(&format!("/inventory/v1/entries/{id}"))
    }

    pub fn section(&self, id: &str, section: &str) -> Value {
        self.inventory().web.get(&format!("/inventory/v1/entries/{id}/sections/{section}"))
    }

    pub fn write(&self, id: &str, section: &str, data: &Value) -> Value {
        let path = format!("/inventory/v1/entries/{id}/sections/{section}");
        self.inventory().web.good("PUT", &path, &json!({ "data": data }))
    }

    /// Waits until a section is as `is_so` wants it, and answers with the whole.
    pub fn wait_section(&self, id: &str, section: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/inventory/v1/entries/{id}/sections/{section}");
        let pick = |it: &Value| is_so(&it["data"]).then(|| it.clone());
        self.inventory().wait_for(&format!("section {section} of {id}"), &path, pick)
    }

    /// What the mothership says of one reconciler of an entry, or null.
    pub fn item(&self, id: &str, reconciler: &str) -> Value {
        let path = format!("/apis/mothership.concert.dev/v1alpha1/items/{id}.{reconciler}");
        match self.mothership.web.try_ask("GET", &path, &Value::Null) {
            Ok((200, item)) => item,
            _ => Value::Null,
        }
    }

    /// Waits until a reconciler has settled an entry so, and answers with its item.
    pub fn wait_item(&self, id: &str, reconciler: &str, state: &str) -> Value {
        eventually(&format!("{reconciler} of {id} is {state}"), || {
            let item = self.item(id, reconciler);
            if item["status"]["state"] == state { Ok(item) } else { Err(item.to_string()) }
        })
    }

    /// Asks for a run of one reconciler, now.
    pub fn ask_for_run(&self, id: &str, reconciler: &str) {
        let path = format!("/mothership/v1/entries/{id}/{reconciler}/run");
        self.mothership.web.good("POST", &path, &json!({}));
    }

    /// Whether the entry as a whole is ready, as far as anybody says.
    pub fn is_ready(&self, id: &str) -> bool {
        let path = format!("/apis/inventory.concert.dev/v1alpha1/clusters/{id}");
        let answer = self.inventory().web.try_ask("GET", &path, &Value::Null);
        let conditions = answer.map(|(_, it)| it["status"]["conditions"].clone()).unwrap_or_default();
        let is_true = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
        conditions.as_array().is_some_and(|all| all.iter().any(is_true))
    }

    /// Waits until the entry as a whole is ready.
    pub fn wait_ready(&self, id: &str) {
        let path = format!("/apis/inventory.concert.dev/v1alpha1/clusters/{id}");
        self.inventory().wait_for(&format!("{id} is ready"), &path, |cluster| {
            let all = cluster["status"]["conditions"].as_array()?;
            all.iter().find(|it| it["type"] == "Ready" && it["status"] == "True").map(drop)
        });
    }

    /// How often a reconciler has finished a run of an entry.
    pub fn runs(&self, reconciler: &str, id: &str) -> usize {
        let log = self.reconcilers[reconciler].log();
        let (json, text) = (format!("\"entry\":\"{id}\""), format!(" {id}: "));
        log.lines().filter(|line| line.contains(&json) || line.contains(&text)).count()
    }
}

/// The flags of a mothership whose inventory is elsewhere.
fn apart(folder: &std::path::Path, inventory: &Plane) -> Vec<String> {
    let (token, authority) = (folder.join("inventory-token"), folder.join("inventory-ca.pem"));
    std::fs::write(&token, inventory.account_in_role("mothership", "system:mothership")).unwrap();
    inventory.show_secrets("mothership", "concert-inventory");
    std::fs::write(&authority, inventory.authority()).unwrap();
    let text = |it: &std::path::Path| it.to_str().unwrap().to_owned();
    let only = ["--only".to_owned(), "mothership".to_owned(), "--inventory".to_owned(), inventory.url()];
    let way =
        ["--inventory-token-file".to_owned(), text(&token), "--inventory-ca".to_owned(), text(&authority)];
    only.into_iter().chain(way).collect()
}
