//! Changing objects: update, status update, patch.

use concert_model::{Encoded, FieldError, FieldPath, Head, Object, ObjectKey, PatchError, time};
use serde_json::{Value, json};

use super::admit::{self, describe};
use super::kinds::Served;
use super::ownership::{self, Ownership};
use super::write::{Attempt, TRIES_MAX, Turn, check_scope, complete, pending};
use super::{Inner, builtin, definition};
use crate::backend::Act;
use crate::contract::{By, Part, Result};
use crate::error::Error;
use crate::unknown::UnknownFields;

impl Inner {
    pub(super) async fn update(&self, object: Object, part: Part, by: &By) -> Result<Encoded> {
        let invalid = |error| Error::invalid(describe(&object), error);
        let key = object.key().map_err(invalid)?;
        let mut tries = if self.is_shared() { TRIES_MAX } else { 1 };
        loop {
            let served = self.find_kind(&key.kind).await?;
            check_scope(&served, &object)?;
            let Some(version) = object.resource_version() else {
                let field = FieldPath::new("metadata.resourceVersion");
                return Err(invalid(FieldError::required(field, "must be specified for an update")));
            };
            let recent = self.shared.recent.find(&key, &version).filter(|_| !by.is_dry_run);
            let current = match recent {
                Some(recent) => recent,
                None => self.fetch(&key).await?.ok_or_else(|| Error::NotFound { key: key.clone() })?,
            };
            if *current.resource_version() != version {
                return Err(Error::Conflict { key });
            }
            tries -= 1;
            if tries == 0 {
                let outcome = self.replace(&served, &current, object, part, by, Ownership::Open).await;
                return outcome.map_err(|attempt| attempt.into_error(&key));
            }
            match self.replace(&served, &current, object.clone(), part, by, Ownership::Open).await {
                // Another process has written the definition, and this one has not heard of it yet.
                Err(Attempt::Redefined) => self.refresh().await?,
                outcome => return outcome.map_err(|attempt| attempt.into_error(&key)),
            }
        }
    }

    /// The answer to a write that changes nothing: nothing checks its ground but this.
    async fn unchanged(&self, current: &Encoded) -> Result<Encoded, Attempt> {
        match self.fetch(current.key()).await? {
            Some(stored) if stored.resource_version() == current.resource_version() => Ok(stored),
            Some(_) => Err(Attempt::Moved),
            None => Err(Error::NotFound { key: current.key().clone() }.into()),
        }
    }

    /// Writes what `change` makes of the current state, as the version `view` sees it.
    pub(super) async fn patch(
        &self,
        key: &ObjectKey,
        view: Option<&str>,
        part: Part,
        change: &(dyn Fn(&Value) -> Result<Value, PatchError> + Send + Sync),
        by: &By,
    ) -> Result<Encoded> {
        for _ in 0..TRIES_MAX {
            let served = self.find_kind(&key.kind).await?;
            let current = self.fetch(key).await?.ok_or_else(|| Error::NotFound { key: key.clone() })?;
            let before = seen_as(&served, &current, view, by)?;
            let patched = change(&before.into_value()).map_err(|e| Error::patch(key, e))?;
            let object = Object::from_value(patched).map_err(|e| Error::invalid(key.to_string(), e))?;
            check_identity(key, &object)?;
            if object.resource_version().as_ref() != Some(current.resource_version()) {
                return Err(Error::Conflict { key: key.clone() });
            }
            match self.replace(&served, &current, object, part, by, Ownership::Open).await {
                Err(Attempt::Moved) => {}
                Err(Attempt::Redefined) => self.refresh().await?,
                other => return other.map_err(|attempt| attempt.into_error(key)),
            }
        }
        Err(Error::Conflict { key: key.clone() })
    }

    /// Writes `object` in the place of `current`, which is what its author saw.
    pub(super) async fn replace(
        &self,
        served: &Served,
        current: &Encoded,
        object: Object,
        part: Part,
        by: &By,
        ownership: Ownership,
    ) -> Result<Encoded, Attempt> {
        if object.uid().is_some_and(|uid| uid != current.head().uid) {
            return Err(Error::Conflict { key: current.key().clone() }.into());
        }
        let mut turn = self.turn(&current.key().kind).await?;
        // Where this process is alone, nobody is answered before it knows of a definition.
        if self.is_shared() {
            turn = turn.judged_by(served);
        }
        match part {
            Part::Main => self.replace_main(served, current, object, by, ownership, &turn).await,
            Part::Status => self.replace_status(served, current, object, by, ownership, &turn).await,
        }
    }

