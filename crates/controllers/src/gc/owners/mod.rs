//! Owner references: what is owned goes with its owners.
//!
//! In the background, dependents go after their last owner is gone. In the foreground (finalizer
//! `foregroundDeletion`) they go first; the owner waits for those that say `blockOwnerDeletion`. With
//! the finalizer `orphan` they stay and forget their owner.
//!
//! One watch per kind feeds an [index](index::Index) of who refers to whom; an object that has no
//! owners leaves nothing in it. The index only says where to look: an owner is judged by a fresh read,
//! and every write names the state that it was decided on.

pub mod decide;
pub mod index;
mod judge;
mod run;
mod watch;

pub use run::Owners;
