//! Connection secrets: what is needed to use an external thing, written where its object says.
//!
//! Upstream patches on every pass where a provider tells less than it told before. Here what is stored is
//! compared, and remembered, so that a quiet object costs neither a write nor a read.

#[cfg(test)]
pub(super) mod fixtures;
mod memory;
pub(super) mod scope;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concert_engine::Source;
use concert_model::{
    Encoded, FieldSelector, GroupKind, Object, ObjectKey, OwnerReference, Patch, Uid, base64,
};
use concert_provider::Details;
use concert_store::{By, Error, Part, Query, Store};
use serde_json::{Map, Value, json};

use super::vocabulary::connection::SECRET_TYPE;
use memory::Memory;
use scope::Scope;

/// Writes connection secrets.
///
/// # Assumptions
/// One pass at a time publishes for an object.
pub struct Publisher {
    store: Arc<dyn Store>,
    memory: Mutex<Memory>,
}

/// Why connection details could not be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Somebody else wrote first: try again, silently.
    #[error("the connection secret changed since it was read")]
    Conflict,
    /// It must not be written; the object or the secret has to change first.
    #[error("{0}")]
    Refused(String),
    /// The store failed.
    #[error("cannot write the connection secret")]
    Store(#[source] Error),
}

impl From<Error> for PublishError {
    fn from(error: Error) -> Self {
        match error {
            Error::Conflict { .. } | Error::AlreadyExists { .. } => Self::Conflict,
            other => Self::Store(other),
        }
    }
}

impl Publisher {
    /// Writes to `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, memory: Mutex::default() }
    }

    /// Writes `details` where `spec.writeConnectionSecretToRef` of the object says; nothing if it says
    /// nothing. Adds and replaces entries, and never removes one.
    ///
    /// # Errors
    /// [`PublishError`]. Nothing was written, save where the store says that it cannot tell.
    pub async fn publish(&self, object: &Object, details: &Details, by: &By) -> Result<(), PublishError> {
        let Some(key) = secret_key(object)? else { return Ok(()) };
        let owner = owner_of(object)?;
        if self.lock().holds(&owner.uid, &key, details) {
            return Ok(());
        }
        self.lock().asking(&owner.uid, &key);
        let secret = self.write(&key, &owner, details, by).await?;
        self.lock().learn(&owner.uid, &secret.decode());
        Ok(())
    }

    /// Changes of connection secrets that concern the object of `kind` that controls them. Also how the
    /// publisher hears that what it remembers is no longer so.
    pub fn source(self: &Arc<Self>, kind: GroupKind) -> Source {
        let fields = FieldSelector::field("type", SECRET_TYPE);
        let query = Query::all(secret_kind()).with_fields(fields);
        let (publisher, scope) = (self.clone(), Scope::new(self.store.clone(), kind));
        let map = move |secret: &Encoded| {
            publisher.lock().hear(secret.key(), secret.resource_version());
            let Some(owner) = secret.head().owners.iter().find(|it| it.is_controller()) else {
                return Vec::new();
            };
            if !is_of(owner, scope.kind()) {
                return Vec::new();
            }
            scope.keys(&secret.key().namespace, &owner.name)
        };
        Source::mapped(query, map).because("connection secret")
    }

    /// Drops what is remembered of an object that is gone.
    pub fn forget(&self, uid: &Uid) {
        self.lock().forget(uid);
    }

    async fn write(
        &self,
        key: &ObjectKey,
        owner: &OwnerReference,
        details: &Details,
        by: &By,
    ) -> Result<Encoded, PublishError> {
        let stored = match self.store.get(key).await {
            Ok(stored) => stored,
            Err(Error::NotFound { .. }) => {
                return Ok(self.store.create(new(key, owner, details), by).await?);
            }
            Err(other) => return Err(other.into()),
        };
        let secret = stored.decode();
        let is_owned = check_owner(&secret, owner)?;
        let missing = missing(&secret, details);
        if is_owned && missing.is_empty() {
            return Ok(stored);
        }
        // Names the version that was read, so that a secret that changed hands meanwhile stays untouched.
        let mut patch = json!({"metadata": {"resourceVersion": &*stored.resource_version().0}});
        if !is_owned {
            let owners = secret.owners().into_iter().chain([owner.clone()]);
            patch["metadata"]["ownerReferences"] = json!(owners.collect::<Vec<_>>());
        }
        if !missing.is_empty() {
            patch["data"] = Value::Object(missing);
        }
        Ok(self.store.patch(key, Part::Main, &Patch::Merge(patch), by).await?)
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Publisher")
    }
}

