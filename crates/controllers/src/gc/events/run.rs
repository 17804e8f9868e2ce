//! Does what `decide.rs` says about events: looks at all of them now and then.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{Controller, Failure, Outcome, Reconciler, Request};
use concert_model::{GroupKind, ObjectKey};
use concert_store::{By, Clock, Delete, Error, PageRequest, Query, Store};
use tracing::debug;

use super::super::Parts;
use super::super::vocabulary::controller::EVENTS;
use super::decide::is_expired;

/// Events in memory at a time.
const PAGE_EVENTS: usize = 500;

struct Events {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    lifetime: Duration,
    interval: Duration,
}

/// The controller that lets events expire. Its one item is [`item`].
pub fn controller(parts: &Parts) -> Controller {
    let reconciler = Events {
        store: parts.store.clone(),
        clock: parts.clock.clone(),
        lifetime: parts.settings.event_lifetime,
        interval: parts.settings.event_interval,
    };
    Controller::builder(EVENTS, Arc::new(reconciler))
        .concurrency(1)
        .authority(parts.fence.clone().into())
        .build()
}

/// All events, as one item.
pub fn item() -> ObjectKey {
    ObjectKey::cluster(kind(), "")
}

fn kind() -> GroupKind {
    GroupKind::new("", "Event")
}

impl Events {
    async fn expire(&self, by: &By) -> Result<usize, Error> {
        let query = Query::all(kind());
        let mut page = PageRequest { limit: Some(PAGE_EVENTS), token: None };
        let mut expired = 0;
        loop {
            let listed = self.store.list(&query, &page).await?;
            let now = self.clock.now();
            let old = |it: &&concert_model::Encoded| {
                it.head().deleted_at.is_none() && is_expired(it, self.lifetime, now)
            };
            for event in listed.items.iter().filter(old) {
                let uid = Some(event.head().uid.clone());
                let resource_version = Some(event.resource_version().clone());
                let options = Delete { uid, resource_version, ..Delete::default() };
                match self.store.delete(event.key(), &options, by).await {
                    Ok(_) => expired += 1,
                    // Gone already, or seen again at this very moment.
                    Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            match listed.next {
                Some(token) => page.token = Some(token),
                None => return Ok(expired),
            }
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl Reconciler for Events {
    async fn reconcile(&self, request: Request) -> Outcome {
        let by = By { fence: request.fence, ..By::actor(EVENTS) }.because("expired");
        match self.expire(&by).await {
            Ok(expired) => {
                debug!(expired, "looked at all events");
                Outcome::After(self.interval)
            }
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}
