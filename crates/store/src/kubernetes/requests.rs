//! How much is asked of the API server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What a request does, in the words of Kubernetes' own metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many.
    List,
    /// Opens a watch, or opens it again.
    Watch,
    /// Makes an object.
    Create,
    /// Replaces one.
    Update,
    /// Changes one.
    Patch,
    /// Removes one.
    Delete,
    /// Asks which kinds there are.
    Discover,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::Discover => "discover",
        })
    }
}

/// Requests sent so far, by verb and resource (`widgets.example.com`). Cheap to clone and to count in.
#[derive(Clone, Debug, Default)]
pub struct Requests(Arc<RwLock<Counters>>);

type Counters = BTreeMap<(Verb, Arc<str>), AtomicU64>;

impl Requests {
    pub(super) fn count(&self, verb: Verb, resource: &Arc<str>) {
        let name = (verb, resource.clone());
        if let Some(counter) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&name) {
            counter.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut counters = self.0.write().unwrap_or_else(PoisonError::into_inner);
        counters.entry(name).or_default().fetch_add(1, Ordering::Relaxed);
    }

    /// How many requests of one sort were sent.
    pub fn sent(&self, verb: Verb, resource: &str) -> u64 {
        let counters = self.0.read().unwrap_or_else(PoisonError::into_inner);
        counters.get(&(verb, resource.into())).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// All sorts of requests that were sent, and how many of each.
    pub fn snapshot(&self) -> Vec<(Verb, Arc<str>, u64)> {
        let counters = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let read = |((verb, resource), counter): (&(Verb, Arc<str>), &AtomicU64)| {
            (*verb, resource.clone(), counter.load(Ordering::Relaxed))
        };
        counters.iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sort_is_counted_apart() {
        let requests = Requests::default();
        let widgets: Arc<str> = "widgets.example.com".into();
        requests.count(Verb::Get, &widgets);
        requests.count(Verb::Get, &widgets);
        requests.count(Verb::List, &widgets);
        assert_eq!(requests.sent(Verb::Get, "widgets.example.com"), 2);
        assert_eq!(requests.sent(Verb::Watch, "widgets.example.com"), 0);
        assert_eq!(requests.snapshot().len(), 2);
    }
}
