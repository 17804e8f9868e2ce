//! What a new store starts with: roles, bindings, and one token to get in with.

use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::{By, Chance, Clock, Error, Local, Store};
use futures_util::future::try_join_all;
use serde_json::Value;

use super::defaults::{self, AUTOUPDATE};
use super::index::GROUP;
use super::token::{Issued, TokenError, issue_for_user};
use super::user::MASTERS;

/// Who the first token is for.
const ADMIN: &str = "admin";
/// The role whose presence shows that a store is not new. Made last.
const LAST_ROLE: &str = "cluster-admin";
/// Tries against others who write the same object.
const TRIES_MAX: usize = 5;

/// What [`bootstrap`] did.
#[derive(Debug)]
pub struct Bootstrap {
    /// Only for a store that is new: to be shown once, since only its hash is kept. It never expires and
    /// may do everything.
    pub first_token: Option<Issued>,
}

/// Makes what is missing of the roles and bindings that every store has, and for a new store the first
/// token. What people added to the roles stays; roles that say `autoupdate: "false"` are left alone.
/// May be run at every start, and again after one that was cut off.
///
/// # Errors
/// Those of the store.
pub async fn bootstrap(store: &Local, clock: &dyn Clock, chance: &Chance) -> Result<Bootstrap, TokenError> {
    // Before the marker: cut off in between, the next start makes another token, and nobody is locked out.
    let first_token = first_token(store, clock, chance).await?;
    ensure_roles(store).await?;
    Ok(Bootstrap { first_token })
}

/// The first token of a store that is new; none for others. It is new until [`ensure_roles`] is done: whoever
/// keeps the token does so before, since the next start makes no other.
///
/// # Errors
/// Those of the store.
pub async fn first_token(
    store: &Local,
    clock: &dyn Clock,
    chance: &Chance,
) -> Result<Option<Issued>, TokenError> {
    let marker = ObjectKey::cluster(GroupKind::new(GROUP, "ClusterRole"), LAST_ROLE);
    match store.get(&marker).await {
        Ok(_) => Ok(None),
        Err(Error::NotFound { .. }) => {
            issue_for_administrator(store, clock, chance, &bootstrapping()).await.map(Some)
        }
        Err(error) => Err(TokenError::Store(error)),
    }
}

/// Makes what is missing of the roles and bindings: a store where nobody is asked who they are needs no more.
///
/// # Errors
/// Those of the store.
pub async fn ensure_roles(store: &Local) -> Result<(), TokenError> {
    let by = bootstrapping();
    let mut roles = defaults::cluster_roles();
    let last = roles.pop().into_iter().collect();
    // Those of a list side by side, so that they share the wait for the disk; the marker after all others.
    ensure_all(store, defaults::cluster_role_bindings(), "subjects", &by).await?;
    ensure_all(store, roles, "rules", &by).await?;
    ensure_all(store, last, "rules", &by).await
}

fn bootstrapping() -> By {
    By::actor("concert").because("bootstrap")
}

/// A token that never expires and may do everything.
///
/// # Errors
/// Those of the store.
pub async fn issue_for_administrator(
    store: &Local,
    clock: &dyn Clock,
    chance: &Chance,
    by: &By,
) -> Result<Issued, TokenError> {
    issue_for_user(store, clock, chance, ADMIN, &[MASTERS], None, by).await
}

async fn ensure_all(store: &Local, all: Vec<Value>, list: &str, by: &By) -> Result<(), TokenError> {
    let all = all.into_iter().map(|wanted| ensure(store, wanted, list, by));
    try_join_all(all).await.map(drop).map_err(TokenError::Store)
}

/// Makes `wanted`, or adds to what is there the entries of its `list` that are missing.
async fn ensure(store: &Local, wanted: Value, list: &str, by: &By) -> Result<(), Error> {
    let wanted = Object::from_value(wanted).map_err(|e| Error::invalid("bootstrap", e))?;
    let key = wanted.key().map_err(|e| Error::invalid("bootstrap", e))?;
    for _ in 0..TRIES_MAX {
        let result = match store.get(&key).await {
            Err(Error::NotFound { .. }) => store.create(wanted.clone(), by).await,
            Err(error) => return Err(error),
            Ok(stored) => match completed(stored.decode(), &wanted, list) {
                None => return Ok(()),
                Some(object) => store.update(object, by).await,
            },
        };
        match result {
            Err(Error::AlreadyExists { .. } | Error::Conflict { .. } | Error::NotFound { .. }) => {}
            other => return other.map(drop),
        }
    }
    Err(Error::Conflict { key })
}

/// `stored` with the missing entries; none if nothing is missing or it is not ours to touch.
fn completed(mut stored: Object, wanted: &Object, list: &str) -> Option<Object> {
    let held = stored.get(list).as_array().cloned().unwrap_or_default();
    let entries = wanted.get(list).as_array().into_iter().flatten();
    let missing: Vec<Value> = entries.filter(|entry| !held.contains(entry)).cloned().collect();
    let is_bound_elsewhere = stored.get("roleRef") != wanted.get("roleRef");
    if missing.is_empty() || is_bound_elsewhere || stored.annotation(AUTOUPDATE) == Some("false") {
        return None;
    }
    stored.set(list, held.into_iter().chain(missing).collect());
    Some(stored)
}
