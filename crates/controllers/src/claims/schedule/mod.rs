//! Chooses a class for claims that do not name one: by the labels they ask for, or one that is said to be
//! the default. One controller for each class kind; whoever writes first has won.

pub mod decide;
mod run;

pub use decide::Manner;
pub use run::{Scheduler, controller};
