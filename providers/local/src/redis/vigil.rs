//! Watching over processes: whoever watches the kind is told when one ends.

use std::sync::{Mutex, PoisonError};

use concert_provider::{Changes, Class, Error, Moved};
use futures_util::stream;
use tokio::process::Child;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

use super::process::Handle;
use super::record::{Name, Records};
use crate::kinds;

/// Ends that a slow watcher may be behind before it has to look at everything again.
const NEWS_MAX: usize = 1024;

/// One task for each process that runs. They end with this value; the processes do not.
pub(super) struct Vigil {
    records: Records,
    news: broadcast::Sender<Moved>,
    tasks: Mutex<JoinSet<()>>,
}

impl Vigil {
    pub(super) fn new(records: Records) -> Self {
        Self { records, news: broadcast::Sender::new(NEWS_MAX), tasks: Mutex::default() }
    }

    /// Watches a process to its end. A child is also seen off, or it would stay in the kernel's table.
    pub(super) fn keep(&self, name: &Name, handle: Handle, child: Option<Child>) {
        let (records, news, name) = (self.records.clone(), self.news.clone(), name.clone());
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            handle.ended().await;
            if let Some(mut child) = child {
                let _ = child.wait().await;
            }
            tracing::info!(%name, "redis-server has ended");
            // Read now: it may have another owner than when it started.
            let object = records.get(&name).ok().flatten().map(|it| it.owner.object).unwrap_or_default();
            let kind = kinds::redis_instance();
            // Nobody may be watching.
            let _ = news.send(Moved { kind, external_name: name.to_string(), object });
        });
    }

    /// The ends of processes from now on.
    pub(super) fn watch(&self) -> Changes {
        Box::pin(stream::unfold(Some(self.news.subscribe()), |news| async move {
            let mut news = news?;
            match news.recv().await {
                Ok(moved) => Some((Ok(moved), Some(news))),
                Err(RecvError::Closed) => None,
                Err(RecvError::Lagged(_)) => {
                    // The caller looks at everything when it watches again.
                    let error = Error::new(Class::Transient, "changes came too fast, some were missed");
                    Some((Err(error), None))
                }
            }
        }))
    }
}
