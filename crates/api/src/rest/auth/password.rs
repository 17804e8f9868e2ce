//! Changing passwords: one's own with the old one, anybody's as an administrator.
//!
//! A new password ends all tokens that were got with the old one.

use concert_model::Object;
use concert_store::{By, Error as StoreError, Store};
use http::Response;
use serde_json::json;

use super::Inner;
use super::login::{busy, find, try_password};
use crate::auth::{PASSWORD_BYTES_MAX, PASSWORD_CHARACTERS_MIN, Person};
use crate::kube::Body;
use crate::rest::body::Fields;
use crate::rest::call::{Call, no_content};
use crate::rest::error::Error;
use crate::rest::records;
use crate::rest::users;

const NOT_CURRENT: &str = "Current password is incorrect";

/// What a request says.
struct Wanted {
    password: String,
    current: Option<String>,
}

impl Wanted {
    fn read(call: &Call<'_>) -> Result<Self, Error> {
        call.query(&[]).check()?;
        let body = call.body()?;
        let mut fields = Fields::of(&body)?;
        let password = new_password(&mut fields).to_owned();
        let current = fields.text("current_password").map(str::to_owned);
        fields.check()?;
        Ok(Self { password, current })
    }
}

/// The field `password` of a request that sets one.
pub(in crate::rest) fn new_password<'a>(fields: &mut Fields<'a>) -> &'a str {
    let password = fields.bounded_text("password", PASSWORD_CHARACTERS_MIN, PASSWORD_BYTES_MAX);
    if password.len() > PASSWORD_BYTES_MAX && !fields.is_noted("password") {
        fields.refuse("password", &format!("password must not exceed {PASSWORD_BYTES_MAX} bytes"));
    }
    password
}

/// The hash of a new password.
pub(in crate::rest) async fn hash(accounts: &Inner, password: &str) -> Result<String, Error> {
    accounts.passwords.hash(password.to_owned()).await.map_err(|_| busy())
}

/// `PUT /auth/password`.
pub(super) async fn change_own(accounts: &Inner, call: &Call<'_>) -> Result<Response<Body>, Error> {
    let wanted = Wanted::read(call)?;
    let object = find(&accounts.store, &call.user.name).await?;
    let object = object.filter(|object| is_self(call, object));
    let object = object.ok_or_else(|| Error::not_found("User not found"))?;
    replace_own(accounts, call, object, wanted).await
}

/// `PUT /users/{id}/password`.
pub(super) async fn change(accounts: &Inner, call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    let id = call.id("user_id", id)?;
    let may = users::sort().admin(call, "update").await;
    if let Err(refused) = may {
        // Who may not change users may still change themselves; nobody else is told who there is.
        let own = users::sort().find(call, id).await.ok().filter(|object| is_self(call, object));
        return match own {
            Some(object) => replace_own(accounts, call, object, Wanted::read(call)?).await,
            None => Err(refused),
        };
    }
    let wanted = Wanted::read(call)?;
    let object = users::sort().find(call, id).await?;
    if let Some(current) = &wanted.current {
        check_current(accounts, call, &object, current).await?;
    }
    let hash = hash(accounts, &wanted.password).await?;
    let set = |object: &mut Object| {
        records::set(object, "passwordHash", Some(json!(hash)));
        Ok(())
    };
    users::sort().change(call, id, set).await?;
    Ok(no_content())
}

/// By the person themselves, who need not have any right to write users.
async fn replace_own(
    accounts: &Inner,
    call: &Call<'_>,
    mut object: Object,
    wanted: Wanted,
) -> Result<Response<Body>, Error> {
    let Some(current) = &wanted.current else {
        return Err(Error::bad_request("current_password is required"));
    };
    check_current(accounts, call, &object, current).await?;
    let hash = hash(accounts, &wanted.password).await?;
    records::set(&mut object, "passwordHash", Some(json!(hash)));
    let by = By::actor(&*call.user.name).because("password");
    match accounts.store.update(object, &by).await {
        // Only what was judged is written: somebody may just have been suspended.
        Err(StoreError::Conflict { .. }) => {
            Err(Error::conflict("the user was changed by somebody else meanwhile"))
        }
        written => {
            written?;
            Ok(no_content())
        }
    }
}

async fn check_current(
    accounts: &Inner,
    call: &Call<'_>,
    object: &Object,
    current: &str,
) -> Result<(), Error> {
    let person = Person::read(object);
    let is_right = try_password(accounts, call, &person.name, current, person.password_hash).await?;
    if is_right { Ok(()) } else { Err(Error::forbidden(NOT_CURRENT)) }
}

/// Whether the caller logged in as this very user: a token made for a name is not enough.
fn is_self(call: &Call<'_>, object: &Object) -> bool {
    let person = Person::read(object);
    *call.user.name == *person.name && !person.uid.is_empty() && *call.user.uid == *person.uid
}
