//! Whether a watch may go on: it lasts for an hour, and what allowed it may not.

use std::time::Duration;

use concert_model::Revision;
use http::HeaderMap;

use crate::auth::{Access, User, credentials};
use crate::error::{Error, Naming};
use crate::kube::api::{Call, Inner};
use crate::kube::catalogue::Resource;

/// How long a watch may go on after what allowed it was taken away.
pub(super) const EVERY: Duration = Duration::from_secs(2);

/// How long a watch may stand while the store cannot be asked. Nothing new can come of it meanwhile, so nobody is
/// told what they may no longer see.
const UNASKED_MAX: Duration = Duration::from_secs(60);

/// What a watch rests on.
pub(super) struct Standing {
    /// What it said of who asks, and nothing else.
    headers: HeaderMap,
    user: User,
    namespace: String,
    name: String,
    /// What is served, as of the last look.
    cards: u64,
    /// Where the store was at the last look: rights are objects, so nothing new means the same rights.
    seen: Revision,
    /// When the store was last asked and answered.
    asked: Duration,
}

impl Standing {
    pub(super) fn new(call: &Call<'_>) -> Self {
        Self {
            headers: credentials(call.headers),
            user: call.user.clone(),
            // A namespace counts as being in itself, as when it was let in.
            namespace: if call.resource.is_core("Namespace") { call.name } else { call.namespace }.to_owned(),
            name: call.watched_name().unwrap_or_default(),
            cards: call.api.store.cards_version(),
            // The first look is a whole one: something may have changed since the request was let in.
            seen: Revision::default(),
            asked: call.api.clock.elapsed(),
        }
    }

    /// Whether it may go on.
    ///
    /// # Errors
    /// Why not; none where it just ends, and the client is to list again.
    pub(super) async fn check(&mut self, api: &Inner, resource: &Resource) -> Result<(), Option<Error>> {
        // What other replicas were told counts as well.
        match api.store.refresh().await {
            Ok(()) => self.asked = api.clock.elapsed(),
            Err(_) if api.clock.elapsed().saturating_sub(self.asked) < UNASKED_MAX => return Ok(()),
            Err(error) => return Err(Some(Error::of_read(error, &resource.naming("")))),
        }
        let cards = api.store.cards_version();
        if cards != self.cards {
            let now = api.catalogues.now();
            // As Kubernetes does: objects may look different now, or belong to another definition.
            if now.find(&resource.api_version, resource.plural()).is_none_or(|it| !it.is_same(resource)) {
                return Err(None);
            }
            self.cards = cards;
        }
        self.check_rights(api, resource).await.map_err(Some)
    }

    async fn check_rights(&mut self, api: &Inner, resource: &Resource) -> Result<(), Error> {
        // Tokens expire by themselves.
        let user = api.gate.authenticate(&self.headers).await;
        let user = user.map_err(|refusal| Error::refused(refusal, None))?;
        let naming = Naming { name: &self.name, ..resource.naming("") };
        // As of the refresh: to ask the store once more, for each watch by itself, would tell nothing new.
        let newest = api.store.heard();
        if newest == self.seen && user == self.user {
            return Ok(());
        }
        let access = Access::Resource {
            verb: "watch",
            group: &resource.group_kind().group,
            resource: resource.plural(),
            subresource: "",
            namespace: &self.namespace,
            name: &self.name,
        };
        let allowed = api.gate.authorise(&user, &access).await;
        allowed.map_err(|refusal| Error::refused(refusal, Some(&naming)))?;
        (self.user, self.seen) = (user, newest);
        Ok(())
    }
}
