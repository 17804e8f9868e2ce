//! U3 and U4: restricted kubeconfigs, issued and rotated.
//!
//! An administrator's access is used, and never handed on: that of a Shoot lies in the garden, that of a
//! cluster somebody brought lies in the secret section `admin`. `account` is what is made in the cluster,
//! `rotation` decides when a token has had its time, `run` has the hands.

mod account;
mod rotation;
mod run;

use concert_worker::Registration;

pub use account::NAMESPACE as FLEET;
pub use run::Kubeconfigs;

use crate::cluster::CREDENTIALS;
use crate::shoot::CLUSTER;

/// The secret section that somebody puts the kubeconfig of a cluster of their own into.
const ADMIN: &str = "admin";

pub fn registration() -> Registration {
    Registration::new("kubeconfig")
        .handles("runtime")
        .handles("byoc")
        .watches_path(CLUSTER, "/api_server")
        .watches(ADMIN)
        .reads([CLUSTER, ADMIN, CREDENTIALS])
        .writes([CREDENTIALS])
}
