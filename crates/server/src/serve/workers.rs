//! Remote workers, put together: the board where they meet, their controllers, and their routes.

use std::sync::Arc;

use concert_api::auth::Gate;
use concert_api::rest::view;
use concert_api::workers::{self, Door};
use concert_controllers::managed::registry::Parts;
use concert_controllers::plugins;
use concert_engine::workers::Board;
use concert_model::no8s::Rules;
use concert_store::Local;

use super::error::Error;

/// What runs for remote workers.
pub(super) struct Workers {
    pub board: Board,
    pub running: plugins::Running,
    pub door: Door,
}

impl Workers {
    /// Starts the controllers of all workers that are registered, and from then on of those that come.
    pub fn start(store: &Local, parts: &Parts, gate: &Gate, rules: Rules) -> Result<Self, Error> {
        let board = Board::new(parts.clock.clone());
        let kinds = store.clone();
        let running = plugins::start(plugins::Parts {
            engine: parts.engine.clone(),
            store: parts.store.clone(),
            work: Arc::new(store.clone()),
            history: Arc::new(store.clone()),
            board: board.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.fork(),
            kinds: Arc::new(move || kinds.kinds()),
            rules,
        });
        let door = Door::new(workers::Parts {
            store: store.clone(),
            gate: gate.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.fork(),
            board: board.clone(),
            rules,
            show: Arc::new(view::resource),
        });
        Ok(Self { board, running: running.map_err(Error::store)?, door })
    }

    /// Nobody waits any more, nothing is lent any more.
    pub async fn stop(&self) {
        self.running.stop().await;
    }
}
