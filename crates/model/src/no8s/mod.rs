//! Resources in the manner of no8s: a phase, three standard conditions, and a worker that reports.
//!
//! A resource is an ordinary object of a kind in one of our groups. Here is where its parts live
//! ([`Resource`]), what it is called ([`names`]) and how its `status` goes on from one report to the
//! next ([`transition`], [`resolve`]). Everything is a function of the object and a [`Moment`].

pub mod conditions;
pub mod due;
pub mod moment;
pub mod names;
pub mod phase;
pub mod resolve;
pub mod resource;
pub mod transition;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use conditions::BadStatus;
pub use due::due_in;
pub use moment::{Moment, Rules};
pub use names::{GROUP, is_ours};
pub use phase::{Phase, UnknownPhase};
pub use resolve::{Lease, Next, Verdict, expired, recorded};
pub use resource::Resource;
pub use transition::{Report, conditioned, deleting, reported, started, with_outputs};
