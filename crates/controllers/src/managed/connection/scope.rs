//! From an owner or a label to a key, where only the store knows whether the kind has namespaces.

use std::sync::{Arc, OnceLock};

use concert_model::{GroupKind, ObjectKey};
use concert_store::Store;
use futures_util::FutureExt;

/// One kind, and whether its objects live in namespaces once that is known.
pub struct Scope {
    store: Arc<dyn Store>,
    kind: GroupKind,
    is_namespaced: OnceLock<bool>,
}

impl Scope {
    pub fn new(store: Arc<dyn Store>, kind: GroupKind) -> Self {
        Self { store, kind, is_namespaced: OnceLock::new() }
    }

    pub fn kind(&self) -> &GroupKind {
        &self.kind
    }

    /// The keys that an object of this kind and name may have, seen from `namespace`. One, unless the
    /// store would have to think about the kind: then both, for a key too many costs one look at
    /// nothing, and one too few loses a change.
    pub fn keys(&self, namespace: &Arc<str>, name: &str) -> Vec<ObjectKey> {
        let outside = || ObjectKey::cluster(self.kind.clone(), name);
        let inside = || ObjectKey::namespaced(self.kind.clone(), namespace.clone(), name);
        match self.is_namespaced() {
            Some(true) => vec![inside()],
            Some(false) => vec![outside()],
            None => vec![inside(), outside()],
        }
    }

    fn is_namespaced(&self) -> Option<bool> {
        if let Some(known) = self.is_namespaced.get() {
            return Some(*known);
        }
        // A source maps objects between two of its awaits, so there is no waiting here. A store that
        // watches a kind knows it.
        let kind = self.store.kind(&self.kind).now_or_never()?.ok()?;
        Some(*self.is_namespaced.get_or_init(|| kind.is_namespaced))
    }
}
