//! Removes Secrets that no section points at.
//!
//! A crash between the steps of a write leaves one. Whoever writes removes it within moments, so only those
//! that have been there for a while are looked at.

use std::time::Duration;

use concert_model::LabelSelector;
use concert_model::inventory::{Section, names};
use concert_model::time::SignedDuration;
use concert_store::{By, Clock, Error, Local, PageRequest, Query, Store};

use super::door::find;
use super::write::only;

/// How long a Secret may be one that is about to be pointed at.
const GRACE: Duration = Duration::from_secs(10 * 60);
/// Secrets looked at together.
const PAGE: usize = 500;

/// Removes what no section points at any more; says how many.
///
/// # Errors
/// Those of the store.
pub async fn sweep(store: &Local, clock: &dyn Clock, by: &By) -> Result<usize, Error> {
    let grace = SignedDuration::try_from(GRACE).unwrap_or(SignedDuration::MAX);
    let Ok(before) = clock.now().checked_sub(grace) else { return Ok(0) };
    let ours = LabelSelector::parse(names::SECTION).unwrap_or_default();
    let query = Query::all(names::secret_kind()).in_namespace(names::NAMESPACE).with_labels(ours);
    let (mut page, mut removed) = (PageRequest { limit: Some(PAGE), token: None }, 0);
    loop {
        let listed = store.list(&query, &page).await?;
        for secret in &listed.items {
            let object = secret.decode();
            if object.created_at().is_none_or(|at| at > before) || is_wanted(store, &object).await? {
                continue;
            }
            match store.delete(secret.key(), &only(secret.resource_version()), by).await {
                Ok(_) => removed += 1,
                Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        match listed.next {
            Some(token) => page.token = Some(token),
            None => return Ok(removed),
        }
    }
}

async fn is_wanted(store: &Local, secret: &concert_model::Object) -> Result<bool, Error> {
    let labels = secret.labels();
    let label = |name: &str| labels.get(name).map(String::as_str).unwrap_or_default();
    let key = names::section_key(label(names::ENTRY), label(names::SECTION));
    let section = find(store, &key).await?.map(|it| it.decode());
    Ok(section.is_some_and(|it| Section(&it).secret_name() == Some(secret.name())))
}
