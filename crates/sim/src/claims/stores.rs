//! Stores with something wrong about them, on purpose.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch, ResourceVersion};
use concert_store::{
    By, Delete, Deleted, Error, Events, Kind, Page, PageRequest, Part, Query, Result, Store,
};

use super::{Bug, check};

/// A store as controllers of claims with a bug would use it.
pub struct Crooked {
    pub inner: Arc<dyn Store>,
    pub bug: Bug,
}

fn is_managed(kind: &GroupKind) -> bool {
    check::kinds()[4..6].contains(kind)
}

#[async_trait]
impl Store for Crooked {
    async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        self.inner.get(key).await
    }

    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        self.inner.list(query, page).await
    }

    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        self.inner.watch(query, from).await
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        self.inner.create(object, by).await
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        self.inner.update(object, by).await
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
