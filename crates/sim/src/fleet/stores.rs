//! Stores with something wrong about them, on purpose.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::inventory::names;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch, ResourceVersion};
use concert_store::{
    By, Delete, Deleted, Event, Events, Kind, Page, PageRequest, Part, Query, Result, Store,
};
use futures_util::stream::{self, StreamExt as _};

use super::Bug;

/// A store as a process with a bug sees it.
pub struct Crooked {
    pub inner: Arc<dyn Store>,
    pub bug: Bug,
}

impl Crooked {
    fn by(&self, by: &By) -> By {
        match self.bug {
            Bug::NoFence => By { fence: None, ..by.clone() },
            _ => by.clone(),
        }
    }
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
        let events = self.inner.watch(query, from).await?;
        if self.bug != Bug::LosesChanges || query.kind != names::section_kind() {
            return Ok(events);
        }
        let next = |mut events: Events| async move {
            loop {
                let event = events.next().await?;
                if !matches!(event, Ok(Event::Modified(_))) {
                    return Some((event, events));
                }
            }
        };
        Ok(Events::new(stream::unfold(events, next).boxed()))
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        self.inner.create(object, &self.by(by)).await
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        self.inner.update(object, &self.by(by)).await
    }

    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded> {
        self.inner.update_status(object, &self.by(by)).await
    }

    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        self.inner.patch(key, part, patch, &self.by(by)).await
    }

    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        self.inner.delete(key, options, &self.by(by)).await
    }

    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>> {
        self.inner.kind(kind).await
    }
}
