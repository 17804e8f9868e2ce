//! U2: a Shoot for every entry that has a network.
//!
//! `decide` says what a Shoot's state means; `run` declares it in the garden and tells the inventory
//! where the cluster is.

mod decide;
mod run;

use concert_worker::Registration;

pub use run::Shoots;

/// The namespace of the garden that Shoots are declared in.
pub const PROJECT: &str = "garden-fleet";
/// What is written.
pub const CLUSTER: &str = "cluster";
const NETWORK: &str = "network";
const SETTINGS: &str = "settings";

pub fn registration() -> Registration {
    Registration::new("shoot")
        .handles("runtime")
        .watches_path(NETWORK, "/vnet_name")
        .watches_path(SETTINGS, "/region")
        .reads([NETWORK, SETTINGS, CLUSTER])
        .writes([CLUSTER])
}
