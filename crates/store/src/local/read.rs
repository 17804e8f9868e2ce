//! Reading: one object, or many as of one moment.

use concert_model::{Encoded, FieldError, FieldPath, Head, ObjectKey, ResourceVersion, Revision};

use super::{Inner, Local, revision_of};
use crate::backend::{Backend, Range, Scan};
use crate::contract::{Page, PageRequest, Query, Result};
use crate::error::Error;

impl Query {
    /// True if an object with this key and head is meant.
    pub fn selects(&self, key: &ObjectKey, head: &Head) -> bool {
        self.kind == key.kind
            && self.namespace.as_ref().is_none_or(|n| *n == key.namespace)
            && self.labels.matches(&head.labels)
            && self.fields.matches(|field| match field {
                "metadata.name" => Some(&*key.name),
                "metadata.namespace" => Some(&*key.namespace),
                other => head.fields.get(other).map(String::as_str),
            })
    }

    fn selects_all(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }
}

impl Inner {
    /// The current state of a key, none if it is free.
    pub(super) async fn fetch(&self, key: &ObjectKey) -> Result<Option<Encoded>> {
        let row = if self.backend.is_local() {
            self.backend.get(key)?
        } else {
            let key = key.clone();
            self.read(move |backend| backend.get(&key)).await?
        };
        row.map(|row| self.unseal(row)).transpose()
    }

    /// Refuses kinds that are not there and fields that cannot be selected by.
    pub(super) async fn check_query(&self, query: &Query) -> Result<()> {
        let served = self.find_kind(&query.kind).await?;
        for requirement in query.fields.requirements() {
            let field = requirement.field.as_str();
            let is_known = matches!(field, "metadata.name" | "metadata.namespace")
                || served.kind.selectable_fields.iter().any(|f| f == field);
            if !is_known {
                let detail = format!("{} cannot be selected by {field}", query.kind);
                let error = FieldError::invalid_text(FieldPath::new("fieldSelector"), field, detail);
                return Err(Error::invalid("fieldSelector", error));
            }
        }
        Ok(())
    }

    /// A list as of now or, without a token, as of the revision `at`.
    pub(super) async fn list(&self, query: &Query, page: &PageRequest, at: Option<Revision>) -> Result<Page> {
        self.check_query(query).await?;
        let place = match &page.token {
            None => None,
            Some(token) => {
                let newest = self.read_one(Backend::bounds).await?.newest;
                // A token is no pass into another namespace.
                let is_its = |place: &Place| {
                    let namespace = query.namespace.as_deref();
                    place.at <= newest && namespace.is_none_or(|namespace| namespace == place.namespace)
                };
                let place = Place::parse(token).filter(is_its);
                Some(place.ok_or_else(|| Place::refusal(token))?)
            }
        };
        let limit = page.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let (query, shared) = (query.clone(), self.shared.clone());
        let read = move |backend: &dyn Backend| {
            let keep = |key: &ObjectKey, head: &[u8]| {
                query.selects_all()
                    || serde_json::from_slice(head).is_ok_and(|head| query.selects(key, &head))
            };
            let range = backend.range(&Scan {
                kind: &query.kind,
                namespace: query.namespace.as_deref(),
                after: place.as_ref().map(|p| (p.namespace.as_str(), p.name.as_str())),
                at: place.as_ref().map(|p| p.at).or(at),
                limit,
                keep: &keep,
            })?;
            let Range { revision, rows, is_cut } = range;
            let last = rows.last().filter(|_| is_cut).map(|row| Place::at(revision, &row.key).print());
            let items = rows.into_iter().map(|row| shared.unseal(row)).collect::<Result<Vec<_>, _>>()?;
            Ok(Page { items, position: revision.into(), next: last })
        };
        self.read(read).await
    }
}

impl Local {
    /// As [`crate::Store::list`], as of the moment `at` instead of now. The token of a page before carries
    /// the moment with it.
    ///
    /// # Errors
    /// As [`crate::Store::list`]; [`Error::Expired`] when the moment is compacted, [`Error::Invalid`] when it
    /// lies in the future.
    pub async fn list_at(&self, query: &Query, page: &PageRequest, at: &ResourceVersion) -> Result<Page> {
        let at = self.inner().check_position(at).await?;
        self.inner().list(query, page, Some(at)).await
    }

    /// How many objects that `query` selects come after a page that ends with `last`, about: as of now. None
    /// where that would mean to look at each of them.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn remaining(&self, query: &Query, last: &ObjectKey) -> Result<Option<usize>> {
        if !query.selects_all() {
            return Ok(None);
        }
        let (query, last) = (query.clone(), last.clone());
        let count = move |backend: &dyn Backend| {
            backend.count(&query.kind, query.namespace.as_deref(), &last).map(Some)
        };
        self.inner().read(count).await
    }

    /// True if the store has come as far as `position`: what is read from now on is not older.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what is no position of any such store.
    pub async fn has_reached(&self, position: &ResourceVersion) -> Result<bool> {
        let Some(revision) = revision_of(position) else {
            let field = FieldPath::new("resourceVersion");
            let error = FieldError::invalid_text(field, &position.0, "is not one of this store's");
            return Err(Error::invalid("resourceVersion", error));
        };
        Ok(revision <= self.newest().await?)
    }
}

/// Where a list goes on: the revision it shows and the last key it showed.
struct Place {
    at: Revision,
    namespace: String,
    name: String,
}

impl Place {
    fn at(at: Revision, key: &ObjectKey) -> Self {
        Self { at, namespace: key.namespace.to_string(), name: key.name.to_string() }
    }

    fn print(&self) -> String {
        format!("{}/{}/{}", self.at, self.namespace, self.name)
    }

    fn parse(token: &str) -> Option<Self> {
        let parts: Vec<&str> = token.split('/').collect();
        let [at, namespace, name] = parts[..] else { return None };
        let at = revision_of(&ResourceVersion(at.into()))?;
        (!name.is_empty()).then(|| Self { at, namespace: namespace.into(), name: name.into() })
    }

    fn refusal(token: &str) -> Error {
        let field = FieldPath::new("continue");
        Error::invalid("list", FieldError::invalid_text(field, token, "is not a token of this store"))
    }
}
