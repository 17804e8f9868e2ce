//! References: fields that are filled from other objects.
//!
//! Providers declare which fields those are; nothing here knows a kind. What is found is cached in the
//! object itself: a field that has a value is left alone unless its policy says `Always`.

mod path;
#[cfg(test)]
mod tests;
mod wish;

use std::collections::BTreeMap;

use concert_engine::Wait;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, OwnerReference};
use concert_provider::Reference;
use concert_store::{Error, PageRequest, Query, Store};
use serde_json::{Value, json};

use super::vocabulary::annotation::EXTERNAL_NAME;
use path::Path;
use wish::{Fields, Named, Selector, Target};

const EMPTY: &str = "referenced field was empty (referenced resource may not yet be ready)";
const NO_MATCH: &str = "no resources matched selector";
const CANNOT_GET: &str = "cannot get referenced resource";

/// Objects that are looked at in one go: most selectors want the first.
const PAGE_OBJECTS_MAX: usize = 500;

/// Why the fields of an object could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// What is referred to is missing or does not have the value yet.
    #[error("{message}")]
    NotReady {
        /// For people.
        message: String,
        /// What to wait for; none where anything may come to match.
        waits: Vec<Wait>,
    },
    /// The store failed.
    #[error("cannot read what is referred to")]
    Store(#[source] Error),
    /// The object or its provider's declaration has to change first.
    #[error("{0}")]
    Invalid(String),
}

impl From<Error> for ReferenceError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Fills fields from other objects. Only reads; answers the object with another `spec`, or none if it
/// stays as it is.
///
/// # Errors
/// [`ReferenceError`], of the first reference that fails.
pub async fn resolve(
    store: &dyn Store,
    object: &Object,
    references: &[Reference],
) -> Result<Option<Object>, ReferenceError> {
    let mut changed = object.clone();
    for reference in references {
        fill(store, &mut changed, reference).await?;
    }
    Ok((changed != *object).then_some(changed))
}

/// The objects that `object` refers to by name, whether they are there or not. What is malformed, or of a
/// kind that is not served, is left out: a pass tells of that.
///
/// # Errors
/// Those of the store.
pub async fn named(
    store: &dyn Store,
    object: &Object,
    references: &[Reference],
) -> Result<Vec<ObjectKey>, Error> {
    let mut keys = Vec::new();
    for reference in references {
        let Ok(fields) = Fields::of(reference) else { continue };
        let is_namespaced = match store.kind(&reference.to.group_kind).await {
            Ok(kind) => kind.is_namespaced,
            Err(Error::UnknownKind { .. }) => continue,
            Err(error) => return Err(error),
        };
        let finder = Finder { store, object, reference };
        let named = wish::named(object, reference, &fields).unwrap_or_default();
        keys.extend(named.iter().filter_map(|it| finder.key(it, is_namespaced).ok()));
    }
    Ok(keys)
}

async fn fill(store: &dyn Store, object: &mut Object, reference: &Reference) -> Result<(), ReferenceError> {
    let invalid = |why: String| ReferenceError::Invalid(format!("{}: {why}", reference.field));
    let fields = Fields::of(reference).map_err(invalid)?;
    let Some(wish) = wish::wish(object, reference, &fields).map_err(invalid)? else { return Ok(()) };
    let finder = Finder { store, object, reference };
    let (found, is_selected) = match &wish.target {
        Target::Named(named) => (finder.named(named).await?, false),
        Target::Selected(selector) => (finder.selected(selector).await?, true),
    };
    let (value, chosen) = match found {
        Some(found) => {
            let (values, chosen): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            let chosen = keep_known(fields.reference.get(object), chosen);
            (as_field(values, reference.is_many), as_field(chosen, reference.is_many))
        }
        // Optional, and not there. What an earlier selection left behind goes; what a person wrote stays.
        None if wish.is_selected_anew => (Value::Null, Value::Null),
        None => return Ok(()),
    };
    fields.value.set(object, value).map_err(invalid)?;
    if is_selected {
        fields.reference.set(object, chosen).map_err(invalid)?;
    }
    Ok(())
}

/// The chosen references, each as it is written already where it is: a schema may have filled in more.
fn keep_known(written: &Value, chosen: Vec<Value>) -> Vec<Value> {
    let written: Vec<&Value> = match written {
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    };
    let is_same =
        |a: &Value, b: &Value| a.get("name") == b.get("name") && a.get("namespace") == b.get("namespace");
    let keep = |it: Value| written.iter().find(|old| is_same(old, &it)).map_or(it, |old| (*old).clone());
    chosen.into_iter().map(keep).collect()
}

fn as_field(items: Vec<Value>, is_many: bool) -> Value {
    if is_many { Value::Array(items) } else { items.into_iter().next().unwrap_or(Value::Null) }
}

/// A value and the reference to whom it is from.
type Found = (Value, Value);

/// Looks up what one reference points at.
struct Finder<'a> {
    store: &'a dyn Store,
    object: &'a Object,
    reference: &'a Reference,
}

