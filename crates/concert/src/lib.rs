//! The programs that people start: flags in, exit codes out. What they do is in `server`.
#![warn(missing_docs)]

/// Objects are many small pieces, and a reconcile is many objects: with the system's allocator a third of a
/// poll was spent in it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod cli;
mod client;
mod commands;
mod exit;
mod flags;
mod help;
mod logs;
mod manifests;
mod plan;
mod print;
mod reconciler;
mod secret_file;
mod signals;

pub use cli::main as concert;
pub use exit::Exit;
pub use reconciler::main as reconciler;
