//! Who waits for what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concert_model::{GroupKind, ObjectKey};
use concert_store::Query;

use crate::outcome::Wait;

/// The objects that one watch covers: those of a kind in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scope {
    kind: GroupKind,
    namespace: Arc<str>,
}

impl Scope {
    pub fn of(key: &ObjectKey) -> Self {
        Self { kind: key.kind.clone(), namespace: key.namespace.clone() }
    }

    pub fn query(&self) -> Query {
        let all = Query::all(self.kind.clone());
        if self.namespace.is_empty() { all } else { all.in_namespace(self.namespace.clone()) }
    }
}

/// From what is waited for to the items that wait.
#[derive(Default)]
pub(super) struct Waits {
    by_object: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    by_label: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    /// Objects that are waited for in each scope.
    scopes: BTreeMap<Scope, usize>,
    /// Scopes whose watch has begun: what is read now cannot change unnoticed.
    watched: BTreeSet<Scope>,
}

impl Waits {
    pub fn insert(&mut self, item: &ObjectKey, waits: &[Wait]) {
        for wait in waits {
            match wait {
                Wait::Object { key, .. } => {
                    let items = self.by_object.entry(key.clone()).or_default();
                    if items.is_empty() {
                        *self.scopes.entry(Scope::of(key)).or_default() += 1;
                    }
                    items.insert(item.clone());
                }
                Wait::Label { label, .. } => {
                    self.by_label.entry(label.clone()).or_default().insert(item.clone());
                }
            }
        }
    }

    pub fn remove(&mut self, item: &ObjectKey, waits: &[Wait]) {
        for wait in waits {
            match wait {
                Wait::Object { key, .. } => self.remove_object(item, key),
                Wait::Label { label, .. } => {
                    let Some(items) = self.by_label.get_mut(label) else { continue };
                    items.remove(item);
                    if items.is_empty() {
                        self.by_label.remove(label);
                    }
                }
            }
        }
    }

    fn remove_object(&mut self, item: &ObjectKey, key: &ObjectKey) {
        let Some(items) = self.by_object.get_mut(key) else { return };
        items.remove(item);
        if !items.is_empty() {
            return;
        }
        self.by_object.remove(key);
        let scope = Scope::of(key);
        if let Some(count) = self.scopes.get_mut(&scope) {
            *count -= 1;
            if *count == 0 {
                self.scopes.remove(&scope);
            }
        }
    }

    /// Items that wait for an object.
    pub fn on_object(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        self.by_object.get(key).into_iter().flatten().cloned().collect()
    }

    /// Items that wait for a label.
    pub fn on_label(&self, label: &str) -> Vec<ObjectKey> {
        self.by_label.get(label).into_iter().flatten().cloned().collect()
    }

    /// Items that wait for anything in a scope.
    pub fn in_scope(&self, scope: &Scope) -> BTreeSet<ObjectKey> {
        let within = self.by_object.iter().filter(|(key, _)| Scope::of(key) == *scope);
        within.flat_map(|(_, items)| items.iter().cloned()).collect()
    }

    /// Scopes that must be watched.
    pub fn scopes(&self) -> impl Iterator<Item = &Scope> {
        self.scopes.keys()
    }

    pub fn is_watched(&self, scope: &Scope) -> bool {
        self.watched.contains(scope)
    }

    /// The scope that must be watched before `wait` can be verified, if it is not.
    pub fn missing_watch(&self, wait: &Wait) -> Option<Scope> {
        match wait {
            Wait::Object { key, .. } => Some(Scope::of(key)).filter(|it| !self.is_watched(it)),
            Wait::Label { .. } => None,
        }
    }

    pub fn set_watched(&mut self, scope: &Scope, is_watched: bool) {
        if is_watched {
            self.watched.insert(scope.clone());
        } else {
            self.watched.remove(scope);
        }
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.by_object.is_empty() && self.by_label.is_empty() && self.scopes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::widget;

    #[test]
    fn what_is_removed_leaves_nothing() {
        let mut waits = Waits::default();
        let both = [Wait::existence_of(widget("x")), Wait::label("section", None)];
        waits.insert(&widget("a"), &both);
        waits.insert(&widget("b"), &both[..1]);
        assert_eq!(waits.on_object(&widget("x")), [widget("a"), widget("b")]);
        assert_eq!(waits.on_label("section"), [widget("a")]);
        waits.remove(&widget("a"), &both);
        assert_eq!(waits.scopes().count(), 1);
        waits.remove(&widget("b"), &both);
        assert!(waits.is_empty());
    }
}
