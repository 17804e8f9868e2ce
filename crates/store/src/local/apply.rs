//! Server-side apply: a caller says which fields it wants, and only those.

use concert_model::{Encoded, FieldError, FieldPath, Object, ObjectKey, Timestamp};
use concert_schema::apply::{self as ssa, ApplyError, Operation};
use serde_json::Value;

use super::admit::{self, describe};
use super::kinds::{Served, Version};
use super::ownership::{self, Ownership};
use super::write::{Attempt, TRIES_MAX, check_scope};
use super::{Inner, Local, builtin};
use crate::contract::{By, Part, Result};
use crate::error::Error;

/// What came of an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The object as it is stored now.
    pub object: Encoded,
    /// True if there was none before.
    pub is_new: bool,
}

impl Local {
    /// Makes the fields in `applied` so, as the manager that `by` names: creates the object or changes the
    /// one that is there, and takes away what the manager alone applied before and no longer does.
    ///
    /// # Guarantees
    /// - As [`crate::Store::create`], [`crate::Store::update`] or, for [`Part::Status`],
    ///   [`crate::Store::update_status`].
    /// - Repeated against a fresh read a bounded number of times when others write, unless `applied` names a
    ///   resource version.
    /// - The object says in `metadata.managedFields` who owns what, from now on after every write.
    ///
    /// # Errors
    /// [`Error::Contested`] when others own what it would change, unless it is forced; [`Error::Invalid`]
    /// without a name; [`Error::Conflict`] when the object is not the one or the state that it names.
    pub async fn apply(&self, applied: Object, part: Part, force: bool, by: &By) -> Result<Applied> {
        let key = applied.key().map_err(|e| Error::invalid(describe(&applied), e))?;
        let inner = self.inner();
        for _ in 0..TRIES_MAX {
            let served = inner.find_kind(&key.kind).await?;
            let current = inner.fetch(&key).await?;
            let wish = Wish::read(&served, applied.clone(), current.as_ref(), part, force, by)?;
            match inner.try_apply(&wish, &key, current.as_ref(), by).await {
                Err(Attempt::Moved | Attempt::Redefined | Attempt::Taken(_)) => inner.refresh().await?,
                // Deleted since it was read: it is made anew.
                Err(Attempt::Failed(Error::NotFound { key: gone })) if gone == key && current.is_some() => {}
                outcome => return outcome.map_err(|attempt| attempt.into_error(&key)),
            }
        }
        Err(Error::Conflict { key })
    }
}

impl Inner {
    async fn try_apply(
        &self,
        wish: &Wish<'_>,
        key: &ObjectKey,
        current: Option<&Encoded>,
        by: &By,
    ) -> Result<Applied, Attempt> {
        let now = self.clock.now();
        let live = current.map(|current| wish.live(current));
        let merged = wish.merged(key, live.as_ref(), by, now)?;
        let mut object = Object::from_value(merged).map_err(|e| Error::invalid(key.to_string(), e))?;
        if let Some(current) = current {
            let (served, part) = (wish.served, wish.part);
            let object = self.replace(served, current, object, part, by, Ownership::Settled).await?;
            return Ok(Applied { object, is_new: false });
        }
        if wish.part == Part::Status {
            return Err(Error::NotFound { key: key.clone() }.into());
        }
        let object = self.try_create(wish.served, &mut object, by, Ownership::Settled).await?;
        Ok(Applied { object, is_new: true })
    }
}

/// What somebody wants to be so, made fit to be merged.
struct Wish<'a> {
    served: &'a Served,
    version: &'a Version,
    applied: Value,
    api_version: String,
    part: Part,
    force: bool,
}

impl<'a> Wish<'a> {
    fn read(
        served: &'a Served,
        mut applied: Object,
        current: Option<&Encoded>,
        part: Part,
        force: bool,
        by: &By,
    ) -> Result<Self> {
        check(served, &applied, current)?;
        let version = admit::version_of(served, &applied, current.map(Encoded::head))?;
        let errors = builtin::normalise(&served.kind.group_kind, &mut applied);
        if !errors.is_empty() {
            return Err(Error::Invalid { what: describe(&applied), errors });
        }
        admit::prune(version, &mut applied, by)?;
        match part {
            Part::Main if served.kind.has_status => applied.set("status", Value::Null),
            Part::Main => {}
            Part::Status => applied = only_status(&applied),
        }
        let api_version = applied.api_version().to_owned();
        let applied = applied.into_value();
        Ok(Self { served, version, applied, api_version, part, force })
    }

    /// What is there, as this version sees it.
    fn live(&self, current: &Encoded) -> Value {
        let mut live = current.decode();
        live.set("apiVersion", self.api_version.as_str().into());
        live.into_value()
    }

    fn merged(&self, key: &ObjectKey, live: Option<&Value>, by: &By, now: Timestamp) -> Result<Value> {
        let manager = ownership::manager(by, Operation::Apply, &self.api_version, self.part, now);
        let merged = ssa::apply(&self.version.schema, live, &self.applied, &manager, self.force);
        merged.map_err(|error| match error {
            ApplyError::Conflicts(conflicts) => Error::Contested { key: key.clone(), conflicts },
            ApplyError::Invalid(errors) => Error::Invalid { what: key.to_string(), errors },
        })
    }
}

/// What is wrong with an apply, whatever it wants.
fn check(served: &Served, applied: &Object, current: Option<&Encoded>) -> Result<()> {
    let invalid = |error| Error::invalid(describe(applied), error);
    applied.check_depth().map_err(invalid)?;
    check_scope(served, applied)?;
    if applied.name().is_empty() {
        return Err(invalid(FieldError::required(FieldPath::new("metadata.name"), "name is required")));
    }
    let fields = applied.metadata(ownership::FIELD);
    if !fields.is_null() && fields.as_array().is_none_or(|entries| !entries.is_empty()) {
        let path = FieldPath::new("metadata.managedFields");
        return Err(invalid(FieldError::forbidden(path, "must not be set when applying")));
    }
    let is_meant = |current: &Encoded| {
        applied.uid().is_none_or(|uid| uid == current.head().uid)
            && applied.resource_version().is_none_or(|version| version == *current.resource_version())
    };
    let is_any = applied.uid().is_none() && applied.resource_version().is_none();
    if current.map_or(is_any, is_meant) {
        return Ok(());
    }
    Err(Error::Conflict { key: applied.key().map_err(invalid)? })
}

fn only_status(applied: &Object) -> Object {
    let mut only = applied.clone();
    for (field, _) in applied.as_map() {
        if !matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            only.set(field, Value::Null);
        }
    }
    for (field, _) in applied.get("metadata").as_object().into_iter().flatten() {
        if !matches!(field.as_str(), "name" | "namespace") {
            only.set_metadata(field, Value::Null);
        }
    }
    only
}
