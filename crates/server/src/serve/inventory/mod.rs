//! The inventory, in this process or elsewhere: whoever works with it does not know which.

mod elsewhere;
mod here;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use concert_api::inventory::{Door, Minting};
use concert_store::Store;

pub(super) use here::{prepare, sweep};

/// How the inventory is reached.
#[derive(Clone)]
#[allow(dead_code, reason = "the way in for those who reconcile what is in it")]
pub(super) struct Inventory {
    /// Where entries and sections are.
    pub store: Arc<dyn Store>,
    /// Who makes the tokens that reconcilers get with their work, and knows where they are good.
    pub minting: Arc<dyn Minting>,
    /// Its routes and rules; none if it is elsewhere.
    pub here: Option<Door>,
}