impl Finder<'_> {
    /// The values of objects by name, in their order; none if one is missing that may be.
    async fn named(&self, named: &[Named]) -> Result<Option<Vec<Found>>, ReferenceError> {
        let is_namespaced = self.store.kind(self.kind()).await?.is_namespaced;
        let mut found = Vec::with_capacity(named.len());
        for one in named {
            let key = self.key(one, is_namespaced)?;
            let result = match self.store.get(&key).await {
                Ok(target) => self
                    .value(&target)?
                    .map(|value| (value, Value::Null))
                    .ok_or_else(|| self.not_ready(EMPTY.to_owned(), vec![Wait::change_of(&target)])),
                Err(error @ Error::NotFound { .. }) => {
                    Err(self.not_ready(format!("{CANNOT_GET}: {error}"), vec![Wait::existence_of(key)]))
                }
                Err(other) => return Err(other.into()),
            };
            match result {
                Ok(one) => found.push(one),
                Err(_) if one.is_optional => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(found))
    }

    /// The values of objects by label, sorted if there may be many; none if there is none and need not be.
    async fn selected(&self, selector: &Selector) -> Result<Option<Vec<Found>>, ReferenceError> {
        let mut query = Query::all(self.kind().clone()).with_labels(selector.labels.clone());
        if self.store.kind(self.kind()).await?.is_namespaced {
            let own = self.object.namespace();
            let namespace = if selector.namespace.is_empty() { own } else { &selector.namespace };
            query.namespace = Some(namespace.into()).filter(|_| !namespace.is_empty());
        }
        let mut found = BTreeMap::new();
        let mut page = PageRequest { limit: Some(PAGE_OBJECTS_MAX), token: None };
        loop {
            let listed = self.store.list(&query, &page).await?;
            let is_match = |it: &&Encoded| !selector.must_share_controller || self.shares_controller(it);
            for target in listed.items.iter().filter(is_match) {
                let Some(value) = self.value(target)? else {
                    let error = self.not_ready(EMPTY.to_owned(), vec![Wait::change_of(target)]);
                    return if selector.is_optional { Ok(None) } else { Err(error) };
                };
                let one = (value, self.written(target.key()));
                if !self.reference.is_many {
                    return Ok(Some(vec![one]));
                }
                found.insert(sortable(&one.0), one);
            }
            match listed.next {
                Some(token) => page.token = Some(token),
                None => break,
            }
        }
        match found.is_empty() {
            false => Ok(Some(found.into_values().collect())),
            true if selector.is_optional => Ok(None),
            true => Err(self.not_ready(NO_MATCH.to_owned(), Vec::new())),
        }
    }

    fn kind(&self) -> &GroupKind {
        &self.reference.to.group_kind
    }

    fn key(&self, named: &Named, is_namespaced: bool) -> Result<ObjectKey, ReferenceError> {
        if !is_namespaced {
            return Ok(ObjectKey::cluster(self.kind().clone(), &*named.name));
        }
        let own = self.object.namespace();
        let namespace = if named.namespace.is_empty() { own } else { &named.namespace };
        if namespace.is_empty() {
            let field = &self.reference.reference_field;
            return Err(ReferenceError::Invalid(format!("{field}.namespace must not be empty")));
        }
        Ok(ObjectKey::namespaced(self.kind().clone(), namespace, &*named.name))
    }

    /// The reference that is written back for what was selected.
    fn written(&self, target: &ObjectKey) -> Value {
        if target.namespace.is_empty() || *target.namespace == *self.object.namespace() {
            return json!({"name": &*target.name});
        }
        json!({"name": &*target.name, "namespace": &*target.namespace})
    }

    fn shares_controller(&self, target: &Encoded) -> bool {
        let controller =
            |owners: &[OwnerReference]| owners.iter().find(|it| it.is_controller()).map(|it| it.uid.clone());
        let own = controller(&self.object.owners());
        own.is_some() && own == controller(&target.head().owners)
    }

    /// What is taken from the target; none if it is empty.
    fn value(&self, target: &Encoded) -> Result<Option<Value>, ReferenceError> {
        let object = target.decode();
        let extract = &self.reference.extract;
        let value = if extract.is_empty() {
            object.annotation(EXTERNAL_NAME).map_or(Value::Null, Value::from)
        } else {
            let invalid = |why| ReferenceError::Invalid(format!("{}: {why}", self.reference.field));
            Path::parse(extract).map_err(invalid)?.get(&object).clone()
        };
        match value {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::Array(_) | Value::Object(_) => {
                let why =
                    format!("{}: {extract} of {} is not a single value", self.reference.field, target.key());
                Err(ReferenceError::Invalid(why))
            }
            single => Ok(Some(single)),
        }
    }

    fn not_ready(&self, why: String, waits: Vec<Wait>) -> ReferenceError {
        ReferenceError::NotReady { message: format!("{}: {why}", self.reference.field), waits }
    }
}

fn sortable(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
