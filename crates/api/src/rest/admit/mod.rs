//! What is asked of resources, types and everything else that has a number, in the one write path.
//!
//! In this order: who reconciles it, its number and its finalizer, its schema with defaults, webhooks.

mod definitions;
mod numbered;
mod resources;

use resources::Asking;
pub use resources::{PART_BYTES_MAX, check_spec, finalizer, is_too_large};

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::no8s::{self, is_ours};
use concert_model::{Encoded, GroupKind, Object};
use concert_store::{By, Clock, Deleted, Error, Local, Store};
use serde_json::Value;

use super::ids::Ids;
use super::index::Index;
use super::types::{Kept, definition_kind};
use crate::auth::User;
use crate::write::{Act, Admission, Denied, Written};

/// Tries at saying in its status that a resource is to go, while its worker writes too.
const TRIES_MAX: usize = 8;

/// Those who are asked from outside.
#[async_trait]
pub trait Webhooks: Send + Sync + 'static {
    /// Asks everybody concerned about a resource, in the view of REST: `new` is what it would be, or for a
    /// deletion what it is. They may change its `spec`.
    ///
    /// # Errors
    /// [`Denied::Forbidden`] with the words of who said no.
    async fn admit(
        &self,
        user: &User,
        act: Act,
        old: Option<&Value>,
        new: &mut Value,
        is_dry_run: bool,
    ) -> Result<(), Denied>;
}

/// Nobody outside.
#[async_trait]
impl Webhooks for () {
    async fn admit(
        &self,
        _user: &User,
        _act: Act,
        _old: Option<&Value>,
        _new: &mut Value,
        _is_dry_run: bool,
    ) -> Result<(), Denied> {
        Ok(())
    }
}

/// The admission of this door's things.
pub struct Admit {
    store: Local,
    clock: Arc<dyn Clock>,
    ids: Ids,
    index: Arc<Index>,
    kept: Arc<Kept>,
    webhooks: Arc<dyn Webhooks>,
}

impl Admit {
    pub(super) fn new(
        store: Local,
        clock: Arc<dyn Clock>,
        ids: Ids,
        (index, kept): (Arc<Index>, Arc<Kept>),
        webhooks: Arc<dyn Webhooks>,
    ) -> Self {
        Self { store, clock, ids, index, kept, webhooks }
    }

    /// Says in the status of a resource that it is to go, so that whoever reads it next sees that.
    async fn mark_deleting(&self, mut object: Encoded) -> Encoded {
        for _ in 0..TRIES_MAX {
            let mut marked = object.decode();
            let status = no8s::deleting(&marked, self.clock.now());
            marked.set("status", status);
            match self.store.update_status(marked, &By::actor("concert").because("delete")).await {
                Ok(written) => return written,
                Err(Error::Conflict { key }) => match self.store.get(&key).await {
                    Ok(newer) if newer.head().uid == object.head().uid => object = newer,
                    _ => return object,
                },
                Err(error) => {
                    tracing::warn!(key = %object.key(), %error, "cannot say in its status that it is to go");
                    return object;
                }
            }
        }
        object
    }
}

#[async_trait]
impl Admission for Admit {
    fn concerns(&self, kind: &GroupKind) -> bool {
        is_ours(&kind.group) || *kind == definition_kind() || numbered::counter(kind).is_some()
    }

    async fn admit(
        &self,
        user: &User,
        act: Act,
        old: Option<&Object>,
        new: Option<&mut Object>,
        is_dry_run: bool,
    ) -> Result<(), Denied> {
        let Some(object) = new.as_deref().or(old) else { return Ok(()) };
        let kind = object.gvk().map_err(|error| Denied::BadRequest(error.to_string()))?.group_kind;
        if let Some(counter) = numbered::counter(&kind) {
            return numbered::admit(&self.ids, counter, old, new, is_dry_run).await;
        }
        if kind == definition_kind() {
            return definitions::admit(&self.ids, old, new, is_dry_run).await;
        }
        let Some(typed) = self.kept.of(&self.store, &kind).await? else { return Ok(()) };
        Asking { admit: self, typed: &typed, user, is_dry_run }.admit(act, old, new).await
    }

    async fn committed(&self, act: Act, old: Option<&Encoded>, written: Written) -> Written {
        match (act, written) {
            (_, Written::Deleted(Deleted::Waiting(object))) if is_ours(&object.key().kind.group) => {
                let is_first = old.is_none_or(|old| old.head().deleted_at.is_none());
                let object = if is_first { self.mark_deleting(object).await } else { object };
                Written::Deleted(Deleted::Waiting(object))
            }
            (_, Written::Deleted(Deleted::Gone(object))) => {
                self.index.forget(&object);
                Written::Deleted(Deleted::Gone(object))
            }
            (Act::Create, written) => {
                let object = written.into_object();
                if is_ours(&object.key().kind.group) {
                    self.index.note(&object);
                }
                Written::Created(object)
            }
            (_, written) => written,
        }
    }
}
