//! Controllers as their users see them.

mod durable;
mod limits;
mod runs;
mod sources;
mod waits;
