//! Writes and removes sections: the store is compared with what was decided, and asked again if it moved.
//!
//! Contents of a secret section go into a Secret of their own that is never changed, under a name that no
//! other ever has. It is written first, then the section is made to point at it, then the one before is
//! removed. A crash in between leaves a Secret that nobody points at, for the sweep: whoever else meets it
//! cannot know whether its writer, perhaps in another process, is about to point at it.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use concert_model::inventory::{Changed, Entry, Expected, Kept, Lease, Moved, Section, decide, names};
use concert_model::{Encoded, Object, ObjectKey, Patch, ResourceVersion, base64, time};
use concert_store::{By, Delete, Error as StoreError, Local, Part, Store};
use http::StatusCode;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

use super::contents::Contents;
use super::door::{Inner, find};
use crate::rest::Error;

/// Tries at a write that others keep overtaking.
const TRIES_MAX: usize = 32;
/// Turns that writers take; those of one section always take the same.
const TURNS: usize = 64;

/// Who writes a section, one after another as far as this process goes: of many at once nobody has to try again
/// and again, Secrets of who is overtaken are not written in vain, and between the look at claims and the write no
/// other one comes.
pub(super) struct Turns([Mutex<()>; TURNS]);

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }
}

impl Turns {
    async fn take(&self, key: &ObjectKey) -> MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&key.name);
        self.0[usize::try_from(hash).unwrap_or_default() % TURNS].lock().await
    }
}

/// A section that is to be written.
pub(super) struct Order<'a> {
    pub entry: &'a str,
    pub section: &'a str,
    pub contents: &'a Contents<'a>,
    pub expected: Expected,
    /// Whom it is written down as the work of.
    pub writer: &'a str,
    /// Under which claim; none for who is not at work.
    pub lease: Option<&'a Lease>,
    pub by: &'a By,
}

/// What came of it.
pub(super) struct Done {
    pub version: u64,
    pub is_changed: bool,
}

/// The section is not at the version that was expected.
fn moved(moved: Moved) -> Error {
    let detail = match moved.0 {
        0 => "If-Match does not fit: the section is not there".to_owned(),
        version => format!("If-Match does not fit: the section is at version \"{version}\""),
    };
    Error::new(StatusCode::PRECONDITION_FAILED, detail)
}

fn contended() -> Error {
    Error::conflict("the section is being changed by others all the time")
}

impl Inner {
    /// Writes a section.
    pub async fn write(&self, order: &Order<'_>) -> Result<Done, Error> {
        let key = names::section_key(order.entry, order.section);
        // One after the other: of many who write at once each would else meet somebody in every try.
        let _turn = self.turns.take(&key).await;
        for _ in 0..TRIES_MAX {
            let current = self.find(&key).await?.map(|it| it.decode());
            // After the section: who removed it has written its floor before.
            let entry = self.find(&names::entry_key(order.entry)).await?;
            let entry = entry.ok_or_else(|| Error::not_found("Entry not found"))?.decode();
            let (entry, current) = match current {
                Some(old) if Section(&old).entry_uid() != Some(Entry(&entry).uid()) => {
                    // Left by an entry of the same name that is gone, and not yet collected.
                    self.discard(&key, &old, order.by).await?;
                    continue;
                }
                current => (entry, current),
            };
            let stored = current.as_ref().and_then(|it| Section(it).lease());
            self.newest.check(order.lease, stored.as_ref())?;
            let mut kept = Kept::of(current.as_ref().map(Section), Entry(&entry).floor(order.section));
            let (hash, is_secret) = (&order.contents.hash, order.contents.is_secret);
            if kept.hash == hash && !self.has_contents(current.as_ref()).await? {
                // What it points at is lost: these are not the contents that it has, it has none.
                kept.hash = "";
            }
            let version = match decide(kept, order.expected, hash, is_secret).map_err(moved)? {
                Changed::Not(version) => {
                    self.newest.note(order.lease);
                    return Ok(Done { version, is_changed: false });
                }
                Changed::To(version) => version,
            };
            if self.commit(order, &entry, current.as_ref(), version).await? {
                self.newest.note(order.lease);
                return Ok(Done { version, is_changed: true });
            }
        }
        Err(contended())
    }