fn secret_kind() -> GroupKind {
    GroupKind::new("", "Secret")
}

fn is_of(owner: &OwnerReference, kind: &GroupKind) -> bool {
    let (group, _) = owner.api_version.split_once('/').unwrap_or_default();
    *group == *kind.group && *owner.kind == *kind.kind
}

/// Where the object wants its details; none if it does not.
fn secret_key(object: &Object) -> Result<Option<ObjectKey>, PublishError> {
    let Some(reference) = object.spec().get("writeConnectionSecretToRef").filter(|it| !it.is_null()) else {
        return Ok(None);
    };
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let required = |field: &str| {
        PublishError::Refused(format!("spec.writeConnectionSecretToRef.{field} must not be empty"))
    };
    // Objects in a namespace write to no other: it is not theirs.
    let namespace = if object.namespace().is_empty() { text("namespace") } else { object.namespace() };
    if text("name").is_empty() {
        return Err(required("name"));
    }
    if namespace.is_empty() {
        return Err(required("namespace"));
    }
    Ok(Some(ObjectKey::namespaced(secret_kind(), namespace, text("name"))))
}

/// The reference by which a secret, or a usage, belongs to `object`.
pub(super) fn controller_reference(object: &Object) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: object.api_version().to_owned(),
        kind: object.kind().to_owned(),
        name: object.name().to_owned(),
        uid: object.uid()?,
        controller: Some(true),
        block_owner_deletion: Some(true),
    })
}

fn owner_of(object: &Object) -> Result<OwnerReference, PublishError> {
    let unstored = || PublishError::Refused("an object without a uid cannot own a connection secret".into());
    controller_reference(object).ok_or_else(unstored)
}

fn new(key: &ObjectKey, owner: &OwnerReference, details: &Details) -> Object {
    let mut secret = Object::new(&key.kind.at_version("v1"), &key.namespace, &key.name);
    secret.set_metadata("ownerReferences", json!([owner]));
    secret.set("type", json!(SECRET_TYPE));
    if !details.is_empty() {
        let data = details.iter().map(|(name, bytes)| (name, base64::encode(bytes)));
        secret.set("data", json!(data.collect::<BTreeMap<_, _>>()));
    }
    secret
}

/// Whether `owner` controls the secret already; if nobody does it may.
fn check_owner(secret: &Object, owner: &OwnerReference) -> Result<bool, PublishError> {
    let kind = secret.get("type").as_str().unwrap_or_default();
    match secret.owners().iter().find(|it| it.is_controller()) {
        Some(controller) if controller.uid == owner.uid => Ok(true),
        Some(_) => {
            let why = format!("existing secret is not controlled by UID {:?}", &*owner.uid.0);
            Err(PublishError::Refused(why))
        }
        None if kind == SECRET_TYPE => Ok(false),
        None => {
            let why = format!("refusing to modify uncontrolled secret of type {kind:?}");
            Err(PublishError::Refused(why))
        }
    }
}

/// The entries of a secret, in clear.
fn stored_entries(secret: &Object) -> BTreeMap<String, Vec<u8>> {
    let data = secret.get("data").as_object().into_iter().flatten();
    let clear = |(name, value): (&String, &Value)| Some((name.clone(), base64::decode(value.as_str()?)?));
    data.filter_map(clear).collect()
}

/// The entries of `details` that the secret does not hold, as its data would.
fn missing(secret: &Object, details: &Details) -> Map<String, Value> {
    let stored = stored_entries(secret);
    let is_missing = |name: &str, bytes: &[u8]| stored.get(name).map(Vec::as_slice) != Some(bytes);
    let missing = details.iter().filter(|(name, bytes)| is_missing(name, bytes));
    missing.map(|(name, bytes)| (name.to_owned(), json!(base64::encode(bytes)))).collect()
}
