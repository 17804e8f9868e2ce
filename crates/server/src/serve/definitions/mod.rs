//! The kinds of ours that are definitions.
//!
//! Every start brings them to what this program knows, but never back: while versions follow each other
//! replica by replica, a start of the older one leaves alone what the newer one has brought. For that each
//! of them says which edition it is of.

use concert_model::Object;
use concert_model::inventory::{GROUP, names};
use concert_store::{By, Error as StoreError, Local, Part, Store as _};
use tracing::warn;

use super::error::Error;
use super::inventory;
use super::only::Only;
use crate::managed;

#[cfg(test)]
mod tests;

/// What starts and stops everything calls itself in the history of objects.
pub(super) const ACTOR: &str = "concert";
/// Of which edition the definitions below are. Raised with every change to one of them.
const EDITION: u64 = 1;
/// Where a definition says it; those from before there were any have none.
const ANNOTATION: &str = "concert.dev/definitions";
/// How often one is looked at again that others write at the same time: as many starts are not so likely.
const TRIES_MAX: usize = 10;

/// The kind of providers that are declared as objects.
const PROVIDERS: &str = include_str!("../../../../../deploy/crds/providers.yaml");
/// The kind that says which kinds play together for a claim.
const CLAIMS: &str = include_str!("../../../../../deploy/crds/claims.yaml");
/// The kinds behind the REST door that are not resources.
const NO8S: &str = include_str!("../../../../../deploy/crds/no8s.yaml");
/// The kinds of the inventory and of the mothership.
const FLEET: &str = include_str!("../../../../../deploy/crds/inventory.yaml");

/// Serves those of them that are needed here.
pub(super) async fn define(store: &Local, only: Only) -> Result<(), Error> {
    let malformed = |what| managed::config::Error::Malformed { origin: "definitions".into(), what };
    let by = By { manager: ACTOR.into(), ..By::actor(ACTOR) }.because("start");
    let mut newer = 0_usize;
    for manifest in [PROVIDERS, CLAIMS, NO8S, FLEET] {
        for value in managed::config::documents(manifest).map_err(malformed)? {
            let object = Object::from_value(value).map_err(Error::store)?;
            let is_needed = match object.spec()["group"].as_str() {
                Some(GROUP) => only.has_inventory(),
                Some(names::MOTHERSHIP) => only.has_workers(),
                _ => true,
            };
            if is_needed && !bring(store, object, &by).await.map_err(Error::store)? {
                newer += 1;
            }
        }
    }
    if newer > 0 {
        warn!(newer, "definitions of a newer version are left as they are");
    }
    if only.has_inventory() {
        inventory::prepare(store, &by).await?;
    }
    Ok(())
}

/// Makes a definition what it is here. False if what is there is of a later edition.
async fn bring(store: &Local, mut object: Object, by: &By) -> Result<bool, StoreError> {
    object.set_annotation(ANNOTATION, &EDITION.to_string());
    let key = object.key().map_err(|error| StoreError::invalid(object.name().to_owned(), error))?;
    for _ in 0..TRIES_MAX {
        let mut wanted = object.clone();
        match store.get(&key).await {
            Ok(there) if edition(&there.decode()) > EDITION => return Ok(false),
            // Only over what was looked at: a later edition may come at this very moment.
            Ok(there) => wanted.set_metadata("resourceVersion", there.resource_version().to_string().into()),
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        match store.apply(wanted, Part::Main, true, by).await {
            Ok(_) => return Ok(true),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(StoreError::Conflict { key })
}

/// Of which edition a definition says that it is.
fn edition(object: &Object) -> u64 {
    object.annotation(ANNOTATION).and_then(|it| it.parse().ok()).unwrap_or_default()
}
