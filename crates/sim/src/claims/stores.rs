//! Stores with something wrong about them, on purpose.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use concert_controllers::claims::vocabulary::annotation;
use concert_model::{Body, Encoded, GroupKind, Object, ObjectKey, Patch, ResourceVersion};
use concert_store::{
    By, Chance, Delete, Deleted, Error, Events, Kind, Page, PageRequest, Part, Query, Result, Store,
};
use serde_json::json;

use super::{Bug, check};

/// A store as controllers of claims with a bug would use it.
pub struct Crooked {
    inner: Arc<dyn Store>,
    bug: Bug,
    chance: Chance,
    /// What was called how, as far as the answer came back.
    names: Mutex<BTreeMap<ObjectKey, ObjectKey>>,
}

impl Crooked {
    pub fn new(inner: Arc<dyn Store>, bug: Bug, chance: Chance) -> Self {
        Self { inner, bug, chance, names: Mutex::default() }
    }

    /// What was made when this was asked for.
    fn real(&self, key: &ObjectKey) -> ObjectKey {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(key).unwrap_or(key).clone()
    }

    /// Makes it under another name, and remembers that one if it hears of it.
    async fn create_at_random(&self, mut object: Object, by: &By) -> Result<Encoded> {
        let Ok(asked) = object.key() else { return self.inner.create(object, by).await };
        let name = format!("{}-{}", object.name(), self.chance.below(1_000_000));
        object.set_metadata("name", json!(name));
        let created = self.inner.create(object, by).await?;
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(asked, created.key().clone());
        Ok(created)
    }

    /// Writes what is wanted but for the consent, and answers as if that were there, too.
    async fn update_without_consent(&self, object: Object, by: &By) -> Result<Encoded> {
        let consents: BTreeMap<String, String> = object
            .annotations()
            .into_iter()
            .filter(|(name, _)| name.starts_with(annotation::TO_PREFIX))
            .collect();
        let mut stored = object;
        for name in consents.keys() {
            stored.remove_annotation(name);
        }
        let written = self.inner.update(stored, by).await?;
        let mut answer = written.decode();
        for (name, place) in &consents {
            answer.set_annotation(name, place);
        }
        let body = Body::encode(written.key().clone(), written.head().clone(), &answer);
        Ok(Encoded::new(Arc::new(body), written.resource_version().clone()))
    }
}

fn is_managed(kind: &GroupKind) -> bool {
    check::kinds()[4..6].contains(kind)
}

#[async_trait]
impl Store for Crooked {
    async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        self.inner.get(&self.real(key)).await
    }

    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        self.inner.list(query, page).await
    }

    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        self.inner.watch(query, from).await
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        let is_managed = object.gvk().is_ok_and(|it| is_managed(&it.group_kind));
        if self.bug == Bug::RandomNames && is_managed {
            return self.create_at_random(object, by).await;
        }
        self.inner.create(object, by).await
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        let is = |kind: GroupKind| object.gvk().is_ok_and(|it| it.group_kind == kind);
        match self.bug {
            Bug::DropsConsent if is(check::secrets()) => self.update_without_consent(object, by).await,
            _ => self.inner.update(object, by).await,
        }
    }

    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded> {
        self.inner.update_status(object, by).await
    }

    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        self.inner.patch(key, part, patch, by).await
    }

    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        if self.bug == Bug::KeepsWhatItShouldDelete && is_managed(&key.kind) {
            return Err(Error::NotFound { key: key.clone() });
        }
        self.inner.delete(key, options, by).await
    }

    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>> {
        self.inner.kind(kind).await
    }
}