    async fn replace_main(
        &self,
        served: &Served,
        current: &Encoded,
        mut object: Object,
        by: &By,
        ownership: Ownership,
        turn: &Turn<'_>,
    ) -> Result<Encoded, Attempt> {
        let (old, now) = (current.body(), self.clock.now());
        keep_system_fields(served, &old.head, &mut object);
        let version = admit::admit(served, &mut object, Some(current), by)?;
        if ownership == Ownership::Open {
            ownership::track(served, version, current, &mut object, by, now);
        }
        if needs_old(served, &old.head) {
            let old_object = current.decode();
            let errors = admit::check_change(served, old, &old_object, &object);
            if !errors.is_empty() {
                return Err(Error::Invalid { what: old.key.to_string(), errors }.into());
            }
            // The store writes the status of its own kinds itself, in the same write.
            if definition::is_definition(&old.key.kind) || old.key.kind == builtin::namespace_kind() {
                builtin::keep_finalizers(&old_object, &mut object, by.keeps_namespaces);
                object.set("status", old_object.status().clone());
                complete(served, self, &mut object, now);
            }
        }
        let mut body = admit::encode(served, &old.key, old.head.clone(), &object)?;
        if served.kind.has_status && object.status().is_null() {
            let kept = old.head.fields.iter().filter(|(path, _)| path.starts_with("status."));
            body.head.fields.extend(kept.map(|(path, text)| (path.clone(), text.clone())));
            body = body.with_status_of(old);
            admit::check_size(&body)?;
        }
        let is_spec_changed =
            body.rest() != old.rest() || (!served.kind.has_status && body.status() != old.status());
        if served.kind.has_generation && is_spec_changed {
            let generation = old.head.generation + 1;
            object.set_metadata("generation", generation.into());
            body = body.with_metadata(Head { generation, ..body.head.clone() }, &object);
        }
        let is_last = old.head.deleted_at.is_some() && pending(served, &object).is_empty();
        // Written back after its definition has changed, the same object may be in another version or have
        // other selectable fields: that is how objects are migrated.
        let is_same = body.payload() == old.payload() && body.head == old.head;
        if is_same && !is_last {
            return self.unchanged(current).await;
        }
        let act = if is_last { Act::Removed } else { Act::Updated };
        self.write_over(current, act, body, by, now, turn).await
    }

    async fn replace_status(
        &self,
        served: &Served,
        current: &Encoded,
        mut object: Object,
        by: &By,
        ownership: Ownership,
        turn: &Turn<'_>,
    ) -> Result<Encoded, Attempt> {
        let old = current.body();
        if !served.kind.has_status {
            let error = FieldError::forbidden(FieldPath::new("status"), "the kind has no status subresource");
            return Err(Error::invalid(old.key.to_string(), error).into());
        }
        let status = std::mem::take(object.get_mut("status"));
        let mut status = admit::admit_status(served, &object, current, status, by)?;
        if definition::is_definition(&old.key.kind) {
            // Whether a kind is served is not for anybody else to say.
            let mut whole = current.decode();
            whole.set("status", status);
            definition::establish(&mut whole, &self.shared.kinds, self.clock.now());
            status = whole.status().clone();
        }
        let fields = admit::status_fields(served, &old.head, &status);
        let mut body = old.with_status(Head { fields, ..old.head.clone() }, &status);
        let now = self.clock.now();
        if ownership == Ownership::Settled || body.payload() != old.payload() && ownership::is_kept(old) {
            let version = admit::version_of(served, &object, Some(&old.head))?;
            let owned = ownership::of_status(version, current, &object, status, by, now, ownership);
            body = body.with_metadata(body.head.clone(), &owned);
        }
        admit::check_size(&body)?;
        if body.payload() == old.payload() {
            return self.unchanged(current).await;
        }
        self.write_over(current, Act::Updated, body, by, now, turn).await
    }
}

/// The current state, as the version `view` sees it.
fn seen_as(served: &Served, current: &Encoded, view: Option<&str>, by: &By) -> Result<Object> {
    let mut object = current.decode();
    if let Some(view) = view {
        object.set("apiVersion", current.key().kind.at_version(view).api_version().into());
    }
    if by.unknown_fields != UnknownFields::Drop {
        // What an older schema knew is no mistake of who patches now.
        let version = admit::version_of(served, &object, Some(current.head()))?;
        object.change(|whole| drop(version.schema.prune(whole)));
    }
    Ok(object)
}

/// Most updates are judged without opening what is stored.
fn needs_old(served: &Served, head: &Head) -> bool {
    head.deleted_at.is_some() || served.definition.is_none()
}

/// An update leaves alone what is not its to change.
fn keep_system_fields(served: &Served, head: &Head, object: &mut Object) {
    object.set_metadata("uid", head.uid.to_string().into());
    object.set_metadata("creationTimestamp", time::seconds(head.created_at).into());
    let generation = if served.kind.has_generation { json!(head.generation) } else { Value::Null };
    object.set_metadata("generation", generation);
    let deleted_at = head.deleted_at.map_or(Value::Null, |at| time::seconds(at).into());
    object.set_metadata("deletionTimestamp", deleted_at);
    let grace = head.deleted_at.map_or(Value::Null, |_| 0.into());
    object.set_metadata("deletionGracePeriodSeconds", grace);
    if served.kind.has_status {
        object.set("status", Value::Null);
    }
}

fn check_identity(key: &ObjectKey, object: &Object) -> Result<()> {
    let invalid = |field: &str, value: &str| {
        let error = FieldError::invalid_text(FieldPath::new(field), value, "field is immutable");
        Err(Error::invalid(key.to_string(), error))
    };
    match object.key() {
        Err(error) => Err(Error::invalid(key.to_string(), error)),
        Ok(new) if new.kind.group != key.kind.group => invalid("apiVersion", object.api_version()),
        Ok(new) if new.kind != key.kind => invalid("kind", object.kind()),
        Ok(new) if new.name != key.name => invalid("metadata.name", object.name()),
        Ok(new) if new.namespace != key.namespace => invalid("metadata.namespace", object.namespace()),
        Ok(_) => Ok(()),
    }
}
