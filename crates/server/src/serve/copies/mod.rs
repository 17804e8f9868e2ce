//! Copies of all that a control plane keeps: `concert backup` and `concert restore`.
//!
//! [`ask`] is for whoever wants one. A control plane that runs is asked through a socket in its folder,
//! which `socket.rs` serves; where none runs, the store is opened here, under the folder's lock. What is
//! done is the same, and is in `act.rs`.

mod act;
mod ask;
mod refusal;
mod running;
mod socket;

pub use ask::{Asked, ask};
pub use refusal::Refusal;

pub(super) use act::Site;
pub(super) use running::Copying;
use socket::Socket;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The socket's name in the folder.
const SOCKET: &str = "control.sock";

/// What is wanted. Paths are absolute: they are read by another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Request {
    /// Copy everything to a new file.
    Backup {
        /// The file.
        file: PathBuf,
        /// Copy the keys too, to the file's name with `.key` after it.
        with_key: bool,
    },
    /// Put a copy in the place of everything.
    Restore {
        /// The file.
        file: PathBuf,
        /// The keys that it was sealed with, if those are not the store's.
        key: Option<PathBuf>,
    },
}

/// What became of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    Done,
    Refused(Refusal),
}
