//! Which kinds are served right now.
//!
//! Built-in ones, and one for each CustomResourceDefinition. Kept up to date by the writer as
//! definitions are committed, before their writer is answered.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use concert_model::{Encoded, GroupKind, ObjectKey, Revision};
use concert_schema::Schema;

use super::hub::Published;
use super::{Local, builtin, definition, revision_of};
use crate::backend::Act;
use crate::contract::{PageRequest, Query, Result, Store};
use crate::error::Error;
use crate::kind::Kind;

/// A kind, with what is needed to admit objects of it.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) kind: Arc<Kind>,
    /// One for each version.
    pub(super) schemas: Vec<(Arc<str>, Schema)>,
    /// The definition it comes from, as it was then; none for built-in kinds.
    pub(super) definition: Option<(ObjectKey, Revision)>,
    /// The definition is being deleted: no new objects.
    pub(super) is_terminating: bool,
}

impl Served {
    /// The schema of one version.
    pub(super) fn schema(&self, version: &str) -> Option<&Schema> {
        self.schemas.iter().find(|(v, _)| &**v == version).map(|(_, schema)| schema)
    }
}

pub(super) struct Kinds(RwLock<HashMap<GroupKind, Arc<Served>>>);

impl Kinds {
    pub(super) fn built_in() -> Self {
        let all = builtin::all().into_iter().map(|served| (served.kind.group_kind.clone(), Arc::new(served)));
        Self(RwLock::new(all.collect()))
    }

    /// How a kind is served.
    pub(super) fn find(&self, kind: &GroupKind) -> Result<Arc<Served>> {
        let kinds = self.0.read().unwrap_or_else(PoisonError::into_inner);
        kinds.get(kind).cloned().ok_or_else(|| Error::UnknownKind { kind: kind.clone() })
    }

    /// All kinds, in order.
    pub(super) fn all(&self) -> Vec<Arc<Kind>> {
        let kinds = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = kinds.values().map(|served| served.kind.clone()).collect();
        all.sort_by(|a, b| a.group_kind.cmp(&b.group_kind));
        all
    }

    /// The kind, if another definition than `definition` or we ourselves have it already, or one in its
    /// group that has already taken `plural`.
    pub(super) fn who_has(&self, kind: &GroupKind, plural: &str, definition: &str) -> Option<GroupKind> {
        let kinds = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_other = |served: &&Arc<Served>| {
            served.definition.as_ref().is_none_or(|(key, _)| *key.name != *definition)
        };
        let has =
            |other: &GroupKind, taken: &str| other == kind || other.group == kind.group && taken == plural;
        let others = kinds.values().filter(is_other).map(|served| &served.kind);
        others
            .filter(|other| has(&other.group_kind, &other.plural))
            .map(|other| other.group_kind.clone())
            .min()
    }

    /// Takes note of a committed change, if it is one to a definition.
    pub(super) fn learn(&self, change: &Published) {
        if !definition::is_definition(&change.object.key().kind) {
            return;
        }
        if change.act == Act::Removed {
            let kind = definition::defined_kind(&change.object.decode());
            let mut kinds = self.0.write().unwrap_or_else(PoisonError::into_inner);
            // One that was never accepted goes without taking the kind of another with it.
            let is_its = |served: &Arc<Served>| {
                served.definition.as_ref().is_some_and(|(key, _)| key == change.object.key())
            };
            if kinds.get(&kind).is_some_and(is_its) {
                kinds.remove(&kind);
            }
            return;
        }
        self.register(&change.object);
    }

    /// Serves what a stored definition says.
    fn register(&self, encoded: &Encoded) {
        let revision = revision_of(encoded.resource_version()).unwrap_or_default();
        match definition::serve(&encoded.decode(), encoded.key().clone(), revision) {
            Ok(served) => {
                let kind = served.kind.group_kind.clone();
                self.0.write().unwrap_or_else(PoisonError::into_inner).insert(kind, Arc::new(served));
            }
            // It was admitted, so only an older program with laxer rules can have stored it.
            Err(errors) => {
                let error = errors.first().map(ToString::to_string).unwrap_or_default();
                tracing::warn!(definition = %encoded.key(), error, "definition cannot be served");
            }
        }
    }
}

impl Local {
    /// All kinds that are served, in order of group and kind.
    pub fn kinds(&self) -> Vec<Arc<Kind>> {
        self.inner().shared.kinds.all()
    }

    /// Serves every definition there is; called once, before anybody else has the store.
    pub(super) fn load_kinds(&self) -> Result<()> {
        let everything = |_: &ObjectKey, _: &[u8]| true;
        let range = self.inner().backend.range(&crate::backend::Scan {
            kind: &definition::kind(),
            namespace: None,
            after: None,
            at: None,
            limit: usize::MAX,
            keep: &everything,
        })?;
        for row in range.rows {
            self.inner().shared.kinds.register(&self.inner().unseal(row)?);
        }
        Ok(())
    }

    /// Checks that every payload can be opened, page by page: for after a restore.
    ///
    /// # Errors
    /// The first object that cannot be read.
    pub async fn verify(&self) -> Result<usize> {
        let mut count = 0;
        for kind in self.kinds() {
            let query = Query::all(kind.group_kind.clone());
            let mut request = PageRequest { limit: Some(500), token: None };
            loop {
                let page = self.list(&query, &request).await?;
                count += page.items.len();
                request.token = page.next;
                if request.token.is_none() {
                    break;
                }
            }
        }
        Ok(count)
    }
}
