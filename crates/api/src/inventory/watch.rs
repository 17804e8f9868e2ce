//! `GET /watch`: which section of which entry has changed, as it happens, and never to what.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use concert_model::inventory::{Right, Section, names};
use concert_model::{Encoded, GroupKind};
use concert_store::backend::Act;
use concert_store::local::Change;
use http::Response;
use serde_json::json;

use super::caller::Caller;
use super::door::Inner;
use super::tokens::Scope;
use crate::auth::User;
use crate::kube::Body;
use crate::rest::{Call, Error, stream};

impl Inner {
    /// Starts a stream of what the caller may read.
    pub async fn watch(
        self: Arc<Self>,
        call: &Call<'_>,
        caller: Caller<'_>,
    ) -> Result<Response<Body>, Error> {
        let mut query = call.query(&["entry", "section"]);
        query.check()?;
        let text = |name: &str| query.text(name).map(str::to_owned);
        let (entry, section) = (text("entry"), text("section"));
        let scope = match &caller {
            Caller::User(_) => {
                let name = section.as_deref().unwrap_or_default();
                match &entry {
                    // Perhaps a role names this one and no other.
                    Some(entry) if !name.is_empty() => {
                        self.permit_section(&caller, (Right::Read, "watch"), entry, name).await?;
                    }
                    _ => self.permit_user(&caller, "watch", "sections", name).await?,
                }
                None
            }
            Caller::Reconciler(_, scope) => {
                let id = entry.as_deref().unwrap_or(&scope.entry);
                self.permit_entry(&caller, "get", id).await?;
                self.entry(&caller, id).await?;
                Some(scope.clone())
            }
        };
        let user = caller.user().clone();
        let reader = Reader { inner: self, user, scope, entry, section };
        stream::start(call, |kind: &GroupKind| *kind == names::section_kind(), reader).await
    }
}

struct Reader {
    inner: Arc<Inner>,
    user: User,
    /// Of a reconciler.
    scope: Option<Scope>,
    entry: Option<String>,
    section: Option<String>,
}

impl Reader {
    /// Asked anew for each change: what is revoked stops at once.
    async fn may_read(&self, section: Section<'_>) -> bool {
        let permitted = match &self.scope {
            None => {
                let (caller, right) = (Caller::User(&self.user), (Right::Read, "watch"));
                self.inner.permit_section(&caller, right, section.entry(), section.name()).await
            }
            Some(scope) if section.entry_uid().as_ref() != Some(&scope.uid) => return false,
            Some(scope) => {
                let caller = Caller::Reconciler(&self.user, scope.clone());
                let right = (Right::Read, "get");
                self.inner.permit_section(&caller, right, section.entry(), section.name()).await
            }
        };
        permitted.is_ok()
    }
}

#[async_trait]
impl stream::Reader for Reader {
    async fn frame(&self, change: &Change) -> Option<Bytes> {
        let object = change.object.decode();
        let section = Section(&object);
        let is_wanted = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|it| it == is);
        if !is_wanted(&self.entry, section.entry()) || !is_wanted(&self.section, section.name()) {
            return None;
        }
        // A change of labels is none of the contents.
        let before = change.previous.as_ref().map(Encoded::decode);
        let is_same = before.is_some_and(|it| Section(&it).version() == section.version());
        if change.act == Act::Updated && is_same || !self.may_read(section).await {
            return None;
        }
        let uid = section.entry_uid()?;
        let revision = self.inner.books.now().await.ok()?.revision(&uid);
        let mut data = json!({"entry": section.entry(), "section": section.name(),
            "version": section.version(), "revision": revision});
        if change.act == Act::Removed {
            data["removed"] = json!(true);
        }
        Some(stream::event(change, "section", &data))
    }

    fn is_last(&self, _change: &Change) -> bool {
        false
    }
}
