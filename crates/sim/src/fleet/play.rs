//! A fleet as the subject of a life.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_controllers::mothership::{self, Parts, Running};
use concert_engine::Authority;
use concert_engine::leader::Duty;
use concert_engine::workers::Board;
use concert_model::inventory::names;
use concert_model::{GroupKind, Object, Revision};
use concert_store::backend::Memory;
use concert_store::{By, Chance, Config, Local, Store};
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use super::Bug;
use super::check::{check, check_past};
use super::inventory::Inventory;
use super::run::{LEASE_SECONDS, RECONCILERS, Shared};
use super::stores::Crooked;
use super::world::World;
use crate::executor::Group;
use crate::faults::Remote;
use crate::play::{Actor, Done, Play, Stage, Wish};

const ENTRIES: [&str; 4] = ["rt-a", "rt-b", "rt-c", "rt-d"];
/// Hosts of each reconciler.
const HOSTS: usize = 2;
/// The hosts: they live as long as the play, whatever processes do.
const HOST_GROUP: Group = Group(1_000_000);
/// How often what is ready is looked at in lives where watches lose events, and in all others.
const RESYNC_LOSSY: u64 = 60;
const RESYNC: u64 = 30 * 24 * 60 * 60;
/// How often watches start over in lives where they lose events.
const RELIST: Duration = Duration::from_secs(120);

/// Entries, their sections, and three reconcilers, perhaps with a planted bug.
pub struct FleetPlay {
    shared: Arc<Shared>,
    stage_chance: Chance,
    /// The store of the inventory, in lives where it is not that of the mothership.
    elsewhere: Option<Local>,
}

impl FleetPlay {
    /// On this stage.
    pub fn new(stage: &Stage, bug: Option<Bug>) -> Self {
        let shared = Arc::new(Shared {
            executor: stage.executor.clone(),
            chance: stage.chance.fork(),
            weather: stage.weather.clone(),
            bug,
            // Not the parity of the seed itself: that says whether watches lose events.
            has_watches: (stage.seed / 2).is_multiple_of(2),
            world: Mutex::default(),
            office: Mutex::default(),
            inventory: Mutex::default(),
            claims: Mutex::default(),
        });
        for reconciler in RECONCILERS {
            for number in 0..HOSTS {
                let host = shared.clone().host(reconciler, format!("{reconciler}-{number}"));
                stage.executor.spawn(HOST_GROUP, Box::pin(host));
            }
        }
        let elsewhere = stage.seed.is_multiple_of(3).then(|| elsewhere(stage));
        Self { shared, stage_chance: stage.chance.fork(), elsewhere }
    }

    fn worker(&self, reconciler: &str) -> Value {
        let watches = match reconciler {
            "network" => json!([]),
            _ if !self.shared.has_watches => json!([]),
            "shoot" => json!([{"section": "network", "path": "/vnet_name"}]),
            _ => json!([{"section": "cluster"}]),
        };
        let resync = if self.shared.weather.is_lossy() { RESYNC_LOSSY } else { RESYNC };
        json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Worker", "metadata": {"name": reconciler},
            "spec": {"handles": [{"entryKind": "runtime"}], "watches": watches,
                "leaseSeconds": LEASE_SECONDS, "resyncSeconds": resync}})
    }
}

impl Play for FleetPlay {
    /// All kinds in any case, as every process has them, wherever their objects are.
    fn definitions(&self) -> Vec<Value> {
        let mut all = documents(include_str!("../../../../deploy/crds/no8s.yaml"));
        all.extend(inventory_objects());
        all.extend(RECONCILERS.iter().map(|it| self.worker(it)));
        all
    }

    fn kinds(&self) -> Vec<GroupKind> {
        vec![names::entry_kind(), names::section_kind(), names::item_kind()]
    }

