//! Writing: create, update, patch, delete.
//!
//! Everything is computed on the caller's task from a state that was read; the transaction then says
//! "if it is still so".

use std::sync::Arc;

use concert_model::{
    Body, Encoded, FieldError, FieldPath, Head, Object, ObjectKey, Patch, ResourceVersion, Timestamp, Uid,
    time,
};
use serde_json::{Value, json};

use super::admit::{self, describe};
use super::driver::{Job, ObjectWrite};
use super::kinds::Served;
use super::{Inner, Local, builtin, definition, revision_of};
use crate::backend::{Act, Check, Done, Effect, Owner, Refusal, Stamp, Txn, Write};
use crate::contract::{By, Delete, Deleted, Part, Result};
use crate::error::Error;

/// Tries at a write that others keep overtaking, where a fresh read can be tried at all.
const TRIES_MAX: usize = 64;
/// Tries at making up a name that is free.
const NAME_TRIES_MAX: usize = 8;

impl Inner {
    pub(super) async fn create(&self, mut object: Object, by: &By) -> Result<Encoded> {
        let what = describe(&object);
        let invalid = |error| Error::invalid(what.clone(), error);
        let gvk = object.gvk().map_err(invalid)?;
        if object.resource_version().is_some() {
            let field = FieldPath::new("metadata.resourceVersion");
            return Err(invalid(FieldError::forbidden(field, "must not be set on objects to be created")));
        }
        let prefix = object.metadata("generateName").as_str().unwrap_or_default().to_owned();
        let is_generated = object.name().is_empty() && !prefix.is_empty();
        let mut tries = if is_generated { NAME_TRIES_MAX } else { 1 };
        let mut moves = TRIES_MAX;
        loop {
            if is_generated {
                object.set_metadata("name", generated(&prefix, &self.chance).into());
            }
            let served = self.shared.kinds.find(&gvk.group_kind)?;
            match self.try_create(&served, object.clone(), by).await {
                Err(Attempt::Taken(key)) => {
                    tries -= 1;
                    if tries == 0 {
                        return Err(Error::AlreadyExists { key });
                    }
                }
                // The namespace or the definition was written meanwhile: look at it again.
                Err(Attempt::Moved) if moves > 0 => moves -= 1,
                Err(Attempt::Moved) => return Err(Error::Conflict { key: object.key().map_err(invalid)? }),
                Err(Attempt::Failed(error)) => return Err(error),
                Ok(created) => return Ok(created),
            }
        }
    }

    async fn try_create(&self, served: &Served, mut object: Object, by: &By) -> Result<Encoded, Attempt> {
        check_scope(served, &object)?;
        if served.kind.has_status {
            object.set("status", Value::Null);
        }
        let now = self.clock.now();
        let uid = Uid::from_random(self.chance.bits());
        stamp_new(served, &mut object, &uid, now);
        admit::admit(served, &mut object)?;
        complete(served, self, &mut object, now);
        let key = object.key().map_err(|e| Error::invalid(describe(&object), e))?;
        let mut checks = vec![Check::Object(key.clone(), None)];
        if served.kind.is_namespaced {
            checks.push(self.check_namespace(&key).await?);
        }
        if served.is_terminating {
            let why = "its definition is being deleted".to_owned();
            return Err(Error::Forbidden { key, why }.into());
        }
        checks.extend(served.definition.clone().map(|(key, revision)| Check::Object(key, Some(revision))));
        let head = Head {
            version: served.kind.storage_version.clone(),
            uid,
            generation: object.generation(),
            created_at: object.created_at().unwrap_or(now),
            deleted_at: None,
            labels: Default::default(),
            owners: Vec::new(),
            fields: Default::default(),
        };
        let body = Arc::new(admit::encode(served, &key, head, &object));
        if by.is_dry_run {
            return match self.fetch(&key).await? {
                Some(_) => Err(Attempt::Taken(key)),
                None => Ok(Encoded::new(body, ResourceVersion("".into()))),
            };
        }
        self.commit(checks, Act::Created, body, None, by, now).await
    }

