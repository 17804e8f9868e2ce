//! Managed resources: objects that stand for one external thing each.
//!
//! [`decide`] is the algorithm, a plain function; [`run`] and [`pass`] have the hands. A
//! [`Registry`](registry::Registry) starts a controller for each kind that is defined and served, and
//! stops it when it no longer is.

pub mod allowance;
pub mod binding;
pub mod config;
pub mod connection;
pub mod decide;
pub mod delta;
pub mod event;
pub mod journal;
pub mod mentions;
pub mod metrics;
pub mod pass;
pub mod plan;
pub mod policy;
pub mod poll;
pub mod predicate;
pub mod reference;
pub mod registry;
pub mod rest;
pub mod roll;
pub mod run;
pub mod unwritten;
pub mod usage;
pub mod verdict;
pub mod vocabulary;

use std::time::Duration;

/// How long a call to a provider may take, unless somebody knows better.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// What a pass has on top of that for its own writes.
pub const BOOKKEEPING: Duration = Duration::from_secs(30);

/// How long a new external thing may stay invisible, unless the provider knows better.
pub const CREATION_GRACE: Duration = Duration::from_secs(30);
