//! Reading: one object, or many as of one moment.

use std::sync::Arc;

use concert_model::{Address, Encoded, ObjectKey, ResourceVersion};

use super::cache::Look;
use super::codec;
use super::kinds::Resource;
use super::requests::Verb;
use super::selectors::select;
use super::server::Server;
use super::status::About;
use super::transport::Content;
use crate::contract::{Page, PageRequest, Query, Result};
use crate::error::Error;

/// Objects asked for at once when all are wanted, as kubectl does.
const PAGE_OBJECTS: usize = 500;

impl Server {
    /// From the cache if the kind is watched, else by asking.
    pub(super) async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        let reflector = self.registry.find(&key.kind);
        match reflector.map_or(Look::Ask, |reflector| reflector.look(key)) {
            Look::Found(object) => Ok(object),
            Look::Missing => Err(Error::NotFound { key: key.clone() }),
            Look::Ask => self.get_live(key).await,
        }
    }

    /// By asking.
    pub(super) async fn get_live(&self, key: &ObjectKey) -> Result<Encoded> {
        let address = |resource: &Resource| {
            check_key(resource, key)?;
            Ok((resource.address_of(key), Content::None))
        };
        let answer = self.ask(&key.kind, Verb::Get, About::Object(key), address).await;
        if let (Err(Error::NotFound { .. }), Some(reflector)) = (&answer, self.registry.find(&key.kind)) {
            reflector.absent(key);
        }
        let (resource, answer) = answer?;
        let object = codec::object(&resource, &answer.bytes)?;
        self.answered(&object);
        Ok(object)
    }

    /// Every object that leaves this store passes here: what was once shown is not unseen.
    pub(super) fn answered(&self, object: &Encoded) {
        self.see(object.resource_version());
        if let Some(reflector) = self.registry.find(&object.key().kind) {
            reflector.answered(object);
        }
    }

    /// Something was seen that a shared watch of the kind may not have told yet.
    pub(super) fn doubted(&self, key: &ObjectKey) {
        if let Some(reflector) = self.registry.find(&key.kind) {
            reflector.doubted(key);
        }
    }

    pub(super) async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        let page = match (page.limit.filter(|limit| *limit > 0), &page.token) {
            (None, None) => self.list_all(query, None).await?,
            (limit, token) => self.list_page(query, limit, token.as_deref(), None).await?,
        };
        if let Some(reflector) = self.registry.find(&query.kind) {
            page.items.iter().for_each(|object| reflector.answered(object));
        }
        Ok(page)
    }

    /// The whole list, as of now or of an earlier position.
    pub(super) async fn list_all(&self, query: &Query, at: Option<&ResourceVersion>) -> Result<Page> {
        let mut page = self.list_page(query, Some(PAGE_OBJECTS), None, at).await?;
        while let Some(token) = page.next.take() {
            let more = self.list_page(query, Some(PAGE_OBJECTS), Some(&token), None).await?;
            page.items.extend(more.items);
            page.next = more.next;
        }
        // etcd sorts `a-b/…` before `a/…`, we sort by namespace first.
        page.items.sort_by(|a, b| a.key().cmp(b.key()));
        Ok(page)
    }

    async fn list_page(
        &self,
        query: &Query,
        limit: Option<usize>,
        token: Option<&str>,
        at: Option<&ResourceVersion>,
    ) -> Result<Page> {
        let request = |resource: &Resource| {
            let mut address = address_of(resource, query)?;
            if let Some(limit) = limit {
                address = address.with("limit", &limit.to_string());
            }
            if let Some(token) = token {
                address = address.with("continue", token);
            }
            if let Some(at) = at {
                address = address.with("resourceVersion", &at.0).with("resourceVersionMatch", "Exact");
            }
            Ok((address, Content::None))
        };
        let (resource, answer) = self.ask(&query.kind, Verb::List, About::Kind(&query.kind), request).await?;
        let list: codec::List<'_> =
            serde_json::from_slice(&answer.bytes).map_err(|e| Error::Unavailable(e.into()))?;
        let items = list.items.into_iter().flatten();
        let items =
            items.map(|item| codec::object(&resource, item.get().as_bytes())).collect::<Result<_>>()?;
        let position = ResourceVersion(list.metadata.resource_version.into());
        self.see(&position);
        Ok(Page { items, position, next: list.metadata.next.filter(|token| !token.is_empty()) })
    }
}

/// Where the objects of a query are.
pub(super) fn address_of(resource: &Resource, query: &Query) -> Result<Address> {
    Ok(select(resource.address(query.namespace.as_deref()), query))
}

/// A key that no object can have names nothing; it might name another path.
pub(super) fn check_key(resource: &Resource, key: &ObjectKey) -> Result<()> {
    let is_name = |text: &Arc<str>| concert_model::metadata::NameRule::PathSegment.check(text).is_ok();
    let is_scoped = resource.kind.is_namespaced != key.namespace.is_empty();
    if is_name(&key.name) && is_scoped && (key.namespace.is_empty() || is_name(&key.namespace)) {
        return Ok(());
    }
    Err(Error::NotFound { key: key.clone() })
}
