//! All doors on one store with authentication, three kinds of sections, and two reconcilers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use concert_api::audit::{Audit, Sink};
use concert_api::auth::{Gate, Keys, issue_for_user};
use concert_api::inventory::{self, Door, Minter, Minting, Wanted};
use concert_api::kube::{Api, Limits, Parts};
use concert_api::rest::{self, Ids, Node};
use concert_engine::{Tasks, TokioSpawn};
use concert_model::inventory::Lease;
use concert_model::{Encoded, GroupKind, Object, Timestamp, Uid};
use concert_store::backend::memory::Memory;
use concert_store::conformance::HandClock;
use concert_store::{By, Chance, Config, Local, PageRequest, Query, Store};
use serde_json::{Value, json};

use crate::mothership::idle;
use crate::shared::{Client, Reply};

const DEFINITIONS: [&str; 2] = [
    include_str!("../../../../deploy/crds/no8s.yaml"),
    include_str!("../../../../deploy/crds/inventory.yaml"),
];
pub const BASE: &str = "/inventory/v1";
pub const OBJECTS: &str = "/apis/inventory.concert.dev/v1alpha1";
const RBAC: &str = "rbac.authorization.k8s.io";

pub struct Stage {
    pub client: Client,
    pub store: Local,
    pub clock: Arc<HandClock>,
    pub minter: Minter,
    /// The token of somebody who may do everything.
    pub admin: String,
    gate: Gate,
    keys: Keys,
    trail: Audit,
    tasks: Tasks,
    _folder: tempfile::TempDir,
    audit: PathBuf,
}

impl Reply {
    /// The one sentence of a refusal with this code.
    #[track_caller]
    pub fn detail(&self, code: u16) -> String {
        let said = self.expect(code);
        said["detail"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
    }
}

impl Stage {
    /// Without any entry: `network` has a schema, `credentials` is secret, all other sections are free.
    /// `network` writes network; `shoot` reads network and credentials and writes cluster.
    pub async fn new() -> Self {
        let stage = Self::bare().await;
        let network = json!({"schema": {"type": "object", "required": ["vnet_name"],
            "properties": {"vnet_name": {"type": "string", "maxLength": 20}}}});
        stage.put("/section-types/network", network).await.expect(201);
        let credentials = json!({"secret": true, "schema": {"type": "object",
            "required": ["kubeconfig"], "properties": {"kubeconfig": {"type": "string"}}}});
        stage.put("/section-types/credentials", credentials).await.expect(201);
        stage.put("/grants/network", json!({"write": ["network"]})).await.expect(201);
        let shoot = json!({"read": ["network", "credentials"], "write": ["cluster"]});
        stage.put("/grants/shoot", shoot).await.expect(201);
        stage
    }

    /// The same, with the entries rt-1 and rt-2.
    pub async fn with_entries() -> Self {
        let stage = Self::new().await;
        for id in ["rt-1", "rt-2"] {
            stage.post("/entries", json!({"id": id, "kind": "runtime"})).await.expect(201);
        }
        stage
    }

