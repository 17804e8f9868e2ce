//! `POST /auth/login`: a password for a token.

use std::time::Duration;

use concert_model::{Object, ObjectKey, name, time};
use concert_store::{By, Error as StoreError, Local, Store};
use http::{Response, StatusCode};
use serde_json::json;

use super::Inner;
use crate::auth::{Attempt, Busy, Claims, Keys, Person, person_kind};
use crate::kube::Body;
use crate::rest::body::Fields;
use crate::rest::call::{Call, answer};
use crate::rest::error::Error;

pub(super) const WRONG: &str = "Invalid credentials";

pub(super) async fn login(accounts: &Inner, call: &Call<'_>) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let body = call.body()?;
    let mut fields = Fields::of(&body)?;
    let (username, password) = (fields.required_text("username"), fields.required_text("password"));
    fields.check()?;
    let Some(keys) = &accounts.keys else { return Err(Error::unavailable("Auth not configured")) };
    let object = find(&accounts.store, username).await?;
    let person = object.as_ref().map(Person::read).filter(|it| it.is_active && it.id.is_some());
    let hash = person.as_ref().and_then(|it| it.password_hash.clone());
    let is_right = try_password(accounts, call, username, password, hash).await?;
    let (Some(object), Some(person), true) = (object, person, is_right) else {
        return Err(Error::unauthorized(WRONG));
    };
    let token = keys.mint(claims(keys, &person), call.clock().now());
    note(&accounts.store, object, call).await;
    let said = json!({"access_token": token, "token_type": "bearer", "username": person.name,
        "is_admin": person.is_admin});
    Ok(answer(StatusCode::OK, &said))
}

/// Whether a password is the one of `hash`; a wrong one costs a try.
pub(super) async fn try_password(
    accounts: &Inner,
    call: &Call<'_>,
    username: &str,
    password: &str,
    hash: Option<String>,
) -> Result<bool, Error> {
    let address = call.peer().map(|peer| peer.address.ip());
    let attempt = Attempt { username, address, at: accounts.clock.elapsed() };
    accounts.throttle.take(&attempt).map_err(|wait| too_many("Too many login attempts", wait))?;
    match accounts.passwords.is_right(password.to_owned(), hash).await {
        Ok(true) => {
            accounts.throttle.succeed(&attempt);
            Ok(true)
        }
        Ok(false) => Ok(false),
        Err(Busy) => {
            accounts.throttle.cancel(&attempt);
            Err(busy())
        }
    }
}

pub(super) fn busy() -> Error {
    too_many("Too many passwords are being checked", Duration::from_secs(1))
}

fn too_many(detail: &str, wait: Duration) -> Error {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let error = Error::new(StatusCode::TOO_MANY_REQUESTS, detail);
    Error { retry_after: Some(Duration::from_secs(seconds.max(1))), ..error }
}

/// The user of this name. What can be no name is not looked for.
pub(in crate::rest) async fn find(store: &Local, username: &str) -> Result<Option<Object>, Error> {
    if name::check_subdomain(username).is_err() {
        return Ok(None);
    }
    match store.get(&ObjectKey::cluster(person_kind(), username)).await {
        Ok(object) => Ok(Some(object.decode())),
        Err(StoreError::NotFound { .. } | StoreError::UnknownKind { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn claims(keys: &Keys, person: &Person) -> Claims {
    Claims {
        sub: person.id.unwrap_or_default().to_string(),
        username: person.name.clone(),
        is_admin: person.is_admin,
        source: person.source.clone(),
        custom_role_id: person.custom_role_id,
        iat: 0,
        exp: 0,
        pwd: person.password_hash.as_ref().map(|hash| keys.fingerprint(hash)).unwrap_or_default(),
    }
}

/// Writes down when somebody logged in. If that fails they are in all the same.
async fn note(store: &Local, mut object: Object, call: &Call<'_>) {
    object.set("status", json!({"lastLoginAt": time::micros(call.clock().now())}));
    let by = By::actor(object.name()).because("login");
    match store.update_status(object, &by).await {
        // Whoever wrote meanwhile may have written the same.
        Ok(_) | Err(StoreError::Conflict { .. }) => {}
        Err(error) => tracing::warn!(%error, "the time of a login cannot be written down"),
    }
}