    /// The namespace must be there, and stay, until the object is in it.
    async fn check_namespace(&self, key: &ObjectKey) -> Result<Check> {
        let namespace = ObjectKey::cluster(builtin::namespace_kind(), key.namespace.clone());
        let Some(stored) = self.fetch(&namespace).await? else {
            return Err(Error::NotFound { key: namespace });
        };
        if stored.head().deleted_at.is_some() {
            let why = format!("namespace {} is being deleted", key.namespace);
            return Err(Error::Forbidden { key: key.clone(), why });
        }
        Ok(Check::Object(namespace, revision_of(stored.resource_version())))
    }

    pub(super) async fn update(&self, object: Object, part: Part, by: &By) -> Result<Encoded> {
        let what = describe(&object);
        let invalid = |error| Error::invalid(what.clone(), error);
        let key = object.key().map_err(invalid)?;
        let served = self.shared.kinds.find(&key.kind)?;
        check_scope(&served, &object)?;
        let Some(version) = object.resource_version() else {
            let field = FieldPath::new("metadata.resourceVersion");
            return Err(invalid(FieldError::required(field, "must be specified for an update")));
        };
        let current = self.fetch(&key).await?.ok_or_else(|| Error::NotFound { key: key.clone() })?;
        if *current.resource_version() != version {
            return Err(Error::Conflict { key });
        }
        self.replace(&served, &current, object, part, by).await.map_err(|attempt| attempt.into_error(&key))
    }

