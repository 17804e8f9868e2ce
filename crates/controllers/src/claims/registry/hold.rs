//! Definitions stay until nothing is bound by them: claims that are held need their controllers to go.

use concert_engine::Wait;
use concert_model::condition::{Condition, Status};
use concert_model::{Encoded, Object};
use concert_store::{By, Error, PageRequest, Query, Store};

use super::super::bind::decide::concern;
use super::super::definition::served::Served;
use super::super::vocabulary::{DEFINITION_FINALIZER, FINALIZER, condition, definition as reason};

/// How a definition stands that is to be deleted.
pub enum Held {
    /// Claims are still bound by it: one to wait for, and what to say of them.
    Bound(Wait, Box<Condition>),
    /// Nothing holds it any more.
    Gone,
}

/// Holds a definition that lives, before anything is bound by it.
///
/// # Errors
/// As the store's.
pub async fn hold(store: &dyn Store, object: &mut Object, by: &By) -> Result<(), Error> {
    if !object.finalizers().iter().any(|it| it == DEFINITION_FINALIZER) {
        object.add_finalizer(DEFINITION_FINALIZER);
        *object = store.update(object.clone(), by).await?.decode();
    }
    Ok(())
}

/// Lets a definition go that is to be deleted, if nothing is bound by what it serves.
///
/// # Assumptions
/// Nobody takes on a claim for it any more: what is not bound now never will be.
///
/// # Errors
/// As the store's.
pub async fn let_go(
    store: &dyn Store,
    object: &mut Object,
    serves: &[Served],
    by: &By,
) -> Result<Held, Error> {
    if !object.finalizers().iter().any(|it| it == DEFINITION_FINALIZER) {
        return Ok(Held::Gone);
    }
    let mut bound = Vec::new();
    for served in serves {
        bound.extend(bound_by(store, served).await?);
    }
    if let Some(first) = bound.first() {
        return Ok(Held::Bound(Wait::change_of(first), Box::new(waiting(bound.len(), first))));
    }
    object.remove_finalizer(DEFINITION_FINALIZER);
    match store.update(object.clone(), by).await {
        Ok(_) | Err(Error::NotFound { .. }) => Ok(Held::Gone),
        Err(error) => Err(error),
    }
}

/// The claims that wait for the controller of an implementation to let them go.
///
/// # Errors
/// As the store's.
pub async fn bound_by(store: &dyn Store, served: &Served) -> Result<Vec<Encoded>, Error> {
    let claims = Query::all(served.claim.group_kind.clone());
    let page = match store.list(&claims, &PageRequest::whole()).await {
        Ok(page) => page,
        Err(Error::UnknownKind { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let is_bound = |it: &Encoded| {
        let claim = it.decode();
        claim.finalizers().iter().any(|it| it == FINALIZER)
            && concern(&claim, &served.implementation).is_some()
    };
    Ok(page.items.into_iter().filter(is_bound).collect())
}

fn waiting(claims: usize, first: &Encoded) -> Condition {
    let (noun, verb) = if claims == 1 { ("claim", "is") } else { ("claims", "are") };
    let message = format!(
        "{claims} {noun} {verb} bound by it, {} for one: it goes when they are deleted, and serves them until then",
        first.key()
    );
    Condition::new(condition::READY, Status::False, reason::DELETING, message)
}
