//! What people see: data on standard output, talk on standard error.

mod colour;
mod data;
mod escape;
mod progress;
pub mod table;

use std::io::Write as _;

use anyhow::Context as _;

pub use colour::Paint;
pub use data::{json, yaml};
pub use escape::plain;
pub use progress::Progress;
pub use table::Table;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// Columns.
    Table,
    /// All columns.
    Wide,
    /// The objects as YAML.
    Yaml,
    /// The objects as JSON.
    Json,
    /// KIND/NAME, one a line.
    Name,
}

/// Writes data.
pub fn out(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("cannot write to standard output")
}
