//! Copies of what is at work.

use std::path::Path;
use std::sync::Arc;

use concert_api::auth;
use concert_engine::{Shutdown, Tasks};
use tracing::{error, warn};

use super::super::data::Entry;
use super::super::definitions::define;
use super::super::error::Error;
use super::super::hands::Hands;
use super::{Refusal, Request, Site, Socket};

/// Copies, made and taken back while everything runs.
pub(in crate::serve) struct Copying {
    pub site: Site,
    /// What the administrator's kubeconfig says; none where nobody needs one.
    pub entry: Option<Entry>,
    pub hands: Arc<Hands>,
}

impl Copying {
    pub fn serve(self, tasks: &Tasks) {
        let clock = self.site.clock.clone();
        match Socket::bind(&self.site.folder) {
            Ok(socket) => {
                let (copying, root) = (Arc::new(self), tasks.root().clone());
                let act = move |request| {
                    let (copying, root) = (copying.clone(), root.clone());
                    async move { copying.act(request, &root).await }
                };
                socket.serve(act, clock, tasks);
            }
            Err(error) => warn!(%error, "no copies can be made while this runs"),
        }
    }

    async fn act(&self, request: Request, root: &Shutdown) -> Result<(), Refusal> {
        if self.site.store.is_shared() {
            let what = "this control plane keeps its objects in PostgreSQL";
            return Err(Refusal::new(what, "use pg_dump and pg_restore: docs/guides/postgres.md says how"));
        }
        match request {
            Request::Backup { file, with_key } => self.site.backup(&file, with_key).await,
            Request::Restore { file, key } => {
                // Nobody may act on what was before. Clients go on: their positions are expired, and
                // their writes conflict.
                self.hands.stop().await;
                let restored = self.restore(&file, key.as_deref()).await;
                if let Err(error) = self.hands.start(None) {
                    error!(%error, "cannot begin again");
                    root.request();
                }
                restored
            }
        }
    }

    async fn restore(&self, file: &Path, key: Option<&Path>) -> Result<(), Refusal> {
        self.site.restore(file, key).await?;
        let Site { store, clock, chance, .. } = &self.site;
        // As a start does: the copy may be of an older version.
        let failed = |error: Error| Refusal::of_start(&error);
        define(store, self.hands.only).await.map_err(failed)?;
        auth::bootstrap(store, &**clock, chance).await.map_err(|it| failed(Error::store(it)))?;
        match &self.entry {
            Some(entry) => self.site.admit_administrator(entry.clone()).await,
            None => Ok(()),
        }
    }
}
