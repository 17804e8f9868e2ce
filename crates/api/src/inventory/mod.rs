//! The inventory of a fleet: entries and their sections, behind `/inventory/v1`.
//!
//! Everything is an object of the store, so this is a view of it, with rules of its own: `caller` says who
//! may read and write what, `sections` and `write` keep versions, hashes and the secrets of secret
//! sections, `contents` what may stand in one, `books` the revisions, `watch` tells of changes, `tokens`
//! makes the tokens that reconcilers get with their work, `newest` shuts out those whose claim
//! is over, `grants` says what those are good for. `admit`
//! holds the same rules for objects that come through another door, `sweep` removes what a crash left.

mod admit;
mod books;
mod caller;
mod contents;
mod door;
mod entries;
mod grants;
mod history;
mod newest;
mod sections;
mod sent;
mod sweep;
mod tokens;
mod types;
mod view;
mod watch;
mod write;

pub use admit::Admit;
pub use door::{Door, Parts};
pub use grants::{Ensured, ensure};
pub use sweep::sweep;
pub use tokens::{BASE, Minted, Minter, Minting, Scope, Unminted, Wanted};