    fn duty(&self, actor: Actor) -> Arc<dyn Duty> {
        let remote = match &self.elsewhere {
            None => actor.remote.clone(),
            Some(store) => {
                let (executor, weather) = (self.shared.executor.clone(), self.shared.weather.clone());
                Arc::new(Remote::new(store.clone(), executor, actor.chance.fork(), weather))
            }
        };
        let inventory = Inventory::open(remote.clone(), actor.clock.clone(), actor.chance.fork());
        let place = &self.shared.inventory;
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(inventory));
        Arc::new(Leading { actor, inventory: remote, shared: self.shared.clone(), running: Mutex::default() })
    }

    fn wish(&self) -> Wish {
        let chance = &self.stage_chance;
        let id = ENTRIES[chance.below(ENTRIES.len() as u64) as usize];
        if chance.is_hit(0.25) {
            return Wish::Gone(names::entry_key(id));
        }
        let mut object = Object::new(&names::versioned(&names::entry_kind()), "", id);
        object.set("spec", json!({"kind": "runtime", "tenant": format!("t{}", chance.below(50))}));
        Wish::There(object)
    }

    fn done(&self) -> Done {
        let world = self.shared.world();
        let World { creates, deletes, effects, fenced, runs, .. } = *world;
        Done { creates, deletes, effects, fenced, runs }
    }

    fn runs_max(&self, quiet: Duration) -> f64 {
        let items = (ENTRIES.len() * RECONCILERS.len()) as f64;
        let looks = quiet.as_secs_f64() / (RESYNC_LOSSY as f64 * 0.9) + 2.0;
        if self.shared.weather.is_lossy() { items * looks } else { items }
    }

    fn check(&self, objects: &[Object]) -> Vec<String> {
        check(&self.shared.world(), objects)
    }

    fn check_history(&self, object: &Object, past: &[Object]) -> Vec<String> {
        check_past(object, past)
    }

    fn store_of(&self, kind: &GroupKind) -> Option<Local> {
        let is_theirs = *kind == names::entry_kind() || *kind == names::section_kind();
        self.elsewhere.clone().filter(|_| is_theirs)
    }

    fn newest_elsewhere(&self) -> Revision {
        let Some(store) = &self.elsewhere else { return Revision(0) };
        let newest = store.newest().now_or_never().expect("an inline store never waits");
        newest.expect("the store can be read")
    }

    fn violations(&self) -> Vec<String> {
        self.shared.world().violations.clone()
    }
}

/// The mothership of one process, while it leads.
struct Leading {
    actor: Actor,
    /// The way to entries and sections: the actor's own, unless they are elsewhere.
    inventory: Arc<Remote>,
    shared: Arc<Shared>,
    running: Mutex<Option<(Running, Board)>>,
}

impl Leading {
    fn seen(&self, remote: &Arc<Remote>) -> Arc<dyn Store> {
        let remote: Arc<dyn Store> = remote.clone();
        match self.shared.bug {
            Some(bug @ (Bug::LosesChanges | Bug::NoFence)) => Arc::new(Crooked { inner: remote, bug }),
            _ => remote,
        }
    }
}

#[async_trait]
impl Duty for Leading {
    fn begin(&self, authority: Authority) {
        let Authority::Seat(fence) = authority else { return };
        let actor = &self.actor;
        let (store, inventory) = (self.seen(&actor.remote), self.seen(&self.inventory));
        let board = Board::new(actor.clock.clone());
        let relist = if self.shared.weather.is_lossy() { RELIST } else { mothership::RELIST };
        let running = mothership::start(Parts {
            engine: actor.engine.over(store.clone()),
            fleet: actor.engine.over(inventory.clone()),
            store,
            inventory,
            work: actor.remote.clone(),
            board: board.clone(),
            clock: actor.clock.clone(),
            chance: actor.chance.fork(),
            tasks: actor.tasks.clone(),
            fence: Some(fence),
            reach: None,
            relist,
        });
        let Ok(running) = running else { return };
        *self.shared.office.lock().unwrap_or_else(PoisonError::into_inner) = Some(board.clone());
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some((running, board));
    }

    async fn end(&self, is_lost: bool) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((running, board)) = running {
            board.close();
            running.stop(is_lost).await;
        }
    }
}

/// Makes a store of its own for the inventory, with everything in it that an inventory has.
fn elsewhere(stage: &Stage) -> Local {
    let config = Config::new(Arc::new(stage.executor.clone()), stage.chance.fork()).inline();
    let store = Local::open(Arc::new(Memory::new()), config).expect("an empty store can be opened");
    for object in inventory_objects() {
        let object = Object::from_value(object).expect("the definition is an object");
        let made = store.create(object, &By::actor("user")).now_or_never();
        made.expect("an inline store never waits").expect("nothing is there yet");
    }
    store
}

/// The shipped kinds of the inventory, and what each reconciler may do in it.
fn inventory_objects() -> Vec<Value> {
    let kinds = documents(include_str!("../../../../deploy/crds/inventory.yaml"));
    let grants = [
        ("network", json!({"read": [], "write": ["network"]})),
        ("shoot", json!({"read": ["network"], "write": ["cluster"]})),
        ("component", json!({"read": ["cluster"], "write": []})),
    ];
    let version = names::versioned(&names::grant_kind()).api_version();
    let grants = grants.map(|(name, spec)| {
        json!({"apiVersion": version, "kind": "Grant", "metadata": {"name": name}, "spec": spec})
    });
    kinds.into_iter().chain(grants).collect()
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("the shipped definitions can be read")
}
