//! What a reconciler says of itself.

use std::time::Duration;

use serde_json::{Value, json};

/// A reconciler: which entries it is for, what wakes it, what of the inventory it reads and writes.
#[derive(Clone, Debug)]
pub struct Registration {
    pub(crate) name: String,
    handles: Vec<String>,
    watches: Vec<Value>,
    cluster_events: Vec<Value>,
    reads: Vec<String>,
    writes: Vec<String>,
    resync: Option<Duration>,
    pub(crate) concurrency: usize,
    total: Option<usize>,
    pub(crate) lease: Duration,
}

impl Registration {
    /// One of this name. Several hosts may use it: they share the work.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            handles: Vec::new(),
            watches: Vec::new(),
            cluster_events: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            resync: None,
            concurrency: 10,
            total: None,
            lease: Duration::from_secs(60),
        }
    }

    /// Is for entries of this kind as well.
    #[must_use]
    pub fn handles(mut self, kind: &str) -> Self {
        self.handles.push(kind.to_owned());
        self
    }

    /// Is woken by writes of a section.
    #[must_use]
    pub fn watches(mut self, section: &str) -> Self {
        self.watches.push(json!({ "section": section }));
        self
    }

    /// Is woken when what a JSON pointer leads to in a section has changed.
    #[must_use]
    pub fn watches_path(mut self, section: &str, path: &str) -> Self {
        self.watches.push(json!({ "section": section, "path": path }));
        self
    }

    /// Is woken by objects of a kind in the cluster of the entry, in one namespace or anywhere.
    #[must_use]
    pub fn follows(mut self, group: &str, version: &str, kind: &str, namespace: Option<&str>) -> Self {
        let mut event = json!({ "group": group, "version": version, "kind": kind });
        if let Some(namespace) = namespace {
            event["namespace"] = json!(namespace);
        }
        self.cluster_events.push(event);
        self
    }

    /// Reads these sections.
    #[must_use]
    pub fn reads<'a>(mut self, sections: impl IntoIterator<Item = &'a str>) -> Self {
        self.reads.extend(sections.into_iter().map(str::to_owned));
        self
    }

    /// Writes these sections, and nobody else does.
    #[must_use]
    pub fn writes<'a>(mut self, sections: impl IntoIterator<Item = &'a str>) -> Self {
        self.writes.extend(sections.into_iter().map(str::to_owned));
        self
    }

    /// Runs again after this time even if nothing happens.
    #[must_use]
    pub fn resync(self, every: Duration) -> Self {
        Self { resync: Some(every), ..self }
    }

    /// This host works on so many entries at once: 10 unless said.
    #[must_use]
    pub fn concurrency(self, entries: usize) -> Self {
        Self { concurrency: entries.max(1), ..self }
    }

    /// All hosts of this name together work on so many entries at once: 100 unless said.
    #[must_use]
    pub fn total(self, entries: usize) -> Self {
        Self { total: Some(entries.max(1)), ..self }
    }

    /// How long this host may be silent before somebody else gets its entries.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: lease.max(Duration::from_secs(1)), ..self }
    }

    pub(crate) fn to_json(&self, host_id: &str) -> Value {
        let kinds: Vec<Value> = self.handles.iter().map(|kind| json!({ "kind": kind })).collect();
        let mut body = json!({
            "name": self.name,
            "host_id": host_id,
            "handles": kinds,
            "watches": self.watches,
            "grants": { "read": self.reads, "write": self.writes },
            "lease_seconds": self.lease.as_secs(),
        });
        if let Some(total) = self.total {
            body["concurrency"] = json!(total);
        }
        if !self.cluster_events.is_empty() {
            body["cluster_events"] = json!(self.cluster_events);
        }
        if let Some(resync) = self.resync {
            body["resync_seconds"] = json!(resync.as_secs());
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_host_does_at_once_is_no_bound_for_all_of_them() {
        let registration = Registration::new("a").concurrency(3);
        assert_eq!(registration.to_json("h").get("concurrency"), None);
        assert_eq!(registration.total(40).to_json("h")["concurrency"], 40);
    }
}
