//! A store in memory with the kinds that the REST door needs.

use std::sync::Arc;

use concert_model::Object;
use concert_store::backend::memory::Memory;
use concert_store::conformance::HandClock;
use concert_store::{By, Chance, Config, Local, Store};
use serde_json::Value;

const DEFINITIONS: &str = include_str!("../../../../deploy/crds/no8s.yaml");

pub struct World {
    pub store: Local,
    pub clock: Arc<HandClock>,
}

impl World {
    pub async fn new() -> Self {
        let clock = Arc::new(HandClock::new());
        let config = Config::new(clock.clone(), Chance::seeded(1)).inline();
        let store = Local::open(Arc::new(Memory::new()), config).unwrap();
        let definitions: Vec<Value> = serde_saphyr::from_multiple(DEFINITIONS).unwrap();
        for definition in definitions {
            store.create(Object::from_value(definition).unwrap(), &By::actor("test")).await.unwrap();
        }
        Self { store, clock }
    }
}