    /// Commits a version over `current`; says whether that was still what is stored.
    async fn commit(
        &self,
        order: &Order<'_>,
        entry: &Object,
        current: Option<&Object>,
        version: u64,
    ) -> Result<bool, Error> {
        let store = &self.parts.store;
        let mut section = Section::of(Entry(entry), order.section);
        let now = time::micros(self.parts.clock.now());
        let mut spec = section.spec().clone();
        spec["version"] = json!(version);
        spec["hash"] = json!(order.contents.hash);
        spec["writer"] = json!(order.writer);
        spec["updatedAt"] = json!(now);
        spec["secret"] = json!(order.contents.is_secret);
        // Whoever was too late stays so, although somebody who is not at work has written since.
        let before = current.and_then(|it| Section(it).lease());
        if let Some(lease) = order.lease.cloned().or(before) {
            spec["lease"] = json!(lease);
        }
        if order.contents.is_secret {
            let secret = self.keep(order, entry, version).await?;
            spec["secretRef"] = json!({"namespace": &*secret.namespace, "name": &*secret.name});
        } else {
            spec["data"] = order.contents.data.clone();
        }
        section.set("spec", spec);
        let written = match current {
            None => store.create(section.clone(), order.by).await,
            Some(current) => {
                let mut next = current.clone();
                next.set("spec", section.spec().clone());
                store.update(next, order.by).await
            }
        };
        match written {
            Ok(_) => {
                if let Some(old) = current.and_then(|it| Section(it).secret_name()) {
                    self.drop_secret(old, order.by).await;
                }
                Ok(true)
            }
            Err(
                StoreError::Conflict { .. } | StoreError::AlreadyExists { .. } | StoreError::NotFound { .. },
            ) => {
                if let Some(new) = Section(&section).secret_name() {
                    self.drop_secret(new, order.by).await;
                }
                Ok(false)
            }
            // It may have been written all the same, and then points at the Secret. The sweep knows.
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the contents of a section are there: those of a secret one may be lost.
    async fn has_contents(&self, section: Option<&Object>) -> Result<bool, Error> {
        let Some(secret) = section.and_then(|it| Section(it).secret_name()) else { return Ok(true) };
        let key = ObjectKey::namespaced(names::secret_kind(), names::NAMESPACE, secret);
        Ok(self.find(&key).await?.is_some())
    }

    /// Writes the contents of a secret section as a Secret of their own.
    async fn keep(&self, order: &Order<'_>, entry: &Object, version: u64) -> Result<ObjectKey, Error> {
        let mut secret = Object::new(&names::secret_kind().at_version("v1"), names::NAMESPACE, "");
        let prefix = names::secret_prefix(order.entry, order.section, version);
        secret.set_metadata("generateName", json!(prefix));
        secret.set("type", json!(names::SECRET_TYPE));
        secret.set("immutable", json!(true));
        secret.set("data", json!({names::CONTENT: base64::encode(&order.contents.bytes)}));
        secret.set_label(names::ENTRY, order.entry);
        secret.set_label(names::SECTION, order.section);
        // The entry, not the section: it is there before the first version is.
        secret.set_metadata("ownerReferences", json!([Entry(entry).owner()]));
        Ok(self.parts.store.create(secret, order.by).await?.key().clone())
    }

    /// Removes a section.
    pub async fn remove(
        &self,
        entry: &str,
        section: &str,
        expected: Expected,
        lease: Option<&Lease>,
        by: &By,
    ) -> Result<Done, Error> {
        let key = names::section_key(entry, section);
        let _turn = self.turns.take(&key).await;
        for _ in 0..TRIES_MAX {
            let current = self.find(&key).await?;
            let current = current.ok_or_else(|| Error::not_found("Section not found"))?;
            let object = current.decode();
            self.newest.check(lease, Section(&object).lease().as_ref())?;
            let version = Section(&object).version();
            let is_expected = match expected {
                Expected::Version(expected) => expected == version,
                Expected::Anything | Expected::Something => true,
            };
            if !is_expected {
                return Err(moved(Moved(version)));
            }
            lower(&self.parts.store, &object, by).await?;
            match self.parts.store.delete(&key, &only(current.resource_version()), by).await {
                Ok(_) => {}
                Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => continue,
                Err(error) => return Err(error.into()),
            }
            if let Some(secret) = Section(&object).secret_name() {
                self.drop_secret(secret, by).await;
            }
            self.newest.note(lease);
            return Ok(Done { version, is_changed: true });
        }
        Err(contended())
    }

    /// Removes what is left of another entry.
    async fn discard(&self, key: &ObjectKey, old: &Object, by: &By) -> Result<(), Error> {
        let options = Delete { uid: old.uid(), ..Delete::default() };
        match self.parts.store.delete(key, &options, by).await {
            Ok(_) | Err(StoreError::NotFound { .. } | StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a Secret that nobody points at. What cannot be removed now the sweep removes.
    pub async fn drop_secret(&self, name: &str, by: &By) {
        drop_secret(&self.parts.store, name, by).await;
    }
}

/// Removes a Secret that nobody points at. What cannot be removed now the sweep removes.
pub(super) async fn drop_secret(store: &Local, name: &str, by: &By) {
    let key = ObjectKey::namespaced(names::secret_kind(), names::NAMESPACE, name);
    match store.delete(&key, &Delete::default(), by).await {
        Ok(_) | Err(StoreError::NotFound { .. }) => {}
        Err(error) => tracing::warn!(secret = name, %error, "a secret that nobody points at is left"),
    }
}

/// Only the state that has this version.
pub(super) fn only(version: &ResourceVersion) -> Delete {
    Delete { resource_version: Some(version.clone()), ..Delete::default() }
}

/// Writes down at its entry where the versions of a section go on. Before the section goes: a floor that is
/// too high costs a number, one that is missing would give a version out twice.
pub(super) async fn lower(store: &Local, section: &Object, by: &By) -> Result<(), StoreError> {
    let section = Section(section);
    let key = names::entry_key(section.entry());
    for _ in 0..TRIES_MAX {
        let Some(entry) = find(store, &key).await? else { return Ok(()) };
        let object = entry.decode();
        if section.entry_uid() != Some(Entry(&object).uid()) {
            return Ok(());
        }
        let Some(floors) = Entry(&object).with_floor(section.name(), section.version() + 1) else {
            return Ok(());
        };
        match store.patch(&key, Part::Main, &floor_patch(&entry, &floors), by).await {
            Err(StoreError::Conflict { .. }) => {}
            written => return written.map(drop),
        }
    }
    Err(StoreError::Conflict { key })
}

fn floor_patch(entry: &Encoded, floors: &str) -> Patch {
    let version = entry.resource_version();
    let metadata = json!({"resourceVersion": &*version.0, "annotations": {names::FLOORS: floors}});
    Patch::Merge(json!({"metadata": metadata}))
}
