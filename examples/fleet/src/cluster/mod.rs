//! Kubernetes clusters: how they are reached, what is asked of them, and what is kept in them.
//!
//! `document` reads kubeconfigs that strangers wrote, `client` asks, `apply` keeps a set of objects, and
//! `targets` remembers the clusters of entries until their credentials are refused.

mod apply;
mod client;
mod document;
mod kinds;
mod targets;

pub use apply::{Installed, install, token_address, uninstall};
pub use client::{Client, Trouble};
pub use document::Access;
pub use kinds::{Kind, Place};
pub use targets::{CREDENTIALS, Targets};

pub use kinds::{
    CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, DEFINITION, DEPLOYMENT, ROLE, ROLE_BINDING, SECRET,
    SERVICE_ACCOUNT, SERVICE_INSTANCE, SHOOT,
};
