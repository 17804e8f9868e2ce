//! The one way in for every write, whichever front door it came through.
//!
//! A front door has checked who calls and that they may use this verb on this resource; it hands over an
//! [`Operation`]. What only shows when the stored state is known is decided here: whether an apply is
//! really a creation, whether rights are given away that the caller does not have, and what an
//! [`Admission`] says to objects of the kinds it concerns. Then it is committed.

mod admission;
mod all;
mod judge;
mod operation;
mod pin;
mod writer;

pub use admission::{Act, Admission, Admissions, Denied};
pub use all::All;
pub use operation::{Change, Operation, Written};
pub use writer::{Refused, Writer};

#[cfg(test)]
mod tests;
