//! Several stores over one backend, taken for one: each call goes to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch, ResourceVersion};

use crate::contract::{By, Delete, Deleted, Events, Page, PageRequest, Part, Query, Result, Store};
use crate::kind::Kind;
use crate::local::Local;

/// What a client sees that comes to another replica with each call.
pub struct Spread {
    stores: Vec<Local>,
    calls: AtomicUsize,
}

impl Spread {
    /// A client of all of these.
    pub fn over(stores: Vec<Local>) -> Self {
        Self { stores, calls: AtomicUsize::new(0) }
    }

    fn next(&self) -> &Local {
        &self.stores[self.calls.fetch_add(1, Ordering::Relaxed) % self.stores.len()]
    }
}

#[async_trait]
impl Store for Spread {
    async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        self.next().get(key).await
    }

    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        self.next().list(query, page).await
    }

    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        self.next().watch(query, from).await
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        self.next().create(object, by).await
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        self.next().update(object, by).await
    }

    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded> {
        self.next().update_status(object, by).await
    }

    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        self.next().patch(key, part, patch, by).await
    }

    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        self.next().delete(key, options, by).await
    }

    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>> {
        self.next().kind(kind).await
    }
}
