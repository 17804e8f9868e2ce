//! What every write has in common.
//!
//! Everything is computed on the caller's task from a state that was read; the transaction then says
//! "if it is still so".

use std::sync::Arc;

use concert_model::{Body, Encoded, FieldError, FieldPath, GroupKind, Object, ObjectKey, Timestamp};
use serde_json::{Value, json};

use super::admit::describe;
use super::driver::{Job, ObjectWrite};
use super::kinds::Served;
use super::{Inner, builtin, definition, revision_of};
use crate::backend::{Act, Check, Done, Effect, Owner, Refusal, Stamp, Txn, Write};
use crate::contract::{By, Result};
use crate::error::Error;

/// Tries at a write that others keep overtaking, where a fresh read can be tried at all.
pub(super) const TRIES_MAX: usize = 64;

/// Why one try at a write did not succeed.
pub(super) enum Attempt {
    /// The name is not free.
    Taken(ObjectKey),
    /// What it was based on has changed.
    Moved,
    /// The kind is not defined as it was: what was made of the object may not be right any more.
    Redefined,
    Failed(Error),
}

impl Attempt {
    pub(super) fn into_error(self, key: &ObjectKey) -> Error {
        match self {
            Attempt::Taken(key) => Error::AlreadyExists { key },
            Attempt::Moved | Attempt::Redefined => Error::Conflict { key: key.clone() },
            Attempt::Failed(error) => error,
        }
    }
}

impl From<Error> for Attempt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The turn of a write, to be held until it is committed.
pub(super) struct Turn<'a> {
    _held: Option<tokio::sync::MutexGuard<'a, ()>>,
    /// What other processes must not have written since.
    checks: Vec<Check>,
}

impl Turn<'_> {
    /// For writes that nobody has to wait for.
    pub(super) fn none() -> Self {
        Self { _held: None, checks: Vec::new() }
    }

    /// For a write that was judged by this definition.
    pub(super) fn judged_by(mut self, served: &Served) -> Self {
        let definition = served.definition.clone();
        self.checks.extend(definition.map(|(key, revision)| Check::Object(key, Some(revision))));
        self
    }

    pub(super) fn checks(&self) -> impl Iterator<Item = Check> {
        self.checks.iter().cloned()
    }
}

impl Inner {
    /// The turn of a write of `kind`: definitions are written one after the other, so that two cannot be
    /// given the same names. Others need none.
    pub(super) async fn turn(&self, kind: &GroupKind) -> Result<Turn<'_>> {
        if !definition::is_definition(kind) {
            return Ok(Turn::none());
        }
        let held = self.defining.lock().await;
        self.refresh().await?;
        let others = self.is_shared().then(|| Check::Unwritten(kind.clone(), self.shared.hub.newest()));
        Ok(Turn { _held: Some(held), checks: others.into_iter().collect() })
    }

    /// Commits a state in the place of `current`.
    pub(super) async fn write_over(
        &self,
        current: &Encoded,
        act: Act,
        body: Body,
        by: &By,
        now: Timestamp,
        turn: &Turn<'_>,
    ) -> Result<Encoded, Attempt> {
        let body = Arc::new(body);
        if by.is_dry_run {
            return Ok(Encoded::new(body, current.resource_version().clone()));
        }
        let check = Check::Object(body.key.clone(), revision_of(current.resource_version()));
        let checks = std::iter::once(check).chain(turn.checks()).collect();
        self.commit(checks, act, body, Some(current.clone()), by, now).await
    }

    pub(super) async fn commit(
        &self,
        mut checks: Vec<Check>,
        act: Act,
        body: Arc<Body>,
        previous: Option<Encoded>,
        by: &By,
        now: Timestamp,
    ) -> Result<Encoded, Attempt> {
        checks.extend(by.fence.clone().map(Check::Fence));
        let write = self.sealed(&body, by, now);
        let effect = if act == Act::Removed { Effect::Remove(write) } else { Effect::Put(write) };
        let job = Job {
            txn: Txn { checks, effects: vec![effect] },
            writes: vec![ObjectWrite { act, body: body.clone(), previous }],
        };
        match self.driver.commit(job).await? {
            Ok(Done { revision, .. }) => Ok(Encoded::new(body, revision.unwrap_or_default().into())),
            Err(Refusal::Fenced(fence)) => Err(Error::fenced(&fence).into()),
            Err(Refusal::Changed { key, now: Some(_) }) if key == body.key && act == Act::Created => {
                Err(Attempt::Taken(key))
            }
            Err(Refusal::Changed { key, now: None }) if key == body.key => {
                Err(Error::NotFound { key }.into())
            }
            Err(Refusal::Changed { key, .. }) if key != body.key && definition::is_definition(&key.kind) => {
                Err(Attempt::Redefined)
            }
            Err(Refusal::Changed { .. } | Refusal::Written(_)) => Err(Attempt::Moved),
        }
    }

    /// A body as the backend stores it.
    pub(super) fn sealed(&self, body: &Body, by: &By, now: Timestamp) -> Write {
        Write {
            key: body.key.clone(),
            head: serde_json::to_vec(&body.head).unwrap_or_default().into(),
            payload: self.shared.seal.seal(&Owner::Object(body.key.clone()), body.payload()),
            stamp: Stamp {
                at: now,
                actor: by.actor.clone(),
                reason: by.reason.clone(),
                manager: by.manager.clone(),
            },
        }
    }
}

pub(super) fn check_scope(served: &Served, object: &Object) -> Result<()> {
    let field = FieldPath::new("metadata.namespace");
    let error = match (served.kind.is_namespaced, object.namespace().is_empty()) {
        (true, false) | (false, true) => return Ok(()),
        (true, true) => FieldError::required(field, "the kind is namespaced"),
        (false, false) => FieldError::forbidden(field, "the kind is cluster-scoped"),
    };
    Err(Error::invalid(describe(object), error))
}

/// What the store adds to objects of its own kinds.
pub(super) fn complete(served: &Served, inner: &Inner, object: &mut Object, now: Timestamp) {
    let kind = &served.kind.group_kind;
    if definition::is_definition(kind) {
        definition::establish(object, &inner.shared.kinds, now);
    }
    if *kind == builtin::namespace_kind() && object.deleted_at().is_none() {
        if object.spec().get("finalizers").is_none() {
            object.get_mut("spec")["finalizers"] = json!([builtin::NAMESPACE_FINALIZER]);
        }
        if object.status().is_null() {
            object.set("status", json!({"phase": "Active"}));
        }
    }
}

/// What an object that is being deleted still waits for.
pub(super) fn pending(served: &Served, object: &Object) -> Vec<String> {
    let mut all = object.finalizers();
    if served.kind.group_kind == builtin::namespace_kind() {
        let own = object.spec().get("finalizers").and_then(Value::as_array);
        all.extend(own.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    }
    all
}
