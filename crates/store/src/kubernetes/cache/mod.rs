//! One kind, kept in memory while somebody watches it.
//!
//! All watches of a kind share one watch of the server. While it runs, reads of the kind are answered
//! from what it told, never older than what this store itself has answered before. [`state`] is plain
//! data and decides; [`reflector`] has the task that feeds it; [`subscription`] is one watch of many.

mod overlay;
mod reflector;
mod state;
mod subscription;
#[cfg(test)]
mod tests;

pub(super) use reflector::Registry;
pub(super) use state::Look;
pub(super) use subscription::subscribe;

use concert_model::ResourceVersion;

/// Resource versions as numbers. Kubernetes compares them within one resource since 1.35 by contract,
/// and has always made them from etcd's revisions; where one cannot be read, nothing is cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order(u128);

impl Order {
    pub(super) fn of(version: &ResourceVersion) -> Option<Self> {
        let is_plain = version.0.bytes().all(|byte| byte.is_ascii_digit()) && !version.0.starts_with('0');
        version.0.parse().ok().filter(|_| is_plain).map(Self)
    }
}
