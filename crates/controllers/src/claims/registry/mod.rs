//! Which controllers of claims run: those of each definition whose kinds are there, started and stopped
//! while the process runs.

pub mod decide;
mod defined;
mod hold;
mod read;
mod run;

pub use read::read;
pub use run::{Registry, start};
