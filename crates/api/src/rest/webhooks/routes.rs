//! `/api/v1/admission-webhooks`: who is asked.

use concert_model::{Object, ObjectKey};
use concert_store::Delete;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::address::Address;
use super::declared::{OPERATIONS, POLICIES, TIMEOUT_MAX, TYPES, Webhook, webhook_kind};
use crate::kube::Body;
use crate::rest::auth::Inner;
use crate::rest::body::Fields;
use crate::rest::call::{Call, answer, no_content};
use crate::rest::error::Error;
use crate::rest::records::{self, Sort, shown_name, times};
use crate::rest::view::naive;
use crate::write::Operation;

const NAME_MAX: usize = 255;

fn sort() -> Sort {
    Sort { kind: webhook_kind(), plural: "admissionwebhooks", missing: "Admission webhook not found" }
}

pub(in crate::rest) async fn route(accounts: &Inner, call: &Call<'_>) -> Result<Response<Body>, Error> {
    match (call.method().as_str(), call.path) {
        ("POST", ["admission-webhooks"]) => create(accounts, call).await,
        ("GET", ["admission-webhooks"]) => list(call).await,
        ("GET", ["admission-webhooks", id]) => get(call, id).await,
        ("PUT", ["admission-webhooks", id]) => update(accounts, call, id).await,
        ("DELETE", ["admission-webhooks", id]) => delete(call, id).await,
        _ => Err(Error::unknown_path()),
    }
}

fn view(object: &Object) -> Value {
    let webhook = Webhook::read(object);
    let (created, updated) = times(object);
    json!({
        "id": webhook.id, "name": webhook.name, "resource_type_name": webhook.resource_type,
        "resource_type_version": webhook.version, "webhook_url": webhook.url,
        "webhook_type": if webhook.is_mutating { "mutating" } else { "validating" },
        "operations": webhook.operations, "timeout_seconds": webhook.timeout.as_secs(),
        "failure_policy": if webhook.is_optional { "Ignore" } else { "Fail" }, "ordering": webhook.ordering,
        "created_at": created.map(naive), "updated_at": updated.map(naive),
    })
}

fn shown(code: StatusCode, object: &Object) -> Response<Body> {
    records::shown(code, object, &view(object))
}

/// What a request says, by the names of the fields in the spec. What is absent or null is left out.
fn read(fields: &mut Fields<'_>, is_new: bool) -> Vec<(&'static str, Value)> {
    let mut said = Vec::new();
    for (name, field) in [
        ("name", "name"),
        ("resource_type_name", "resourceType"),
        ("resource_type_version", "resourceVersion"),
    ] {
        if fields.value(name).is_some() || is_new && name == "name" {
            said.push((field, json!(fields.bounded_text(name, 1, NAME_MAX))));
        }
    }
    let needed = |fields: &mut Fields<'_>, name: &str| {
        if is_new && fields.value(name).is_none() {
            fields.required_text(name);
        }
    };
    needed(fields, "webhook_url");
    if let Some(url) = fields.text("webhook_url") {
        if let Err(error) = Address::parse(url) {
            fields.refuse("webhook_url", &error.to_string());
        }
        said.push(("url", json!(url)));
    }
    needed(fields, "webhook_type");
    said.extend(fields.choice("webhook_type", &TYPES).map(|kind| ("type", json!(kind))));
    needed(fields, "operations");
    said.extend(operations(fields).map(|operations| ("operations", json!(operations))));
    let timeout = fields.bounded_integer("timeout_seconds", 1, TIMEOUT_MAX);
    said.extend(timeout.map(|seconds| ("timeoutSeconds", json!(seconds))));
    said.extend(fields.choice("failure_policy", &POLICIES).map(|policy| ("failurePolicy", json!(policy))));
    said.extend(fields.integer("ordering").map(|ordering| ("ordering", json!(ordering))));
    said
}

