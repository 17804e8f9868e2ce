//! `/api/v1/users`: who logs in.

mod change;

use concert_model::{Object, name, time};
use concert_store::Error as StoreError;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::auth::{Inner, password};
use super::body::Fields;
use super::call::{Call, answer};
use super::error::Error;
use super::records::{self, Sort, times, zulu};
use super::{auth, roles};
use crate::auth::{Person, person_kind};
use crate::kube::Body;
use crate::write::{Operation, Refused};

/// The counter of users.
pub(super) const COUNTER: &str = "users";
const SOURCES: [&str; 2] = ["manual", "ldap"];
const STATUSES: [&str; 2] = ["active", "suspended"];
/// Longest texts: what mail servers take, and a line.
const EMAIL_MAX: usize = 320;
const DISPLAY_NAME_MAX: usize = 255;
const NAME_RULE: &str = "username must consist of lowercase alphanumeric characters or '-', must start and end \
                         with an alphanumeric character";

pub(super) fn sort() -> Sort {
    Sort { kind: person_kind(), plural: "users", missing: "User not found" }
}

pub(super) async fn route(accounts: &Inner, call: &Call<'_>) -> Result<Response<Body>, Error> {
    match (call.method().as_str(), call.path) {
        ("POST", ["users"]) => create(accounts, call).await,
        ("GET", ["users"]) => list(call).await,
        ("POST", ["users", "ldap-sync"]) => synchronise(call).await,
        ("GET", ["users", id]) => get(call, id).await,
        ("PUT", ["users", id]) => change::update(accounts, call, id).await,
        ("DELETE", ["users", id]) => change::suspend(accounts, call, id).await,
        _ => Err(Error::unknown_path()),
    }
}

/// Whether somebody may be called this.
pub(super) fn check_username(username: &str) -> Result<(), &'static str> {
    name::check_label(username).map_err(|_| NAME_RULE)
}

/// A user as REST shows it.
fn view(object: &Object) -> Value {
    let (spec, person) = (object.spec(), Person::read(object));
    let text = |value: &Value| value.as_str().map_or(Value::Null, Value::from);
    let status = if person.is_active { "active" } else { "suspended" };
    let (created, updated) = times(object);
    let login = object.status()["lastLoginAt"].as_str().and_then(time::parse);
    json!({
        "id": records::id(object), "username": person.name, "email": text(&spec["email"]),
        "display_name": text(&spec["displayName"]), "source": person.source, "is_admin": person.is_admin,
        "status": status, "custom_role_id": person.custom_role_id, "created_at": zulu(created),
        "updated_at": zulu(updated), "last_login_at": zulu(login), "last_synced_at": null,
    })
}

fn shown(code: StatusCode, object: &Object) -> Response<Body> {
    records::shown(code, object, &view(object))
}

/// `GET /auth/me`.
pub(super) async fn me(call: &Call<'_>) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let object = auth::find(call.store(), &call.user.name).await?;
    let object = object.ok_or_else(|| Error::not_found(sort().missing))?;
    Ok(shown(StatusCode::OK, &object))
}

async fn create(accounts: &Inner, call: &Call<'_>) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    sort().admin(call, "create").await?;
    let body = call.body()?;
    let mut fields = Fields::of(&body)?;
    let username = fields.required_text("username");
    if !fields.is_noted("username")
        && let Err(rule) = check_username(username)
    {
        fields.refuse("username", rule);
    }
    let password = password::new_password(&mut fields);
    let mut spec = json!({"source": "manual", "status": "active"});
    spec["isAdmin"] = json!(fields.flag("is_admin").unwrap_or(false));
    for (field, value) in texts(&mut fields) {
        spec[field] = json!(value);
    }
    if let Some(role) = role(call, &mut fields).await? {
        spec["customRoleId"] = json!(role);
    }
    fields.check()?;
    let taken = || Error::conflict(format!("User '{username}' already exists"));
    if auth::find(call.store(), username).await?.is_some() {
        return Err(taken());
    }
    spec["passwordHash"] = json!(password::hash(accounts, password).await?);
    match call.try_write(Operation::Create(sort().object(username, spec))).await {
        Err(Refused::Store(StoreError::AlreadyExists { .. })) => Err(taken()),
        written => Ok(shown(StatusCode::CREATED, &written?.into_object().decode())),
    }
}

/// What is plain text about somebody, by the name of its field in the spec.
fn texts<'a>(fields: &mut Fields<'a>) -> Vec<(&'static str, &'a str)> {
    let mut texts = Vec::new();
    let known = [("email", "email", EMAIL_MAX), ("display_name", "displayName", DISPLAY_NAME_MAX)];
    for (name, field, max) in known {
        if fields.value(name).is_some() {
            texts.push((field, fields.bounded_text(name, 0, max)));
        }
    }
    texts
}

/// The role that is meant; one that is not there is noted.
async fn role(call: &Call<'_>, fields: &mut Fields<'_>) -> Result<Option<u64>, Error> {
    let Some(id) = fields.integer("custom_role_id") else { return Ok(None) };
    let id = u64::try_from(id).unwrap_or(0);
    match roles::sort().find(call, id).await {
        Ok(_) => Ok(Some(id)),
        Err(error) if error.code == StatusCode::NOT_FOUND => {
            fields.refuse("custom_role_id", "there is no role with this id");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

async fn list(call: &Call<'_>) -> Result<Response<Body>, Error> {
    let mut query = call.query(&["source", "is_admin", "status", "limit", "offset"]);
    let source = query.choice("source", &SOURCES);
    let is_admin = query.flag("is_admin");
    let status = query.choice("status", &STATUSES);
    let (limit, offset) = (query.limit(100), query.offset());
    query.check()?;
    sort().admin(call, "list").await?;
    let all = sort().all(call.store()).await?;
    let views = all.iter().map(view).filter(|view| {
        source.is_none_or(|source| view["source"] == source)
            && status.is_none_or(|status| view["status"] == status)
            && is_admin.is_none_or(|is_admin| view["is_admin"] == is_admin)
    });
    Ok(answer(StatusCode::OK, &views.skip(offset).take(limit).collect()))
}

async fn get(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    sort().admin(call, "get").await?;
    let object = sort().find(call, call.id("user_id", id)?).await?;
    Ok(shown(StatusCode::OK, &object))
}

async fn synchronise(call: &Call<'_>) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    sort().admin(call, "create").await?;
    Err(Error { retry_after: None, ..Error::unavailable("LDAP is not configured") })
}
