//! From an operation to a commit.

use std::sync::Arc;

use concert_model::{Encoded, GroupKind, ObjectKey};
use concert_store::{By, Error, Local, Part, Store, Warnings};

use super::{Admissions, Change, Denied, Operation, Written, pin};
use crate::auth::{Access, Gate, Refusal, User, is_sensitive};

/// Tries at a write that others keep overtaking, where it may be tried again at all.
pub(super) const TRIES_MAX: usize = 16;

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The caller may not.
    #[error(transparent)]
    Gate(#[from] Refusal),
    /// Somebody who is asked about objects of this kind says no.
    #[error(transparent)]
    Denied(Denied),
    /// The store will not.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<Denied> for Refused {
    fn from(denied: Denied) -> Self {
        match denied {
            // Whoever is asked reads the store as well, and what that says needs no other words.
            Denied::Store(error) => Self::Store(error),
            other => Self::Denied(other),
        }
    }
}

/// The namespaces that Kubernetes keeps from being deleted.
fn is_immortal(key: &ObjectKey) -> bool {
    let is_namespace = key.kind.group.is_empty() && &*key.kind.kind == "Namespace";
    is_namespace && matches!(&*key.name, "default" | "kube-system" | "kube-public")
}

/// Writes on behalf of users. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    pub(super) store: Local,
    pub(super) gate: Gate,
    pub(super) admission: Admissions,
}

impl Writer {
    /// One that writes to `store` what `gate` lets through.
    pub fn new(store: Local, gate: Gate) -> Self {
        Self { store, gate, admission: Arc::new(()) }
    }

    /// The same, that asks `admission` first.
    #[must_use]
    pub fn with_admission(self, admission: Admissions) -> Self {
        Self { admission, ..self }
    }

    /// Does `operation` for `user`, who was allowed its verb already.
    ///
    /// # Errors
    /// [`Refused::Gate`] for what the stored state shows to be more than that verb; [`Refused::Denied`] for
    /// what somebody who is asked forbids, and for the end of a namespace that everything counts on;
    /// [`Refused::Store`] for everything else.
    pub async fn write(&self, user: &User, operation: Operation, by: &By) -> Result<Written, Refused> {
        let key = operation.key()?;
        if matches!(operation, Operation::Delete(..)) && is_immortal(&key) {
            return Err(Denied::Forbidden("this namespace may not be deleted".into()).into());
        }
        if self.is_judged(&operation, &key.kind) {
            return self.write_judged(user, &key, operation, by).await;
        }
        if !self.depends_on_stored(&operation, &key.kind)? {
            return Ok(self.commit(operation, by).await?);
        }
        for _ in 0..TRIES_MAX {
            let current = self.current(&key).await?;
            match self.write_over(user, &key, operation.clone(), current.as_ref(), by).await {
                // Judged by a state that is no longer the stored one: judge again.
                Err(Refused::Store(_)) if self.has_moved(&key, current.as_ref()).await? => {}
                outcome => return outcome,
            }
        }
        Err(Error::Conflict { key }.into())
    }

    /// Whether more than the operation itself decides.
    fn depends_on_stored(&self, operation: &Operation, kind: &GroupKind) -> Result<bool, Error> {
        Ok(match operation {
            Operation::Delete(..) => false,
            Operation::Apply { .. } => true,
            Operation::Update(object, _) if object.resource_version().is_none() => {
                is_sensitive(kind) || self.is_overwritable(kind)?
            }
            Operation::Create(_) | Operation::Update(..) | Operation::Patch(..) => is_sensitive(kind),
        })
    }

    /// Kubernetes lets its own kinds be overwritten blindly, save these two and everything custom.
    fn is_overwritable(&self, kind: &GroupKind) -> Result<bool, Error> {
        let is_exempt = matches!(&*kind.kind, "Lease" | "CustomResourceDefinition");
        Ok(!is_exempt && self.store.card(kind)?.is_built_in)
    }

    /// One try, based on `current`.
    async fn write_over(
        &self,
        user: &User,
        key: &ObjectKey,
        operation: Operation,
        current: Option<&Encoded>,
        by: &By,
    ) -> Result<Written, Refused> {
        let is_pinned = match (&operation, current) {
            (Operation::Apply { .. }, None) => {
                // An apply of what is not there is a creation, and needs the right to that as well.
                self.may_create(user, key).await??;
                false
            }
            // Should it vanish meanwhile, this must not make it anew.
            (Operation::Apply { .. }, Some(_)) => self.may_create(user, key).await?.is_err(),
            (Operation::Update(..), None) => return Err(Error::NotFound { key: key.clone() }.into()),
            (Operation::Update(object, _), Some(_)) => {
                object.resource_version().is_none() && self.is_overwritable(&key.kind)?
            }
            _ => false,
        };
        let operation = match current {
            Some(current) if is_pinned || is_sensitive(&key.kind) => {
                pin::to(operation, current.resource_version())
            }
            _ => operation,
        };
        if is_sensitive(&key.kind) {
            self.check_escalation(user, operation.clone(), current, by).await?;
        }
        Ok(self.commit(operation, by).await?)
    }

    /// Nobody gives away more than they have: asked about the object as it would be stored.
    pub(super) async fn check_escalation(
        &self,
        user: &User,
        operation: Operation,
        current: Option<&Encoded>,
        by: &By,
    ) -> Result<(), Refused> {
        let trial = By { is_dry_run: true, warnings: Warnings::default(), ..by.clone() };
        let new = self.commit(operation, &trial).await?.into_object().decode();
        let old = current.map(Encoded::decode);
        Ok(self.gate.check_write(user, old.as_ref(), &new).await?)
    }

    pub(super) async fn current(&self, key: &ObjectKey) -> Result<Option<Encoded>, Error> {
        match self.store.get(key).await {
            Ok(current) => Ok(Some(current)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn has_moved(&self, key: &ObjectKey, before: Option<&Encoded>) -> Result<bool, Error> {
        let now = self.current(key).await?;
        Ok(now.as_ref().map(Encoded::resource_version) != before.map(Encoded::resource_version))
    }

    pub(super) async fn may_create(
        &self,
        user: &User,
        key: &ObjectKey,
    ) -> Result<Result<(), Refusal>, Error> {
        let card = self.store.card(&key.kind)?;
        let access = Access::Resource {
            verb: "create",
            group: &key.kind.group,
            resource: &card.kind.plural,
            subresource: "",
            namespace: &key.namespace,
            name: &key.name,
        };
        Ok(self.gate.authorise(user, &access).await)
    }

    pub(super) async fn commit(&self, operation: Operation, by: &By) -> Result<Written, Error> {
        let store = &self.store;
        match operation {
            Operation::Create(object) => store.create(object, by).await.map(Written::Created),
            Operation::Update(object, Part::Main) => store.update(object, by).await.map(Written::Updated),
            Operation::Update(object, Part::Status) => {
                store.update_status(object, by).await.map(Written::Updated)
            }
            Operation::Patch(key, part, Change::Plain { version, patch }) => {
                store.patch_as(&key, &version, part, &patch, by).await.map(Written::Updated)
            }
            Operation::Patch(key, part, Change::Strategic(patch)) => {
                store.patch_strategic(&key, part, &patch, by).await.map(Written::Updated)
            }
            Operation::Apply { object, part, is_forced } => {
                let applied = store.apply(object, part, is_forced, by).await?;
                let written = if applied.is_new { Written::Created } else { Written::Updated };
                Ok(written(applied.object))
            }
            Operation::Delete(key, options) => store.delete(&key, &options, by).await.map(Written::Deleted),
        }
    }
}