    pub(super) async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        for _ in 0..TRIES_MAX {
            let served = self.shared.kinds.find(&key.kind)?;
            let current = self.fetch(key).await?.ok_or_else(|| Error::NotFound { key: key.clone() })?;
            let patched = patch.apply(&current.decode().into_value()).map_err(|e| Error::patch(key, e))?;
            let object = Object::from_value(patched).map_err(|e| Error::invalid(key.to_string(), e))?;
            check_identity(key, &object)?;
            if object.resource_version().as_ref() != Some(current.resource_version()) {
                return Err(Error::Conflict { key: key.clone() });
            }
            match self.replace(&served, &current, object, part, by).await {
                Err(Attempt::Moved) => {}
                other => return other.map_err(|attempt| attempt.into_error(key)),
            }
        }
        Err(Error::Conflict { key: key.clone() })
    }

    /// Writes `object` in the place of `current`, which is what its author saw.
    async fn replace(
        &self,
        served: &Served,
        current: &Encoded,
        mut object: Object,
        part: Part,
        by: &By,
    ) -> Result<Encoded, Attempt> {
        let (old, now) = (current.body(), self.clock.now());
        if object.uid().is_some_and(|uid| uid != old.head.uid) {
            return Err(Error::Conflict { key: old.key.clone() }.into());
        }
        let old_object = current.decode();
        match part {
            Part::Main => keep_system_fields(served, &old_object, &mut object),
            Part::Status if !served.kind.has_status => {
                let error =
                    FieldError::forbidden(FieldPath::new("status"), "the kind has no status subresource");
                return Err(Error::invalid(old.key.to_string(), error).into());
            }
            Part::Status => {
                let status = object.get("status").clone();
                object = old_object.clone();
                object.set("status", status);
            }
        }
        admit::admit(served, &mut object)?;
        let errors = admit::check_change(served, old, &old_object, &object);
        if !errors.is_empty() {
            return Err(Error::Invalid { what: old.key.to_string(), errors }.into());
        }
        if part == Part::Main {
            complete(served, self, &mut object, now);
        }
        let mut body = admit::encode(served, &old.key, old.head.clone(), &object);
        if part == Part::Status {
            // A schema that changed since may have touched more than status: only status is written.
            body = old.with_status_of(&body);
        }
        let is_spec_changed =
            body.rest() != old.rest() || (!served.kind.has_status && body.status() != old.status());
        if part == Part::Main && served.kind.has_generation && is_spec_changed {
            let generation = old.head.generation + 1;
            object.set_metadata("generation", generation.into());
            body = admit::encode(served, &old.key, Head { generation, ..old.head.clone() }, &object);
        }
        let is_last =
            old.head.deleted_at.is_some() && part == Part::Main && pending(served, &object).is_empty();
        if body.payload() == old.payload() && !is_last {
            return Ok(current.clone());
        }
        let act = if is_last { Act::Removed } else { Act::Updated };
        self.write_over(current, act, body, by, now).await
    }

    pub(super) async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        let served = self.shared.kinds.find(&key.kind)?;
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
        let mut object = current.decode();
        if old.head.deleted_at.is_some() {
            return Ok(Deleted::Waiting(current.clone()));
        }
        if let Some(finalizer) = options.propagation.finalizer() {
            object.add_finalizer(finalizer);
        }
        if pending(served, &object).is_empty() {
            let gone = self.write_over(current, Act::Removed, Body::clone(old), by, now).await?;
            return Ok(Deleted::Gone(gone));
        }
        let mut head = old.head.clone();
        object.set_metadata("deletionTimestamp", time::seconds(now).into());
        object.set_metadata("deletionGracePeriodSeconds", 0.into());
        head.deleted_at = object.deleted_at();
        if served.kind.has_generation {
            head.generation += 1;
            object.set_metadata("generation", head.generation.into());
        }
        if served.kind.group_kind == builtin::namespace_kind() {
            object.get_mut("status")["phase"] = json!("Terminating");
        }
        let body = admit::encode(served, &old.key, head, &object);
        self.write_over(current, Act::Updated, body, by, now).await.map(Deleted::Waiting)
    }

    /// Commits a state in the place of `current`.
    async fn write_over(
        &self,
        current: &Encoded,
        act: Act,
        body: Body,
        by: &By,
        now: Timestamp,
    ) -> Result<Encoded, Attempt> {
        let body = Arc::new(body);
        if by.is_dry_run {
            return Ok(Encoded::new(body, current.resource_version().clone()));
        }
        let check = Check::Object(body.key.clone(), revision_of(current.resource_version()));
        self.commit(vec![check], act, body, Some(current.clone()), by, now).await
    }

    async fn commit(
        &self,
        mut checks: Vec<Check>,
        act: Act,
        body: Arc<Body>,
        previous: Option<Encoded>,
        by: &By,
        now: Timestamp,
    ) -> Result<Encoded, Attempt> {
        checks.extend(by.fence.clone().map(Check::Fence));
        let owner = Owner::Object(body.key.clone());
        let write = Write {
            key: body.key.clone(),
            head: serde_json::to_vec(&body.head).unwrap_or_default().into(),
            payload: self.shared.seal.seal(&owner, body.payload()),
            stamp: Stamp {
                at: now,
                actor: by.actor.clone(),
                reason: by.reason.clone(),
                manager: by.manager.clone(),
            },
        };
        let effect = if act == Act::Removed { Effect::Remove(write) } else { Effect::Put(write) };
        let job = Job {
            txn: Txn { checks, effects: vec![effect] },
            writes: vec![ObjectWrite { act, body: body.clone(), previous }],
        };
        match self.driver.commit(job).await? {
            Ok(Done { revision, .. }) => Ok(Encoded::new(body, revision.unwrap_or_default().into())),
            Err(Refusal::Fenced(fence)) => {
                let item = format!("{} of {}", fence.item.item, fence.item.controller);
                Err(Error::Fenced { item, number: fence.number }.into())
            }
            Err(Refusal::Changed { key, now: Some(_) }) if key == body.key && act == Act::Created => {
                Err(Attempt::Taken(key))
            }
            Err(Refusal::Changed { .. }) => Err(Attempt::Moved),
        }
    }
}

/// Why one try at a write did not succeed.
enum Attempt {
    /// The name is not free.
    Taken(ObjectKey),
    /// What it was based on has changed.
    Moved,
    Failed(Error),
}

