//! Redis servers, each a process with a folder, a port and a password of its own.
//!
//! What a server is meant to be is its [`record`](record::Record); whether it runs is asked of the kernel and
//! of itself. A server that dies is not started again here: it is pushed to those who watch, they look, see
//! that it is not as declared, and ask for the update that starts it. So back-off is theirs too.

mod instances;
mod look;
mod process;
mod record;
mod resp;
mod server;
mod settings;
mod verbs;
mod vigil;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use concert_store::{Chance, Clock};

pub use instances::Redis;

/// How to run Redis servers.
#[derive(Clone)]
pub struct Settings {
    /// The program, with or without its folder.
    pub program: PathBuf,
    /// The ports to choose from for servers that ask for none.
    pub ports: RangeInclusive<u16>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where names, ports and passwords come from.
    pub chance: Chance,
}
