//! Resource types: kinds that carry a JSON Schema.

mod definition;
mod kept;
mod routes;

pub use definition::Type;
pub use kept::{Kept, Typed};
pub(crate) use routes::{all, create, delete, get, get_by_name, update};

use concert_model::no8s::{GROUP, is_ours, names};
use concert_model::{GroupKind, ObjectKey};
use concert_store::local::{DEFINITION_GROUP, DEFINITION_KIND};
use concert_store::{Error, Local, Store};

/// The kind of kinds.
pub fn definition_kind() -> GroupKind {
    GroupKind::new(DEFINITION_GROUP, DEFINITION_KIND)
}

/// The definition of a kind.
pub(crate) fn definition_key(plural: &str, group: &str) -> ObjectKey {
    ObjectKey::cluster(definition_kind(), format!("{plural}.{group}"))
}

/// The resource type with this name and version, unless it is being deleted.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn find(store: &Local, name: &str, version: &str) -> Result<Option<Type>, Error> {
    Ok(find_any(store, name, version).await?.filter(|it| !it.is_deleting))
}

/// The same, be it on its way out: it may still have resources.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn find_any(store: &Local, name: &str, version: &str) -> Result<Option<Type>, Error> {
    if names::check_type_name(name).is_err() || names::check_type_version(version).is_err() {
        return Ok(None);
    }
    let plural = names::plural(name);
    for group in [GROUP.to_owned(), names::versioned_group(version)] {
        let found = match store.get(&definition_key(&plural, &group)).await {
            Ok(definition) => Type::read(&definition),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        if let Some(found) = found.filter(|it| it.name == name && it.version == version) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// All resource types, by name and version. Asks only for definitions of our kinds: there may be hundreds
/// of others.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn list(store: &Local) -> Result<Vec<Type>, Error> {
    let cards = store.cards();
    let mut all = Vec::new();
    for card in cards.iter().filter(|card| is_ours(&card.kind.group_kind.group)) {
        match store.get(&definition_key(&card.kind.plural, &card.kind.group_kind.group)).await {
            Ok(definition) => all.extend(Type::read(&definition)),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    all.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    Ok(all)
}
