//! The programs that people start: flags in, exit codes out. What they do is in `server`.
#![warn(missing_docs)]

mod exit;
mod flags;
mod help;
mod logs;
mod manifests;
mod plan;
mod reconciler;

pub use exit::Exit;
pub use reconciler::main as reconciler;
