//! `/api/v1/custom-roles`: who may do what to which types.
//!
//! A role and its permissions are one object, so they are written as one. `compile` makes of each what
//! the one authoriser reads.

mod compile;
mod permissions;

use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::{Delete, Part};
use http::{Response, StatusCode};
use serde_json::{Value, json};

pub(super) use compile::Roles;

use super::auth::Inner;
use super::body::Fields;
use super::call::{Call, answer, no_content};
use super::error::Error;
use super::records::{self, Sort, shown_name, times, zulu};
use super::users;
use crate::auth::{custom_role_kind, is_system_permission};
use crate::kube::Body;
use crate::write::Operation;

/// The counter of permissions.
pub(super) const PERMISSIONS: &str = "custom-role-permissions";
const NAME_MAX: usize = 255;
const DESCRIPTION_MAX: usize = 4096;

pub(super) fn sort() -> Sort {
    Sort { kind: custom_role_kind(), plural: "customroles", missing: "Role not found" }
}

/// Definitions of kinds: a role speaks of types.
pub(super) fn definition_kind() -> GroupKind {
    GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition")
}

pub(super) async fn route(accounts: &Inner, call: &Call<'_>) -> Result<Response<Body>, Error> {
    match (call.method().as_str(), call.path) {
        ("POST", ["custom-roles"]) => create(accounts, call).await,
        ("GET", ["custom-roles"]) => list(call).await,
        ("GET", ["custom-roles", id]) => get(call, id).await,
        ("PUT", ["custom-roles", id]) => update(accounts, call, id).await,
        ("DELETE", ["custom-roles", id]) => delete(call, id).await,
        ("POST", ["custom-roles", id, "permissions"]) => permissions::add(call, id).await,
        ("PUT", ["custom-roles", id, "permissions", one]) => permissions::change(call, id, one).await,
        ("DELETE", ["custom-roles", id, "permissions", one]) => permissions::remove(call, id, one).await,
        _ => Err(Error::unknown_path()),
    }
}

/// A role as REST shows it.
fn view(role: &Object) -> Value {
    let spec = role.spec();
    let (created, updated) = times(role);
    let system =
        if spec["systemPermissions"].is_array() { spec["systemPermissions"].clone() } else { json!([]) };
    json!({
        "id": records::id(role), "name": shown_name(role), "description": spec["description"],
        "system_permissions": system, "permissions": permissions::views(role),
        "created_at": zulu(created), "updated_at": zulu(updated),
    })
}

fn shown(code: StatusCode, role: &Object) -> Response<Body> {
    records::shown(code, role, &view(role))
}

async fn create(accounts: &Inner, call: &Call<'_>) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    sort().admin(call, "create").await?;
    let body = call.body()?;
    let mut fields = Fields::of(&body)?;
    let name = fields.bounded_text("name", 1, NAME_MAX);
    let mut spec = json!({"name": name});
    if let Some(description) = description(&mut fields) {
        spec["description"] = json!(description);
    }
    spec["systemPermissions"] = json!(system_permissions(&mut fields).unwrap_or_default());
    spec["permissions"] = permissions::read_all(&mut fields).into();
    fields.check()?;
    permissions::check_distinct(&spec["permissions"])?;
    let _turn = accounts.turn.lock().await;
    check_free(call, name, 0).await?;
    let object = sort().object(&sort().object_name(call.store(), name).await?, spec);
    let written = call.write(Operation::Create(object)).await?;
    Ok(shown(StatusCode::CREATED, &written.into_object().decode()))
}

fn description<'a>(fields: &mut Fields<'a>) -> Option<&'a str> {
    fields.value("description").is_some().then(|| fields.bounded_text("description", 0, DESCRIPTION_MAX))
}

fn system_permissions(fields: &mut Fields<'_>) -> Option<Vec<String>> {
    let names = fields.texts("system_permissions")?;
    let mut known: Vec<String> = Vec::new();
    for name in names {
        if !is_system_permission(name) {
            let rule = format!("unknown system permission '{name}': it is view_webhooks or view_plugins");
            fields.refuse("system_permissions", &rule);
        } else if !known.iter().any(|it| it == name) {
            known.push(name.to_owned());
        }
    }
    Some(known)
}

/// Nobody else is called this.
async fn check_free(call: &Call<'_>, name: &str, but: u64) -> Result<(), Error> {
    let all = sort().all(call.store()).await?;
    let is_taken = all.iter().any(|role| shown_name(role) == name && records::id(role) != but);
    if is_taken { Err(Error::conflict(format!("Role '{name}' already exists"))) } else { Ok(()) }
}

async fn list(call: &Call<'_>) -> Result<Response<Body>, Error> {
    let mut query = call.query(&["limit", "offset"]);
    let (limit, offset) = (query.limit(100), query.offset());
    query.check()?;
    sort().admin(call, "list").await?;
    let all = sort().all(call.store()).await?;
    Ok(answer(StatusCode::OK, &all.iter().map(view).skip(offset).take(limit).collect()))
}

async fn get(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("role_id", id)?;
    sort().admin(call, "get").await?;
    Ok(shown(StatusCode::OK, &sort().find(call, id).await?))
}

async fn update(accounts: &Inner, call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("role_id", id)?;
    sort().admin(call, "update").await?;
    let body = call.body()?;
    let mut fields = Fields::of_optional(&body)?;
    let name = fields.value("name").is_some().then(|| fields.bounded_text("name", 1, NAME_MAX));
    let description = description(&mut fields);
    let system = system_permissions(&mut fields);
    fields.check()?;
    let _turn = accounts.turn.lock().await;
    if let Some(name) = name {
        check_free(call, name, id).await?;
    }
    let change = |role: &mut Object| {
        if let Some(name) = name.filter(|name| *name != shown_name(role)) {
            records::set(role, "name", Some(json!(name)));
        }
        if let Some(description) = description {
            records::set(role, "description", Some(json!(description)));
        }
        if let Some(system) = &system {
            records::set(role, "systemPermissions", Some(json!(system)));
        }
        Ok(())
    };
    Ok(shown(StatusCode::OK, &sort().change(call, id, change).await?))
}

async fn delete(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("role_id", id)?;
    sort().admin(call, "delete").await?;
    let role = sort().find(call, id).await?;
    records::check_match(call, &role)?;
    let key = ObjectKey::cluster(custom_role_kind(), role.name());
    let only = Delete { resource_version: role.resource_version(), ..Delete::default() };
    call.write(Operation::Delete(key, only)).await?;
    // Its number is never given again, so whoever still names it has nothing by it.
    for user in users::sort().all(call.store()).await? {
        if user.spec()["customRoleId"] == id {
            let mut user = user;
            records::set(&mut user, "customRoleId", None);
            if let Err(error) = call.try_write(Operation::Update(user, Part::Main)).await {
                tracing::warn!(%error, "a user still names a role that is gone");
            }
        }
    }
    Ok(no_content())
}