/// Each once, in the order everybody writes them.
fn operations(fields: &mut Fields<'_>) -> Option<Vec<&'static str>> {
    let names = fields.texts("operations")?;
    if names.is_empty() && !fields.is_noted("operations") {
        fields.refuse("operations", "operations must name at least one of CREATE, UPDATE and DELETE");
    }
    for name in names.iter().filter(|name| !OPERATIONS.contains(name)) {
        let rule = format!("unknown operation '{name}': it is CREATE, UPDATE or DELETE");
        fields.refuse("operations", &rule);
    }
    Some(OPERATIONS.into_iter().filter(|name| names.contains(name)).collect())
}

async fn create(accounts: &Inner, call: &Call<'_>) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    sort().admin(call, "create").await?;
    let body = call.body()?;
    let mut fields = Fields::of(&body)?;
    let said = read(&mut fields, true);
    fields.check()?;
    let mut object = sort().object("", json!({}));
    for (field, value) in said {
        records::set(&mut object, field, Some(value));
    }
    let _turn = accounts.turn.lock().await;
    let name = shown_name(&object).to_owned();
    check_free(call, &name, 0).await?;
    object.set_metadata("name", json!(sort().object_name(call.store(), &name).await?));
    let written = call.write(Operation::Create(object)).await?;
    Ok(shown(StatusCode::CREATED, &written.into_object().decode()))
}

async fn check_free(call: &Call<'_>, name: &str, but: u64) -> Result<(), Error> {
    let all = sort().all(call.store()).await?;
    let is_taken = all.iter().any(|it| shown_name(it) == name && records::id(it) != but);
    if is_taken { Err(Error::conflict(format!("Admission webhook '{name}' already exists"))) } else { Ok(()) }
}

async fn list(call: &Call<'_>) -> Result<Response<Body>, Error> {
    let known = ["resource_type_name", "resource_type_version", "webhook_type", "limit", "offset"];
    let mut query = call.query(&known);
    let (name, version) = (query.text("resource_type_name"), query.text("resource_type_version"));
    let kind = query.choice("webhook_type", &TYPES);
    let (limit, offset) = (query.limit(100), query.offset());
    query.check()?;
    call.permit("list", &webhook_kind(), sort().plural, "").await?;
    let all = sort().all(call.store()).await?;
    let is =
        |view: &Value, field: &str, wanted: Option<&str>| wanted.is_none_or(|wanted| view[field] == wanted);
    let views = all.iter().map(view).filter(|view| {
        is(view, "resource_type_name", name)
            && is(view, "resource_type_version", version)
            && is(view, "webhook_type", kind)
    });
    Ok(answer(StatusCode::OK, &views.skip(offset).take(limit).collect()))
}

async fn get(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("webhook_id", id)?;
    call.permit("get", &webhook_kind(), sort().plural, "").await?;
    Ok(shown(StatusCode::OK, &sort().find(call, id).await?))
}

async fn update(accounts: &Inner, call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("webhook_id", id)?;
    sort().admin(call, "update").await?;
    let body = call.body()?;
    let mut fields = Fields::of_optional(&body)?;
    let said = read(&mut fields, false);
    fields.check()?;
    let _turn = accounts.turn.lock().await;
    if let Some((_, Value::String(name))) = said.iter().find(|(field, _)| *field == "name") {
        check_free(call, name, id).await?;
    }
    let change = |object: &mut Object| {
        for (field, value) in &said {
            records::set(object, field, Some(value.clone()));
        }
        Ok(())
    };
    Ok(shown(StatusCode::OK, &sort().change(call, id, change).await?))
}

async fn delete(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("webhook_id", id)?;
    sort().admin(call, "delete").await?;
    let object = sort().find(call, id).await?;
    records::check_match(call, &object)?;
    let only = Delete { resource_version: object.resource_version(), ..Delete::default() };
    call.write(Operation::Delete(ObjectKey::cluster(webhook_kind(), object.name()), only)).await?;
    Ok(no_content())
}
