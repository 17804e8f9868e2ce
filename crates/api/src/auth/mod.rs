//! Who calls, and what they may do.
//!
//! [`Gate`] is the door. Tokens are `Token` objects (`token`), rights are the RBAC kinds of Kubernetes:
//! `rule` is one rule as a plain function, `index` all of them at one moment, `guard` the reads that keep
//! an answer current, `escalation` what keeps people from giving away more than they have, `bootstrap`
//! what a new store starts with.

mod access;
mod bootstrap;
mod defaults;
mod escalation;
mod gate;
mod guard;
mod index;
mod rule;
mod token;
mod user;

pub use access::Access;
pub use bootstrap::{Bootstrap, bootstrap, issue_for_administrator};
pub use escalation::is_sensitive;
pub use gate::{Gate, Refusal};
pub use rule::{Rule, covers};
pub use token::{Issued, TokenError, is_known, issue, issue_for_user, sweep, token_kind};
pub use user::User;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
