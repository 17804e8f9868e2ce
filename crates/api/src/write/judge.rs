//! Writes that somebody else is asked about first.
//!
//! The object is judged as it would be stored, which a dry run shows, and committed only over the state
//! it was judged by. What was changed on the way is written with it, and owned by nobody.

use concert_model::{Encoded, GroupKind, Object, ObjectKey};
use concert_store::{By, Error, Part, Warnings};

use super::writer::TRIES_MAX;
use super::{Act, Operation, Refused, Writer, Written, pin};
use crate::auth::{User, is_sensitive};

/// One write that is judged.
struct Case<'a> {
    user: &'a User,
    key: &'a ObjectKey,
    current: Option<&'a Encoded>,
    by: &'a By,
}

impl Writer {
    /// Whether an operation is to be judged: what is no change of status, of a kind that concerns
    /// somebody.
    pub(super) fn is_judged(&self, operation: &Operation, kind: &GroupKind) -> bool {
        let part = match operation {
            Operation::Update(_, part) | Operation::Patch(_, part, _) | Operation::Apply { part, .. } => {
                *part
            }
            Operation::Create(_) | Operation::Delete(..) => Part::Main,
        };
        part == Part::Main && self.admission.concerns(kind)
    }

    /// As [`Writer::write`], with a judgement before it is committed.
    pub(super) async fn write_judged(
        &self,
        user: &User,
        key: &ObjectKey,
        operation: Operation,
        by: &By,
    ) -> Result<Written, Refused> {
        for _ in 0..TRIES_MAX {
            let current = self.current(key).await?;
            let case = Case { user, key, current: current.as_ref(), by };
            match self.judge(&case, operation.clone()).await {
                // Judged by a state that is no longer the stored one: judge again.
                Err(Refused::Store(_)) if self.has_moved(key, current.as_ref()).await? => {}
                Err(refused) => return Err(refused),
                Ok((_, written)) if by.is_dry_run => return Ok(written),
                Ok((act, written)) => {
                    return Ok(self.admission.committed(act, current.as_ref(), written).await);
                }
            }
        }
        Err(Error::Conflict { key: key.clone() }.into())
    }

    async fn judge(&self, case: &Case<'_>, operation: Operation) -> Result<(Act, Written), Refused> {
        match operation {
            Operation::Create(mut object) => {
                self.admit(case, Act::Create, None, Some(&mut object)).await?;
                Ok((Act::Create, self.commit_checked(case, Operation::Create(object)).await?))
            }
            Operation::Delete(key, mut options) => {
                let Some(current) = case.current else { return Err(Error::NotFound { key }.into()) };
                self.admit(case, Act::Delete, Some(&current.decode()), None).await?;
                options.resource_version.get_or_insert_with(|| current.resource_version().clone());
                Ok((Act::Delete, self.commit(Operation::Delete(key, options), case.by).await?))
            }
            change @ (Operation::Update(..) | Operation::Patch(..) | Operation::Apply { .. }) => {
                self.judge_change(case, change).await
            }
        }
    }

    /// An update, patch or apply.
    async fn judge_change(&self, case: &Case<'_>, change: Operation) -> Result<(Act, Written), Refused> {
        let is_apply = matches!(change, Operation::Apply { .. });
        if is_apply && case.current.is_none() {
            // An apply of what is not there is a creation, and needs the right to that as well.
            self.may_create(case.user, case.key).await??;
        }
        let change = match case.current {
            Some(current) if !is_blind(&change) => pin::to(change, current.resource_version()),
            _ => change,
        };
        let trial = By { is_dry_run: true, warnings: Warnings::default(), ..case.by.clone() };
        let shown = self.commit(change.clone(), &trial).await?;
        let act = if matches!(shown, Written::Created(_)) { Act::Create } else { Act::Update };
        let shown = shown.into_object().decode();
        let mut judged = shown.clone();
        let old = case.current.map(Encoded::decode);
        self.admit(case, act, old.as_ref(), Some(&mut judged)).await?;
        if judged == shown {
            return Ok((act, self.commit_checked(case, change).await?));
        }
        if is_sensitive(&case.key.kind) {
            self.check_rights(case, &judged).await?;
        }
        let written = self.store.write_settled(judged, case.current, case.by).await?;
        Ok((act, if act == Act::Create { Written::Created(written) } else { Written::Updated(written) }))
    }

    async fn admit(
        &self,
        case: &Case<'_>,
        act: Act,
        old: Option<&Object>,
        new: Option<&mut Object>,
    ) -> Result<(), Refused> {
        Ok(self.admission.admit(case.user, act, old, new, case.by.is_dry_run).await?)
    }

    /// Commits what was judged, unless it gives away what the user does not have.
    async fn commit_checked(&self, case: &Case<'_>, operation: Operation) -> Result<Written, Refused> {
        if is_sensitive(&case.key.kind) {
            self.check_escalation(case.user, operation.clone(), case.current, case.by).await?;
        }
        Ok(self.commit(operation, case.by).await?)
    }

    async fn check_rights(&self, case: &Case<'_>, new: &Object) -> Result<(), Refused> {
        let old = case.current.map(Encoded::decode);
        Ok(self.gate.check_write(case.user, old.as_ref(), new).await?)
    }
}

/// An update that names no state: the store has an answer to that.
fn is_blind(operation: &Operation) -> bool {
    matches!(operation, Operation::Update(object, _) if object.resource_version().is_none())
}