    pub async fn bare() -> Self {
        let clock = Arc::new(HandClock::new());
        let config = Config::new(clock.clone(), Chance::seeded(1)).inline();
        let store = Local::open(Arc::new(Memory::new()), config).unwrap();
        for definition in DEFINITIONS.iter().flat_map(|it| serde_saphyr::from_multiple::<Value>(it).unwrap())
        {
            create(&store, definition).await;
        }
        create(
            &store,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "concert-inventory"}}),
        )
        .await;
        let keys = Keys::new(b"a secret", Duration::from_secs(3600));
        let gate = Gate::guarded_with_logins(store.clone(), clock.clone(), keys.clone());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
        let audit = Audit::start(Sink::File(path.clone()), &tasks);
        let (client, door) = open(&store, &clock, &gate, &keys, &audit);
        let minter = door.minter("http://here");
        let mut stage = Self {
            client,
            store,
            clock,
            minter,
            admin: String::new(),
            gate,
            keys,
            trail: audit,
            tasks,
            _folder: folder,
            audit: path,
        };
        stage.admin = stage.token_of("root", &["system:masters"]).await;
        stage
    }

    /// The doors of another process on the same store.
    pub fn replica(&self) -> Client {
        open(&self.store, &self.clock, &self.gate, &self.keys, &self.trail).0
    }

    /// A token of somebody in these groups.
    pub async fn token_of(&self, user: &str, groups: &[&str]) -> String {
        let (chance, by) = (Chance::from_system(), By::actor("test"));
        let issued = issue_for_user(&self.store, &*self.clock, &chance, user, groups, None, &by).await;
        issued.unwrap().token
    }

    /// A token of a reconciler at work on an entry.
    pub async fn work(&self, entry: &str, reconciler: &str) -> String {
        self.minted(entry, reconciler, None).await
    }

    /// The same, under a claim of an item.
    pub async fn work_under(&self, entry: &str, reconciler: &str, item: &str, fence: u64) -> String {
        self.minted(entry, reconciler, Some(Lease { item: Uid(item.into()), fence })).await
    }

    async fn minted(&self, entry: &str, reconciler: &str, lease: Option<Lease>) -> String {
        let wanted = [Wanted { entry: entry.into(), reconciler: reconciler.into(), lease }];
        let minted = self.minter.mint(&wanted, Duration::from_secs(60)).await.unwrap();
        minted[0].clone().unwrap().token
    }

    /// Lets a user do this to resources of the inventory, of these names if there are any.
    pub async fn allow(&self, user: &str, resource: &str, verbs: &[&str], names: &[&str]) {
        self.allow_in("inventory.concert.dev", user, resource, verbs, names).await;
    }

    /// The same, of resources of a group.
    pub async fn allow_in(&self, group: &str, user: &str, resource: &str, verbs: &[&str], names: &[&str]) {
        let name = format!("{user}-{}-{}-{}", resource.replace('/', "-"), verbs.join("-"), names.join("-"));
        let rules = json!([{"apiGroups": [group], "resources": [resource], "verbs": verbs,
            "resourceNames": names}]);
        create(
            &self.store,
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
                "rules": rules}),
        )
        .await;
        create(
            &self.store,
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}]}),
        )
        .await;
    }

    /// Sends anything with a token.
    pub async fn ask(&self, token: &str, method: &str, path: &str, body: Value) -> Reply {
        self.ask_with(token, method, path, &[], body).await
    }

    pub async fn ask_with(
        &self,
        token: &str,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: Value,
    ) -> Reply {
        send(&self.client, token, method, path, more, body).await
    }

    /// Sends anything to one of several processes.
    pub async fn send(&self, client: &Client, method: &str, path: &str, body: Value) -> Reply {
        self.send_as(client, &self.admin, method, path, body).await
    }

    /// The same, with a token.
    pub async fn send_as(
        &self,
        client: &Client,
        token: &str,
        method: &str,
        path: &str,
        body: Value,
    ) -> Reply {
        send(client, token, method, path, &[], body).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask(&self.admin, "GET", path, Value::Null).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Reply {
        self.ask(&self.admin, "PUT", path, body).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.ask(&self.admin, "POST", path, body).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.ask(&self.admin, "DELETE", path, Value::Null).await
    }

    /// All objects of a kind.
    pub async fn all(&self, group: &str, kind: &str) -> Vec<Encoded> {
        let query = Query::all(GroupKind::new(group, kind));
        self.store.list(&query, &PageRequest::whole()).await.unwrap().items
    }

    /// The lines of the audit trail, which ends with this.
    pub async fn audited(&self) -> Vec<Value> {
        self.tasks.stop(Duration::from_secs(5)).await;
        let text = std::fs::read_to_string(&self.audit).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// All doors over a store.
fn open(store: &Local, clock: &Arc<HandClock>, gate: &Gate, keys: &Keys, audit: &Audit) -> (Client, Door) {
    let door = Door::new(inventory::Parts {
        store: store.clone(),
        gate: gate.clone(),
        clock: clock.clone(),
        keys: keys.clone(),
        audit: audit.clone(),
    });
    let parts = concert_api::mothership::Parts { gate: gate.clone(), control: idle() };
    let mothership = concert_api::mothership::Door::new(parts);
    let node = Node { id: "here".into(), hostname: "here".into(), pid: 1, started_at: Timestamp::UNIX_EPOCH };
    let rest = rest::Parts {
        ids: Ids::new(store.clone()),
        node,
        company: None,
        webhooks: Arc::new(()),
        annexes: vec![Arc::new(door.clone()), Arc::new(mothership)],
        admissions: vec![Arc::new(door.admit())],
    };
    let parts = Parts {
        store: store.clone(),
        gate: gate.clone(),
        clock: clock.clone(),
        chance: Chance::seeded(2),
        extensions: Arc::new(()),
        audit: audit.clone(),
        limits: Limits::default(),
    };
    (Client { api: Api::with_rest(parts, rest) }, door)
}

async fn send(
    client: &Client,
    token: &str,
    method: &str,
    path: &str,
    more: &[(&str, &str)],
    body: Value,
) -> Reply {
    let bearer = format!("Bearer {token}");
    let mut headers = vec![("content-type", "application/json")];
    if !token.is_empty() {
        headers.push(("authorization", &bearer));
    }
    headers.extend(more);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let is_whole = path.starts_with("/api") || path.starts_with("/mothership");
    let path = if is_whole { path.to_owned() } else { format!("{BASE}{path}") };
    client.send(method, &path, &headers, body).await
}

pub async fn create(store: &Local, value: Value) {
    store.create(Object::from_value(value).unwrap(), &By::actor("test")).await.unwrap();
}

/// The path of a section.
pub fn section(entry: &str, name: &str) -> String {
    format!("/entries/{entry}/sections/{name}")
}

pub fn data(data: Value) -> Value {
    json!({"data": data})
}
