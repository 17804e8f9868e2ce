//! Making new objects.

use std::sync::Arc;

use concert_model::{
    Encoded, FieldError, FieldPath, Head, Object, ObjectKey, ResourceVersion, Timestamp, Uid, time,
};
use serde_json::{Value, json};

use super::admit::{self, describe};
use super::kinds::Served;
use super::ownership::{self, Ownership};
use super::write::{Attempt, TRIES_MAX, check_scope, complete};
use super::{Inner, Local, builtin, revision_of};
use crate::backend::{Act, Check, Effect, Txn};
use crate::chance::Chance;
use crate::contract::{By, Result};
use crate::error::Error;

/// Tries at making up a name that is free.
const NAME_TRIES_MAX: usize = 8;

impl Inner {
    pub(super) async fn create(&self, mut object: Object, by: &By) -> Result<Encoded> {
        let invalid = |object: &Object, error| Error::invalid(describe(object), error);
        let gvk = object.gvk().map_err(|e| invalid(&object, e))?;
        if object.resource_version().is_some() {
            let field = FieldPath::new("metadata.resourceVersion");
            let error = FieldError::forbidden(field, "must not be set on objects to be created");
            return Err(invalid(&object, error));
        }
        let prefix = object.metadata("generateName").as_str().unwrap_or_default().to_owned();
        let is_generated = object.name().is_empty() && !prefix.is_empty();
        let mut tries = if is_generated { NAME_TRIES_MAX } else { 1 };
        let mut moves = TRIES_MAX;
        loop {
            if is_generated {
                object.set_metadata("name", generated(&prefix, &self.chance).into());
            }
            let served = self.find_kind(&gvk.group_kind).await?;
            match self.try_create(&served, &mut object, by, Ownership::Open).await {
                Err(Attempt::Taken(key)) => {
                    tries -= 1;
                    if tries == 0 {
                        return Err(Error::AlreadyExists { key });
                    }
                }
                // The namespace or the definition was written meanwhile: look at it again.
                Err(Attempt::Moved | Attempt::Redefined) if moves > 0 => {
                    moves -= 1;
                    self.refresh().await?;
                }
                Err(Attempt::Moved | Attempt::Redefined) => {
                    return Err(Error::Conflict { key: object.key().map_err(|e| invalid(&object, e))? });
                }
                Err(Attempt::Failed(error)) => return Err(error),
                Ok(created) => return Ok(created),
            }
        }
    }

    /// One try; leaves `object` admitted, which does not matter to the next.
    pub(super) async fn try_create(
        &self,
        served: &Served,
        object: &mut Object,
        by: &By,
        ownership: Ownership,
    ) -> Result<Encoded, Attempt> {
        check_scope(served, object)?;
        let turn = self.turn(&served.kind.group_kind).await?.judged_by(served);
        if ownership == Ownership::Open {
            object.set_metadata(ownership::FIELD, Value::Null);
        }
        if served.kind.has_status {
            object.set("status", Value::Null);
        }
        let now = self.clock.now();
        let uid = Uid::from_random(self.chance.bits());
        stamp(served, object, &uid, now);
        admit::admit(served, object, None, by)?;
        complete(served, self, object, now);
        let key = object.key().map_err(|e| Error::invalid(describe(object), e))?;
        let mut checks = vec![Check::Object(key.clone(), None)];
        checks.extend(turn.checks());
        if served.kind.is_namespaced {
            checks.push(self.check_namespace(&key).await?);
        }
        if served.is_terminating {
            let why = "its definition is being deleted".to_owned();
            return Err(Error::Forbidden { key, why }.into());
        }
        let body = Arc::new(admit::encode(served, &key, new_head(uid, now), object)?);
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
}

/// Metadata that only the store sets.
fn stamp(served: &Served, object: &mut Object, uid: &Uid, now: Timestamp) {
    object.set_metadata("uid", uid.to_string().into());
    object.set_metadata("creationTimestamp", time::seconds(now).into());
    let generation = if served.kind.has_generation { json!(1) } else { Value::Null };
    object.set_metadata("generation", generation);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object.set_metadata(field, Value::Null);
    }
}

/// The head of an object that is made now; [`admit::encode`] fills in what the object says.
fn new_head(uid: Uid, now: Timestamp) -> Head {
    Head {
        version: "".into(),
        uid,
        generation: 0,
        created_at: Timestamp::from_second(now.as_second()).unwrap_or(now),
        deleted_at: None,
        labels: Default::default(),
        owners: Vec::new(),
        fields: Default::default(),
    }
}

/// `prefix` and five letters that spell no words.
fn generated(prefix: &str, chance: &Chance) -> String {
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
        let key = ObjectKey::cluster(gvk.group_kind.clone(), "default");
        if let Some(row) = inner.backend.get(&key)? {
            // Sealed with other keys, it tells that this process must not go on.
            return inner.unseal(row).map(drop);
        }
        let served = inner.shared.kinds.find(&gvk.group_kind)?;
        let mut object = Object::new(&gvk, "", "default");
        let (now, uid) = (inner.clock.now(), Uid::from_random(inner.chance.bits()));
        stamp(&served, &mut object, &uid, now);
        let by = By::actor("concert").because("first start");
        admit::admit(&served, &mut object, None, &by)?;
        complete(&served, inner, &mut object, now);
        let body = admit::encode(&served, &key, new_head(uid, now), &object)?;
        let write = inner.sealed(&body, &by, now);
        let txn = Txn { checks: vec![Check::Object(key.clone(), None)], effects: vec![Effect::Put(write)] };
        inner.backend.commit(&[txn])?;
        if inner.is_shared() {
            // Others may have written as well, and not only this; whoever was first, its keys count.
            inner.shared.follow(&*inner.backend)?;
            let made = inner.backend.get(&key)?;
            return made.map_or(Ok(()), |row| inner.unseal(row).map(drop));
        }
        inner.shared.hub.skip_to(inner.backend.bounds()?.newest);
        Ok(())
    }
}
