//! `/api/v1/custom-roles/{id}/permissions`: what a role allows, by type and version.

use concert_model::{Object, time};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::sort;
use crate::auth::is_operation;
use crate::kube::Body;
use crate::rest::body::Fields;
use crate::rest::call::{Call, answer, no_content};
use crate::rest::error::Error;
use crate::rest::records::{self, zulu};

const ALL: [&str; 4] = ["CREATE", "READ", "UPDATE", "DELETE"];
const TAKEN: &str = "Permission for this resource type/version already exists";
const MISSING: &str = "Permission not found";
/// Longest name of a type or version.
const NAME_MAX: usize = 255;

/// The permissions of a role as REST shows them.
pub(super) fn views(role: &Object) -> Vec<Value> {
    held(role).iter().map(|permission| view(role, permission)).collect()
}

fn view(role: &Object, permission: &Value) -> Value {
    let or_all = |value: &Value| value.as_str().unwrap_or("*").to_owned();
    let operations = permission["operations"].as_array().cloned().unwrap_or_default();
    json!({
        "id": permission["id"], "role_id": records::id(role),
        "resource_type_name": or_all(&permission["resourceType"]),
        "resource_type_version": or_all(&permission["resourceVersion"]), "operations": operations,
        "created_at": zulu(permission["createdAt"].as_str().and_then(time::parse)),
    })
}

fn held(role: &Object) -> Vec<Value> {
    role.spec()["permissions"].as_array().cloned().unwrap_or_default()
}

/// The permissions of a request that makes a role.
pub(super) fn read_all(fields: &mut Fields<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for (index, item) in fields.list("permissions").unwrap_or_default().iter().enumerate() {
        let place = fields.place("permissions").into_iter().chain([json!(index)]).collect();
        if let Some(mut inner) = fields.inside(place, item) {
            all.push(read(&mut inner));
            fields.absorb(inner);
        }
    }
    all
}

/// One, as it is kept.
fn read(fields: &mut Fields<'_>) -> Value {
    let mut permission = json!({"resourceType": "*", "resourceVersion": "*"});
    for (name, field) in
        [("resource_type_name", "resourceType"), ("resource_type_version", "resourceVersion")]
    {
        if fields.value(name).is_some() {
            permission[field] = json!(fields.bounded_text(name, 1, NAME_MAX));
        }
    }
    permission["operations"] = operations(fields).map_or(json!(ALL), |operations| json!(operations));
    permission
}

/// The operations, each once, in the order everybody writes them.
fn operations(fields: &mut Fields<'_>) -> Option<Vec<&'static str>> {
    let names = fields.texts("operations")?;
    for name in names.iter().filter(|name| !is_operation(name)) {
        let rule = format!("unknown operation '{name}': it is CREATE, READ, UPDATE or DELETE");
        fields.refuse("operations", &rule);
    }
    Some(ALL.into_iter().filter(|name| names.contains(name)).collect())
}

/// No two are about the same.
pub(super) fn check_distinct(permissions: &Value) -> Result<(), Error> {
    let all = permissions.as_array().map_or(&[][..], Vec::as_slice);
    let is_twin = |(index, one): (usize, &Value)| all[..index].iter().any(|other| is_same(one, other));
    if all.iter().enumerate().any(is_twin) { Err(Error::conflict(TAKEN)) } else { Ok(()) }
}

fn is_same(one: &Value, other: &Value) -> bool {
    let or_all = |it: &Value, field: &str| it[field].as_str().unwrap_or("*").to_owned();
    ["resourceType", "resourceVersion"].iter().all(|field| or_all(one, field) == or_all(other, field))
}

/// `POST …/permissions`.
pub(super) async fn add(call: &Call<'_>, role_id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let role_id = call.id("role_id", role_id)?;
    sort().admin(call, "update").await?;
    let body = call.body()?;
    let mut fields = Fields::of_optional(&body)?;
    let permission = read(&mut fields);
    fields.check()?;
    let change = |role: &mut Object| {
        let mut all = held(role);
        if all.iter().any(|other| is_same(&permission, other)) {
            return Err(Error::conflict(TAKEN));
        }
        all.push(permission.clone());
        records::set(role, "permissions", Some(all.into()));
        Ok(())
    };
    let role = sort().change(call, role_id, change).await?;
    let added = held(&role).into_iter().find(|other| is_same(&permission, other)).unwrap_or_default();
    Ok(answer(StatusCode::CREATED, &view(&role, &added)))
}

/// `PUT …/permissions/{id}`.
pub(super) async fn change(call: &Call<'_>, role_id: &str, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let (role_id, id) = (call.id("role_id", role_id)?, call.id("perm_id", id)?);
    sort().admin(call, "update").await?;
    let body = call.body()?;
    let mut fields = Fields::of_optional(&body)?;
    let operations = operations(&mut fields);
    fields.check()?;
    let change = |role: &mut Object| {
        let mut all = held(role);
        let one = all.iter_mut().find(|it| it["id"] == id).ok_or_else(|| Error::not_found(MISSING))?;
        if let Some(operations) = &operations {
            one["operations"] = json!(operations);
        }
        records::set(role, "permissions", Some(all.into()));
        Ok(())
    };
    let role = sort().change(call, role_id, change).await?;
    let changed = held(&role).into_iter().find(|it| it["id"] == id).unwrap_or_default();
    Ok(answer(StatusCode::OK, &view(&role, &changed)))
}

/// `DELETE …/permissions/{id}`.
pub(super) async fn remove(call: &Call<'_>, role_id: &str, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let (role_id, id) = (call.id("role_id", role_id)?, call.id("perm_id", id)?);
    sort().admin(call, "update").await?;
    let change = |role: &mut Object| {
        let all = held(role);
        let left: Vec<Value> = all.iter().filter(|it| it["id"] != id).cloned().collect();
        if left.len() == all.len() {
            return Err(Error::not_found(MISSING));
        }
        records::set(role, "permissions", Some(left.into()));
        Ok(())
    };
    sort().change(call, role_id, change).await?;
    Ok(no_content())
}
