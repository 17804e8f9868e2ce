//! The toy as the subject of a life.

use std::sync::Arc;
use std::time::Duration;

use concert_engine::leader::{Controllers, Duty};
use concert_engine::{Controller, Durability, Objects};
use concert_model::{GroupKind, Object};
use concert_store::{Chance, Query};
use serde_json::Value;

use super::decide::is_ready;
use super::run::{Bug, Toy};
use super::thing_of;
use crate::executor::Executor;
use crate::faults::Weather;
use crate::play::{Actor, Done, Play, Stage, Wish};
use crate::world::World;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// How often objects are looked at in lives where watches lose events.
const POLL: Duration = Duration::from_secs(60);
/// And how often such watches start over.
const RELIST: Duration = Duration::from_secs(120);

/// Widgets and their things, perhaps with a planted bug.
pub struct ToyPlay {
    executor: Executor,
    chance: Chance,
    weather: Weather,
    world: World,
    bug: Option<Bug>,
}

impl ToyPlay {
    /// On this stage.
    pub fn new(stage: &Stage, bug: Option<Bug>) -> Self {
        let (executor, weather) = (stage.executor.clone(), stage.weather.clone());
        let world = World::new(executor.clone(), stage.chance.fork(), weather.clone());
        Self { executor, chance: stage.chance.clone(), weather, world, bug }
    }
}

impl Play for ToyPlay {
    fn definitions(&self) -> Vec<Value> {
        vec![super::definition()]
    }

    fn kinds(&self) -> Vec<GroupKind> {
        vec![super::kind().group_kind]
    }

    fn duty(&self, actor: Actor) -> Arc<dyn Duty> {
        let toy = Toy::new(actor.remote.clone(), self.world.clone(), self.executor.clone(), self.bug);
        let (toy, work, is_polling) = (Arc::new(toy), actor.remote, self.weather.is_lossy());
        let build = move |authority| {
            let objects = Objects::new(Query::all(super::kind().group_kind));
            let builder = Controller::builder("toy", toy.clone()).objects(objects).concurrency(3);
            let builder = if is_polling { builder.poll(POLL).relist(Some(RELIST)) } else { builder };
            vec![builder.durability(Durability::Outcomes(work.clone())).authority(authority).build()]
        };
        Arc::new(Controllers::new(actor.engine, Duration::from_secs(5), build))
    }

    fn wish(&self) -> Wish {
        let pick = || NAMES[self.chance.below(NAMES.len() as u64) as usize];
        let (name, after) = (pick(), pick());
        if self.chance.is_hit(0.3) {
            return Wish::Gone(super::key(name));
        }
        let size = self.chance.below(100).cast_signed();
        let after = Some(after).filter(|after| *after > name && self.chance.is_hit(0.4));
        Wish::There(super::widget(name, size, after))
    }

    fn done(&self) -> Done {
        let truth = self.world.truth();
        Done {
            creates: truth.creates.values().copied().map(u64::from).sum(),
            deletes: truth.deletes.values().copied().map(u64::from).sum(),
            effects: truth.mutations,
            fenced: truth.fenced,
            runs: truth.runs,
        }
    }

    fn runs_max(&self, quiet: Duration) -> f64 {
        // Who does not poll has no reason to run at all.
        let polls = quiet.div_duration_f64(POLL) + quiet.div_duration_f64(RELIST) + 2.0;
        if self.weather.is_lossy() { NAMES.len() as f64 * polls } else { 0.0 }
    }

    /// Everything declared is there once, as declared; and nothing else is.
    fn check(&self, objects: &[Object]) -> Vec<String> {
        let mut violations = Vec::new();
        let truth = self.world.truth();
        let find = |name: &str| objects.iter().find(|object| object.name() == name);
        for object in objects {
            let name = object.name();
            let after = object.spec()["after"].as_str().map(find);
            if after.is_some_and(|after| !after.is_some_and(is_ready)) && object.deleted_at().is_none() {
                // It waits, and rightly so.
                continue;
            }
            if object.deleted_at().is_some() {
                violations.push(format!("{name} is still being deleted"));
                continue;
            }
            let there = truth.things.get(&*thing_of(object)).copied();
            if there != object.spec()["size"].as_i64() {
                violations.push(format!("{name} is {there:?} and not {}", object.spec()["size"]));
            }
            if !is_ready(object) {
                violations.push(format!("{name} is not said to be ready"));
            }
        }
        for thing in truth.things.keys() {
            if !objects.iter().any(|object| *thing_of(object) == **thing) {
                violations.push(format!("{thing} is leaked"));
            }
        }
        violations
    }

    fn violations(&self) -> Vec<String> {
        std::mem::take(&mut self.world.truth().violations)
    }
}
