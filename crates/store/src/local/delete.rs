//! Letting objects go.

use concert_model::{Body, Encoded, Object, ObjectKey, time};
use serde_json::json;

use super::kinds::Served;
use super::write::{Attempt, TRIES_MAX, Turn, pending};
use super::{Inner, admit, builtin};
use crate::backend::Act;
use crate::contract::{By, Delete, Deleted, Propagation, Result};
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
        let (old, now, turn) = (current.body(), self.clock.now(), Turn::none());
        let mut object = current.decode();
        let is_news = mark(&mut object, options.propagation);
        if pending(served, &object).is_empty() {
            let last = if is_news {
                admit::encode(served, &old.key, old.head.clone(), &object)?
            } else {
                Body::clone(old)
            };
            return self.write_over(current, Act::Removed, last, by, now, &turn).await.map(Deleted::Gone);
        }
        if old.head.deleted_at.is_some() {
            if !is_news {
                return Ok(Deleted::Waiting(current.clone()));
            }
            let body = admit::encode(served, &old.key, old.head.clone(), &object)?;
            return self.write_over(current, Act::Updated, body, by, now, &turn).await.map(Deleted::Waiting);
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
        self.write_over(current, Act::Updated, body, by, now, &turn).await.map(Deleted::Waiting)
    }
}

/// Has the finalizers of the collector say what is asked for, and says whether that is news.
fn mark(object: &mut Object, propagation: Propagation) -> bool {
    if propagation == Propagation::Unsaid {
        return false;
    }
    let wanted = propagation.finalizer();
    let all = [Propagation::Foreground, Propagation::Orphan].map(Propagation::finalizer);
    let mut is_news = false;
    for other in all.into_iter().flatten().filter(|it| wanted != Some(*it)) {
        is_news |= object.remove_finalizer(other);
    }
    is_news | wanted.is_some_and(|wanted| object.add_finalizer(wanted))
}
