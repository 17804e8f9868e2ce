//! Events are a courtesy and expire: after an hour since they were last seen, unless said otherwise.

pub mod decide;
mod run;

pub use run::{controller, item};
