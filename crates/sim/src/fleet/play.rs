//! A fleet as the subject of a life.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_controllers::mothership::{self, Parts, Running};
use concert_engine::Authority;
use concert_engine::leader::Duty;
use concert_engine::workers::Board;
use concert_model::inventory::names;
use concert_model::{GroupKind, Object};
use concert_store::Store;
use serde_json::{Value, json};

use super::Bug;
use super::check::{check, check_order};
use super::run::{LEASE_SECONDS, RECONCILERS, Shared};
use super::stores::Crooked;
use super::world::World;
use crate::executor::Group;
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
    stage_chance: concert_store::Chance,
}

impl FleetPlay {
    /// On this stage.
    pub fn new(stage: &Stage, bug: Option<Bug>) -> Self {
        let shared = Arc::new(Shared {
            executor: stage.executor.clone(),
            chance: stage.chance.fork(),
            weather: stage.weather.clone(),
            bug,
            world: Mutex::default(),
            office: Mutex::default(),
            claims: Mutex::default(),
        });
        for reconciler in RECONCILERS {
            for number in 0..HOSTS {
                let host = shared.clone().host(reconciler, format!("{reconciler}-{number}"));
                stage.executor.spawn(HOST_GROUP, Box::pin(host));
            }
        }
        Self { shared, stage_chance: stage.chance.fork() }
    }

    fn worker(&self, reconciler: &str) -> Value {
        let watches = match reconciler {
            "network" => json!([]),
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
    fn definitions(&self) -> Vec<Value> {
        let mut all = vec![
            definition(names::GROUP, "Cluster", "clusters"),
            definition(names::GROUP, "Section", "sections"),
            definition(names::MOTHERSHIP, "Item", "items"),
            definition("concert.dev", "Worker", "workers"),
        ];
        all.extend(RECONCILERS.iter().map(|it| self.worker(it)));
        all
    }

    fn kinds(&self) -> Vec<GroupKind> {
        vec![names::entry_kind(), names::section_kind(), names::item_kind()]
    }

    fn duty(&self, actor: Actor) -> Arc<dyn Duty> {
        Arc::new(Leading { actor, shared: self.shared.clone(), running: Mutex::default() })
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

    fn check_history(&self, object: &Object, statuses: &[Value]) -> Vec<String> {
        if object.kind() != "Item" {
            return Vec::new();
        }
        let messages: Vec<String> =
            statuses.iter().filter_map(|it| it["message"].as_str().map(str::to_owned)).collect();
        check_order(object.name(), &messages).into_iter().collect()
    }

    fn violations(&self) -> Vec<String> {
        self.shared.world().violations.clone()
    }
}

/// The mothership of one process, while it leads.
struct Leading {
    actor: Actor,
    shared: Arc<Shared>,
    running: Mutex<Option<(Running, Board)>>,
}

impl Leading {
    fn store(&self) -> Arc<dyn Store> {
        let remote: Arc<dyn Store> = self.actor.remote.clone();
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
        let (actor, store) = (&self.actor, self.store());
        let board = Board::new(actor.clock.clone());
        let relist = if self.shared.weather.is_lossy() { RELIST } else { mothership::RELIST };
        let running = mothership::start(Parts {
            engine: actor.engine.over(store.clone()),
            fleet: actor.engine.over(store.clone()),
            store: store.clone(),
            inventory: store,
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
        let office = Some((board.clone(), actor.remote.clone()));
        *self.shared.office.lock().unwrap_or_else(PoisonError::into_inner) = office;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some((running, board));
    }

    async fn end(&self, _: bool) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((running, board)) = running {
            board.close();
            running.stop().await;
        }
    }
}

fn definition(group: &str, kind: &str, plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let subresources = if kind == "Section" { json!({}) } else { json!({"status": {}}) };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Cluster", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                "subresources": subresources, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}
