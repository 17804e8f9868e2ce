//! Letting objects go.

use concert_model::{Body, Encoded, ObjectKey, time};
use serde_json::json;

use super::kinds::Served;
use super::write::{Attempt, TRIES_MAX, Turn, pending};
use super::{Inner, admit, builtin};
use crate::backend::Act;
use crate::contract::{By, Delete, Deleted, Result};
use crate::error::Error;

impl Inner {
    pub(super) async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        let served = self.find_kind(&key.kind).await?;
        let conflict = || Error::Conflict { key: key.clone() };
        for _ in 0..TRIES_MAX {
            let current = self.fetch(key).await?.ok_or_else(|| Error::NotFound { key: key.clone() })?;
            let is_meant = options.uid.as_ref().is_none_or(|uid| *uid == current.head().uid)
                && options.resource_version.as_ref().is_none_or(|v| v == current.resource_version());
            if !is_meant {
                return Err(conflict());
            }
            match self.try_delete(&served, &current, options, by).await {
                Err(Attempt::Moved) => {}
                other => return other.map_err(|attempt| attempt.into_error(key)),
            }
        }
        Err(conflict())
    }

    async fn try_delete(
        &self,
        served: &Served,
        current: &Encoded,
        options: &Delete,
        by: &By,
    ) -> Result<Deleted, Attempt> {
        let (old, now) = (current.body(), self.clock.now());
        if old.head.deleted_at.is_some() {
            return Ok(Deleted::Waiting(current.clone()));
        }
        let mut object = current.decode();
        if let Some(finalizer) = options.propagation.finalizer() {
            object.add_finalizer(finalizer);
        }
        if pending(served, &object).is_empty() {
            let turn = Turn::none();
            let gone = self.write_over(current, Act::Removed, Body::clone(old), by, now, &turn).await?;
            return Ok(Deleted::Gone(gone));
        }
        object.set_metadata("deletionTimestamp", time::seconds(now).into());
        object.set_metadata("deletionGracePeriodSeconds", 0.into());
        if served.kind.has_generation {
            object.set_metadata("generation", (old.head.generation + 1).into());
        }
        if served.kind.group_kind == builtin::namespace_kind() {
            object.get_mut("status")["phase"] = json!("Terminating");
        }
        let mut head = old.head.clone();
        head.deleted_at = object.deleted_at();
        let body = admit::encode(served, &old.key, head, &object)?;
        self.write_over(current, Act::Updated, body, by, now, &Turn::none()).await.map(Deleted::Waiting)
    }
}
