//! Whether anybody can still get in who may do everything.

use concert_store::{Clock, Error, Local, PageRequest, Query, Store};

use super::person::{Person, person_kind};
use super::token::{Held, token_kind};

/// Whether somebody else than the user `without` may do everything: an active administrator with a
/// password, or whoever holds a token that says so.
///
/// # Errors
/// Those of the store.
pub async fn has_other_way_in(store: &Local, clock: &dyn Clock, without: &str) -> Result<bool, Error> {
    let people = match store.list(&Query::all(person_kind()), &PageRequest::whole()).await {
        Err(Error::UnknownKind { .. }) => Vec::new(),
        listed => listed?.items,
    };
    let people: Vec<Person> = people.iter().map(|encoded| Person::read(&encoded.decode())).collect();
    let is_left =
        |it: &&Person| it.name != without && it.is_admin && it.is_active && it.password_hash.is_some();
    if people.iter().any(|it| is_left(&it)) {
        return Ok(true);
    }
    let is_out = |name: &str| name == without || people.iter().any(|it| it.name == name && !it.is_active);
    let tokens = store.list(&Query::all(token_kind()), &PageRequest::whole()).await?;
    Ok(tokens.items.iter().any(|encoded| {
        let held = Held::read(&encoded.decode()).filter(|it| !it.is_expired(clock.now()));
        held.and_then(|held| held.user()).is_some_and(|user| user.is_master() && !is_out(&user.name))
    }))
}
