//! Users, roles, logins and webhooks at the REST door, request by request, over a store in memory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod escalation;
mod last_admin;
mod login;
mod passwords;
mod roles;
mod stage;
mod users;
mod webhooks;
