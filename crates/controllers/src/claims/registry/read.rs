//! Reads what is declared.

use concert_model::{Encoded, GroupKind, Object, ObjectKey};
use concert_store::{Error, PageRequest, Query, Store};

use super::super::definition::{self, Kinds, Known, parse, served};
use super::decide::{Cast, Declared, cast};

/// Who plays as things are declared now, whether anybody does or not. Nobody, where there is no such kind as
/// ClaimDefinition.
///
/// # Errors
/// As the store's.
pub async fn read(store: &dyn Store) -> Result<Cast, Error> {
    let definitions = match definitions(store).await {
        Err(Error::UnknownKind { .. } | Error::NotFound { .. }) => Vec::new(),
        found => found?,
    };
    let declared: Vec<Declared> = definitions.iter().map(declared).collect();
    let kinds = kinds(store, &declared).await?;
    Ok(cast(&declared, &kinds))
}

/// The kind of definitions of kinds.
pub(super) fn crd() -> GroupKind {
    GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// All definitions.
pub(super) async fn definitions(store: &dyn Store) -> Result<Vec<Object>, Error> {
    let page = store.list(&Query::all(definition::kind()), &PageRequest::whole()).await?;
    Ok(page.items.iter().map(Encoded::decode).collect())
}

/// One definition, as far as it can be read.
pub(super) fn declared(object: &Object) -> Declared {
    let (definition, errors) = parse(object);
    let former = served::former(&served::remembered(object), definition.as_ref());
    let is_leaving = object.deleted_at().is_some();
    Declared { name: object.name().into(), definition, errors, former, is_leaving }
}

/// What is known of all kinds that the definitions name.
pub(super) async fn kinds(store: &dyn Store, declared: &[Declared]) -> Result<Kinds, Error> {
    let mut kinds = Kinds::new();
    for kind in declared.iter().flat_map(Declared::kinds) {
        if !kinds.contains_key(kind)
            && let Some(known) = known(store, kind).await?
        {
            kinds.insert(kind.clone(), known);
        }
    }
    Ok(kinds)
}

async fn known(store: &dyn Store, kind: &GroupKind) -> Result<Option<Known>, Error> {
    let served = match store.kind(kind).await {
        Ok(served) => served,
        Err(Error::UnknownKind { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let key = ObjectKey::cluster(crd(), format!("{}.{}", served.plural, kind.group));
    match store.get(&key).await {
        Ok(definition) => Ok(Some(Known::of(&definition.decode()))),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