impl Attempt {
    fn into_error(self, key: &ObjectKey) -> Error {
        match self {
            Attempt::Taken(key) => Error::AlreadyExists { key },
            Attempt::Moved => Error::Conflict { key: key.clone() },
            Attempt::Failed(error) => error,
        }
    }
}

impl From<Error> for Attempt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn check_scope(served: &Served, object: &Object) -> Result<()> {
    let field = FieldPath::new("metadata.namespace");
    let error = match (served.kind.is_namespaced, object.namespace().is_empty()) {
        (true, false) | (false, true) => return Ok(()),
        (true, true) => FieldError::required(field, "the kind is namespaced"),
        (false, false) => FieldError::forbidden(field, "the kind is cluster-scoped"),
    };
    Err(Error::invalid(describe(object), error))
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

/// Metadata that only the store sets.
fn stamp_new(served: &Served, object: &mut Object, uid: &Uid, now: Timestamp) {
    object.set_metadata("uid", uid.to_string().into());
    object.set_metadata("creationTimestamp", time::seconds(now).into());
    let generation = if served.kind.has_generation { json!(1) } else { Value::Null };
    object.set_metadata("generation", generation);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object.set_metadata(field, Value::Null);
    }
}

/// An update leaves alone what is not its to change.
fn keep_system_fields(served: &Served, old: &Object, new: &mut Object) {
    let fields =
        ["uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for field in fields {
        new.set_metadata(field, old.metadata(field).clone());
    }
    if served.kind.has_status {
        new.set("status", old.status().clone());
    }
}

/// What the store adds to objects of its own kinds.
fn complete(served: &Served, inner: &Inner, object: &mut Object, now: Timestamp) {
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
fn pending(served: &Served, object: &Object) -> Vec<String> {
    let mut all = object.finalizers();
    if served.kind.group_kind == builtin::namespace_kind() {
        let own = object.spec().get("finalizers").and_then(Value::as_array);
        all.extend(own.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    }
    all
}

/// `prefix` and five letters that spell no words.
fn generated(prefix: &str, chance: &crate::chance::Chance) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let letter = |_| char::from(LETTERS[chance.below(LETTERS.len() as u64) as usize]);
    let kept: String = prefix.chars().take(concert_model::name::LABEL_BYTES_MAX - 5).collect();
    kept.chars().chain((0..5).map(letter)).collect()
}

impl Local {
    /// The namespace that everybody expects; called once, before anybody else has the store.
    pub(super) fn make_default_namespace(&self) -> Result<()> {
        let inner = self.inner();
        let gvk = builtin::namespace_kind().at_version("v1");
        let mut object = Object::new(&gvk, "", "default");
        let served = inner.shared.kinds.find(&gvk.group_kind)?;
        let key = ObjectKey::cluster(gvk.group_kind, "default");
        if inner.backend.get(&key)?.is_some() {
            return Ok(());
        }
        let now = inner.clock.now();
        let uid = Uid::from_random(inner.chance.bits());
        stamp_new(&served, &mut object, &uid, now);
        admit::admit(&served, &mut object)?;
        complete(&served, inner, &mut object, now);
        let head = Head {
            version: gvk.version,
            uid,
            generation: 0,
            created_at: object.created_at().unwrap_or(now),
            deleted_at: None,
            labels: Default::default(),
            owners: Vec::new(),
            fields: Default::default(),
        };
        let body = admit::encode(&served, &key, head, &object);
        let by = By::actor("concert").because("first start");
        let stamp = Stamp { at: now, actor: by.actor, reason: by.reason, manager: by.manager };
        let write = Write {
            key: key.clone(),
            head: serde_json::to_vec(&body.head).unwrap_or_default().into(),
            payload: inner.shared.seal.seal(&Owner::Object(key.clone()), body.payload()),
            stamp,
        };
        let txn = Txn { checks: vec![Check::Object(key, None)], effects: vec![Effect::Put(write)] };
        inner.backend.commit(&[txn])?;
        inner.shared.hub.skip_to(inner.backend.bounds()?.newest);
        Ok(())
    }
}
