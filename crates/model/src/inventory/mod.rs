//! The inventory of a fleet: entries, their sections, and who may read and write which.
//!
//! An entry is a `Cluster` object, each of its sections an object of its own, so that many writers never
//! meet at one version. Here is how all of them are called ([`names`]), where their parts lie ([`Entry`],
//! [`Section`], [`SectionType`], [`Grant`], [`Item`]), what a write of a section does ([`decide`]) and how
//! the revision of an entry follows from its sections ([`Ledger`]). Plain functions and values.

mod change;
mod entry;
mod grant;
mod item;
mod lease;
mod ledger;
pub mod names;
mod section;
mod section_type;

#[cfg(test)]
mod properties;

pub use change::{Changed, Expected, Kept, Moved, decide};
pub use entry::Entry;
pub use grant::{Grant, Right, shared_writer};
pub use item::{Item, State, UnknownState};
pub use lease::{Lease, Stale};
pub use ledger::Ledger;
pub use names::{GROUP, NAMESPACE};
pub use section::Section;
pub use section_type::SectionType;
