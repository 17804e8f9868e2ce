//! Members: several processes that share the keys of all controllers.
//!
//! Every key is in a [`Share`]; each share is a row of work state that one member claims, and every write
//! that comes of a key carries the fence of that claim. Who should have which share is a plain function of
//! who is there (`share.rs`, `plan.rs`); [`Membership`] keeps a member's own row alive, follows the others,
//! and hands shares over: whoever has one first lets what runs in it end. [`Shares`] is what controllers see
//! of all this, and [`Authority`] how they are told.

mod authority;
mod membership;
mod plan;
mod roll;
mod share;
mod shares;

#[cfg(test)]
mod tests;

pub use authority::Authority;
pub(crate) use authority::Leave;
pub use membership::{Config, Membership, Standing, View};
pub use plan::Manner;
pub use roll::{Profile, Roll, Seen, roll};
pub use share::{Member, SHARES, Share, owner, owns};
pub use shares::{End, Shares, Stay, Tenure};
