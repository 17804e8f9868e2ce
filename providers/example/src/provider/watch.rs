//! Pushing what changes in the cloud by itself or by somebody's hand.

use std::sync::Arc;
use std::time::Duration;

use concert_model::Timestamp;
use concert_provider::{Changes, Class, Error, Moved};
use futures_util::stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Result;
use crate::cloud::{Api, Change, Thing};
use crate::kinds::Kind;

/// The cloud forgets what has settled after a minute, so a listener looks up more often.
const LOOK_EVERY: Duration = Duration::from_secs(30);

struct Listener {
    api: Arc<Api>,
    kind: &'static Kind,
    news: Receiver<Change>,
    /// Everything that settled until then was told.
    told_until: Timestamp,
    waiting: Vec<Moved>,
    is_over: bool,
}

/// Changes of things of one kind from now on.
pub(super) fn changes(api: Arc<Api>, kind: &'static Kind) -> Changes {
    let (news, told_until) = (api.listen(), api.now());
    let listener = Listener { api, kind, news, told_until, waiting: Vec::new(), is_over: false };
    Box::pin(stream::unfold(listener, |mut listener| async move {
        let next = listener.next().await?;
        Some((next, listener))
    }))
}

impl Listener {
    async fn next(&mut self) -> Option<Result<Moved>> {
        loop {
            if let Some(moved) = self.waiting.pop() {
                return Some(Ok(moved));
            }
            if self.is_over {
                return None;
            }
            self.take_settled();
            if !self.waiting.is_empty() {
                continue;
            }
            let nap = self.api.clock().sleep(self.nap());
            tokio::select! {
                news = self.news.recv() => match news {
                    Ok(Change::Moved(thing)) => self.push(&thing),
                    Ok(Change::Scheduled) => {}
                    Err(RecvError::Lagged(_)) => {
                        // The caller looks at everything when it connects again.
                        self.is_over = true;
                        return Some(Err(Error::new(Class::Transient, "changes came too fast, some were missed")));
                    }
                    Err(RecvError::Closed) => return None,
                },
                () = nap => {}
            }
        }
    }

    fn take_settled(&mut self) {
        let now = self.api.now();
        let settled = self.api.cloud().settled(self.told_until, now);
        settled.iter().for_each(|thing| self.push(thing));
        self.told_until = now;
    }

    fn nap(&self) -> Duration {
        let next = self.api.cloud().settles_next(self.told_until);
        let wait = next.and_then(|at| at.duration_since(self.told_until).try_into().ok());
        wait.unwrap_or(LOOK_EVERY).min(LOOK_EVERY)
    }

    fn push(&mut self, thing: &Thing) {
        if Kind::of_thing(&thing.key.kind).is_some_and(|kind| std::ptr::eq(kind, self.kind)) {
            self.waiting.push(Moved {
                kind: self.kind.gvk(),
                external_name: thing.key.id.clone(),
                object: thing.owner.object.clone(),
            });
        }
    }
}
