//! Sources: where keys come from.

use std::sync::Arc;

use concert_model::{Encoded, GroupKind, ObjectKey};
use concert_store::Query;

use crate::queue::{Lane, Reason};
use crate::spread::stable_hash;

/// A watch whose changes are changes of keys.
#[derive(Clone)]
pub struct Source {
    pub(crate) query: Query,
    pub(crate) mapping: Mapping,
    pub(crate) lane: Lane,
    pub(crate) reason: Reason,
    pub(crate) fingerprint: Fingerprint,
}

/// What of an object must differ for a change to count.
type Fingerprint = Arc<dyn Fn(&Encoded) -> u64 + Send + Sync>;

/// Something that holds for an object or does not.
type Predicate = Arc<dyn Fn(&Encoded) -> bool + Send + Sync>;

/// From an object to the keys that it concerns.
#[derive(Clone)]
pub(crate) enum Mapping {
    Owner(GroupKind),
    With(Map),
}

pub(crate) type Map = Arc<dyn Fn(&Encoded) -> Vec<ObjectKey> + Send + Sync>;

impl Source {
    /// Objects that are owned: their changes concern each owner of the kind `owner`.
    pub fn owned(query: Query, owner: GroupKind) -> Self {
        Self::new(query, Mapping::Owner(owner), "owned")
    }

    /// Objects whose changes concern whatever `map` says.
    pub fn mapped(query: Query, map: impl Fn(&Encoded) -> Vec<ObjectKey> + Send + Sync + 'static) -> Self {
        Self::new(query, Mapping::With(Arc::new(map)), "related")
    }

    fn new(query: Query, mapping: Mapping, reason: Reason) -> Self {
        Self { query, mapping, lane: Lane::Event, reason, fingerprint: Arc::new(every_write) }
    }

    /// The same, in another lane.
    pub fn in_lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// The same, with another word for why.
    pub fn because(mut self, reason: Reason) -> Self {
        self.reason = reason;
        self
    }

    /// The same, but a change counts only if `fingerprint` comes out different: so that, say, writes
    /// of a status do not wake those who only care for the spec.
    pub fn changed(mut self, fingerprint: impl Fn(&Encoded) -> u64 + Send + Sync + 'static) -> Self {
        self.fingerprint = Arc::new(fingerprint);
        self
    }
}

/// The main source: the objects that a controller reconciles. Its items live as long as they do.
#[derive(Clone)]
pub struct Objects {
    pub(crate) query: Query,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) is_settled: Predicate,
    /// None where all are alike.
    pub(crate) is_first: Option<Predicate>,
    pub(crate) listed: Listed,
    /// None where all count.
    pub(crate) is_ours: Option<Predicate>,
    pub(crate) share: Share,
}

/// In which lane an object goes that was there before the controller was.
type Listed = Arc<dyn Fn(&Encoded) -> Lane + Send + Sync>;

/// With whom an object takes turns.
type Share = Arc<dyn Fn(&Encoded) -> u32 + Send + Sync>;

impl Objects {
    /// The objects of a query.
    pub fn new(query: Query) -> Self {
        Self {
            query,
            fingerprint: Arc::new(every_write),
            is_settled: Arc::new(|_| false),
            is_first: None,
            listed: Arc::new(|_| Lane::Poll),
            is_ours: None,
            share: Arc::new(|_| 0),
        }
    }

    /// The same, but a change counts only if `fingerprint` comes out different.
    pub fn changed(mut self, fingerprint: impl Fn(&Encoded) -> u64 + Send + Sync + 'static) -> Self {
        self.fingerprint = Arc::new(fingerprint);
        self
    }

    /// The same, but those that `is_settled` recognises, such as by their observed generation, are not
    /// run when the controller starts: only polled, spread over the interval.
    pub fn settled(mut self, is_settled: impl Fn(&Encoded) -> bool + Send + Sync + 'static) -> Self {
        self.is_settled = Arc::new(is_settled);
        self
    }

    /// The same, but what was there before the controller was goes in the lane that `lane` says, and not
    /// behind everything: for objects that tell themselves how urgent they are.
    pub fn listed_in(mut self, lane: impl Fn(&Encoded) -> Lane + Send + Sync + 'static) -> Self {
        self.listed = Arc::new(lane);
        self
    }

    /// The same, but only those that `is_ours` recognises: the others are as if they were not there.
    pub fn only(mut self, is_ours: impl Fn(&Encoded) -> bool + Send + Sync + 'static) -> Self {
        self.is_ours = Some(Arc::new(is_ours));
        self
    }

    /// The same, but who has the same `share` waits for each other, and shares take turns: none of them
    /// fills the queue for all.
    pub fn shared(mut self, share: impl Fn(&Encoded) -> u32 + Send + Sync + 'static) -> Self {
        self.share = Arc::new(share);
        self
    }

    /// The same, but those that `is_first` recognises go before all others, whatever makes them due: they
    /// have the best lane to themselves, and what is wanted of the others comes in the one of events.
    pub fn first(mut self, is_first: impl Fn(&Encoded) -> bool + Send + Sync + 'static) -> Self {
        self.is_first = Some(Arc::new(is_first));
        self
    }
}

/// Differs with every write.
pub fn every_write(object: &Encoded) -> u64 {
    stable_hash([&*object.head().uid.0, &object.resource_version().0])
}

/// Differs with every write but those of `status` alone.
pub fn except_status(object: &Encoded) -> u64 {
    let (metadata, rest) = (object.body().metadata(), object.body().rest());
    // Both are JSON that was written from a tree, so they are text.
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
    stable_hash([&*object.head().uid.0, text(metadata), text(rest)])
}

/// Differs with every new generation, which a wish to be gone is as well, and with the value of one
/// annotation, by which a look can be asked for. Finalizers and labels do not count: who takes its own
/// finalizer away is not run once more for that.
pub fn generation_or(annotation: &'static str) -> impl Fn(&Encoded) -> u64 + Send + Sync + 'static {
    #[derive(Default, serde::Deserialize)]
    struct Metadata {
        #[serde(default)]
        annotations: std::collections::BTreeMap<String, String>,
    }
    move |object| {
        let head = object.head();
        let metadata: Metadata = serde_json::from_slice(object.body().metadata()).unwrap_or_default();
        let asked = metadata.annotations.get(annotation).map_or("", String::as_str);
        stable_hash([&*head.uid.0, &head.generation.to_string(), asked])
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("query", &self.query).field("reason", &self.reason).finish()
    }
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").field("query", &self.query).finish()
    }
}
