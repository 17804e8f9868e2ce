//! Admission webhooks: others who are asked before a resource is written.
//!
//! `declared` is what an `AdmissionWebhook` object says, `address` where one may be, `client` one question
//! to one of them, `patch` what it may change, `chain` all of them in order,
//! `routes` where they are declared.

mod address;
mod chain;
mod client;
mod declared;
mod patch;
mod routes;
#[cfg(test)]
mod tests;

pub use address::{Address, BadAddress};
pub use chain::Chain;
pub use declared::{Webhook, webhook_kind};
pub(super) use routes::route;
