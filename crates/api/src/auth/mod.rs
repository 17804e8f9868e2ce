//! Who calls, and what they may do.
//!
//! [`Gate`] is the door. Tokens are `Token` objects (`token`), or what a login gave (`jwt`) to somebody
//! with a `User` object (`person`) and the right `password`, `throttle` times at most. Rights are the RBAC
//! kinds of Kubernetes: `rule` is one rule as a plain function, `index` all of them at one moment, `guard`
//! the reads that keep an answer current (`recent` spares those that would tell nothing new), `impersonate`
//! acting as somebody else, `custom_role` what a role by resource type comes to,
//! `escalation` what keeps people from giving away more than they have, `bootstrap` what a new store
//! starts with.

mod access;
mod bootstrap;
mod custom_role;
mod defaults;
mod escalation;
mod gate;
mod guard;
mod impersonate;
mod index;
mod jwt;
mod password;
mod person;
mod recent;
mod rule;
mod throttle;
mod token;
mod user;
mod way_in;

pub use access::Access;
pub use bootstrap::{Bootstrap, bootstrap, ensure_roles, first_token, issue_for_administrator};
pub use custom_role::{CustomRole, Served, custom_role_kind, is_operation, is_system_permission};
pub use escalation::is_sensitive;
pub use gate::{Gate, Refusal};
pub(crate) use guard::bearer;
pub(crate) use impersonate::{credentials, is_asked_for as is_impersonating};
pub use jwt::{BadToken, Claims, Keys};
pub(crate) use jwt::{decode, encode};
pub use password::{
    BYTES_MAX as PASSWORD_BYTES_MAX, Busy, CHARACTERS_MIN as PASSWORD_CHARACTERS_MIN, Passwords,
};
pub use person::{PLUGIN_HOSTS, Person, person_kind, role_group};
pub use rule::{Rule, covers};
pub use throttle::{Attempt, Throttle};
pub use token::{Issued, TokenError, is_known, issue, issue_for_user, sweep, token_kind};
pub(crate) use user::ANONYMOUS;
pub use user::User;
pub use way_in::has_other_way_in;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
