//! Changing and suspending users.

use concert_model::Object;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::{STATUSES, role, shown, sort, texts};
use crate::auth::{Person, has_other_way_in};
use crate::kube::Body;
use crate::rest::auth::{Inner, LAST_ADMIN};
use crate::rest::body::Fields;
use crate::rest::call::{Call, no_content};
use crate::rest::error::Error;
use crate::rest::records;

/// `PUT /users/{id}`. What is absent or null stays, save the role: null takes it away.
pub(super) async fn update(accounts: &Inner, call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("user_id", id)?;
    sort().admin(call, "update").await?;
    let body = call.body()?;
    let mut fields = Fields::of_optional(&body)?;
    let mut changes: Vec<(&str, Option<Value>)> = Vec::new();
    changes.extend(texts(&mut fields).into_iter().map(|(field, text)| (field, Some(json!(text)))));
    changes.extend(fields.flag("is_admin").map(|is_admin| ("isAdmin", Some(json!(is_admin)))));
    changes.extend(fields.choice("status", &STATUSES).map(|status| ("status", Some(json!(status)))));
    match role(call, &mut fields).await? {
        Some(role) => changes.push(("customRoleId", Some(json!(role)))),
        None if fields.has("custom_role_id") => changes.push(("customRoleId", None)),
        None => {}
    }
    fields.check()?;
    let changed = change(accounts, call, id, &changes).await?;
    Ok(shown(StatusCode::OK, &changed))
}

/// `DELETE /users/{id}`: they are out, and what they did stays theirs.
pub(super) async fn suspend(accounts: &Inner, call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("user_id", id)?;
    sort().admin(call, "delete").await?;
    change(accounts, call, id, &[("status", Some(json!("suspended")))]).await?;
    Ok(no_content())
}

async fn change(
    accounts: &Inner,
    call: &Call<'_>,
    id: u64,
    changes: &[(&str, Option<Value>)],
) -> Result<Object, Error> {
    // Two administrators who suspend each other at the same time must not both succeed.
    let _turn = accounts.turn.lock().await;
    let change = |object: &mut Object| {
        for (field, value) in changes {
            records::set(object, field, value.clone());
        }
        Ok(())
    };
    let before = sort().find(call, id).await?;
    let mut after = before.clone();
    change(&mut after)?;
    if is_admin(&before) && !is_admin(&after) && !accounts.gate.is_open() {
        let is_left = has_other_way_in(&accounts.store, &*accounts.clock, before.name()).await?;
        if !is_left {
            return Err(Error::conflict(LAST_ADMIN));
        }
    }
    sort().change(call, id, change).await
}

fn is_admin(object: &Object) -> bool {
    let person = Person::read(object);
    person.is_admin && person.is_active
}
