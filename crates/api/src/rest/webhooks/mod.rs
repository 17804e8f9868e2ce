//! Admission webhooks: others who are asked before a resource is written.
//!
//! `declared` is what an `AdmissionWebhook` object says, `address` where one may be, `client` one question
//! to one of them, `patch` what it may change, `chain` all of them in order.

mod address;
mod chain;
mod client;
mod declared;
mod patch;
#[cfg(test)]
mod tests;

pub use address::{Address, BadAddress};
pub use chain::Chain;
pub use declared::{Webhook, webhook_kind};
