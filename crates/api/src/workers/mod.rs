//! Programs that reconcile elsewhere: they register, ask for work, and report.
//!
//! Every write that they make under a lease carries its fence, and is refused once the lease has ended:
//! by the board that lent the item, and again by the store. `register` has the workers themselves,
//! `claim` what they are lent, `op` and `hands` what they may write, `batch` and `single` the two forms
//! in which that comes. Component reconcilers of a fleet use the same routes: `component` is what they say
//! of themselves, `entry` what they are lent and what they report.

mod batch;
mod claim;
mod component;
mod door;
mod entry;
mod hands;
mod op;
mod register;
mod results;
mod single;

#[cfg(test)]
mod tests;

pub use door::{Door, Fleet, Parts, Show, Waiting};
