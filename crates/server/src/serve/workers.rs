//! Remote workers, put together: the board where they meet, their controllers, and their routes.

use std::sync::Arc;

use concert_api::auth::Gate;
use concert_api::rest::{Ids, view};
use concert_api::workers::{self, Door};
use concert_controllers::managed::registry::Parts;
use concert_controllers::mothership::vocabulary;
use concert_controllers::plugins;
use concert_engine::Engine;
use concert_engine::workers::Board;
use concert_model::no8s::Rules;
use concert_store::Local;

use super::inventory::Inventory;

/// What there is for remote workers.
pub(super) struct Workers {
    pub board: Board,
    /// For the controllers of all workers that are registered, and from then on of those that come.
    pub controllers: plugins::Parts,
    pub door: Door,
}

impl Workers {
    pub fn new(
        store: &Local,
        parts: &Parts,
        gate: &Gate,
        rules: Rules,
        inventory: &Inventory,
        board: &Board,
        ids: &Ids,
    ) -> Self {
        let board = board.clone();
        let kinds = store.clone();
        let controllers = plugins::Parts {
            engine: parts.engine.clone(),
            store: parts.store.clone(),
            work: Arc::new(store.clone()),
            history: Arc::new(store.clone()),
            board: board.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.fork(),
            kinds: Arc::new(move || kinds.kinds()),
            rules,
        };
        let door = Door::new(workers::Parts {
            store: store.clone(),
            gate: gate.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.fork(),
            board: board.clone(),
            rules,
            show: Arc::new(view::resource),
            waiting: waiting(parts.engine.clone()),
            ids: ids.clone(),
            fleet: workers::Fleet { inventory: inventory.store.clone(), minting: inventory.minting.clone() },
        });
        Self { board, controllers, door }
    }
}

/// How many items wait in the queues of a worker's controllers.
fn waiting(engine: Engine) -> workers::Waiting {
    Arc::new(move |worker| {
        let (ours, fleet) = (plugins::controllers_of(worker), vocabulary::controller_of(worker));
        let all = engine.controllers();
        let queues = all.iter().filter(|it| it.name.starts_with(&ours) || *it.name == *fleet);
        queues.map(|it| it.depth.ready.iter().sum::<usize>()).sum()
    })
}
