//! `/api/v1/resource-types`.

use concert_model::no8s::{GROUP, names};
use concert_model::{Object, time};
use concert_store::{Delete, PageRequest, Part, Query, Store};
use http::{Response, StatusCode};
use serde_json::Value;

use super::definition::{Type, Wish, build};
use super::{definition_key, find, find_any, list};
use crate::kube::Body;
use crate::rest::Fields;
use crate::rest::call::{Call, answer, no_content, tagged};
use crate::rest::draft7::Schema;
use crate::rest::error::Error;
use crate::write::{Operation, Refused};

const NOT_FOUND: &str = "Resource type not found";
const IN_USE: &str = "Cannot delete: resources still reference this type";

/// Tries at a type that others write as well.
const TRIES_MAX: usize = 8;

/// `GET /resource-types`.
pub(crate) async fn all(call: &Call<'_>) -> Result<Response<Body>, Error> {
    let mut query = call.query(&["name", "status", "limit", "offset"]);
    let (limit, offset) = (query.limit(100), query.offset());
    let (name, status) = (query.text("name"), query.text("status"));
    query.check()?;
    let found = list(call.store()).await?;
    let is_meant = |it: &&Type| {
        let shown = it.object.annotation(names::STATUS).unwrap_or("active");
        !it.is_deleting
            && name.is_none_or(|name| name == it.name)
            && status.is_none_or(|status| status == shown)
    };
    let shown: Vec<Value> = found.iter().filter(is_meant).skip(offset).take(limit).map(Type::view).collect();
    Ok(answer(StatusCode::OK, &Value::Array(shown)))
}

/// `GET /resource-types/{id}`.
pub(crate) async fn get(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("resource_type_id", id)?;
    Ok(shown(StatusCode::OK, &by_id(call, id).await?))
}

/// `GET /resource-types/{name}/{version}`.
pub(crate) async fn get_by_name(call: &Call<'_>, name: &str, version: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let found = find(call.store(), name, version).await?.ok_or_else(|| Error::not_found(NOT_FOUND))?;
    Ok(shown(StatusCode::OK, &found))
}

/// `POST /resource-types`.
pub(crate) async fn create(call: &Call<'_>) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    call.admin("create").await?;
    let body = call.body()?;
    let mut fields = Fields::of(&body)?;
    let (name, version) = (fields.required_text("name"), fields.required_text("version"));
    for (field, checked) in
        [("name", names::check_type_name(name)), ("version", names::check_type_version(version))]
    {
        if let Err(error) = checked
            && !fields.is_noted(field)
        {
            fields.refuse(field, error.0);
        }
    }
    fields.required_object("schema");
    let description = fields.text("description");
    fields.object("metadata");
    let (schema, metadata) = (fields.value("schema"), fields.value("metadata"));
    fields.check()?;
    let schema = schema.unwrap_or(&Value::Null);
    check_schema(schema)?;
    let wish = Wish { name, version, schema, description, metadata };
    let created = store_new(call, &wish).await?;
    Ok(shown(StatusCode::CREATED, &created))
}

fn check_schema(schema: &Value) -> Result<(), Error> {
    Schema::compile(schema)
        .map(drop)
        .map_err(|why| Error::unprocessable(format!("Invalid JSON Schema (Draft 7): {why}")))
}

/// One that is on its way out is still there.
async fn store_new(call: &Call<'_>, wish: &Wish<'_>) -> Result<Type, Error> {
    for _ in 0..TRIES_MAX {
        if find_any(call.store(), wish.name, wish.version).await?.is_some() {
            break;
        }
        let group = group_for(call, wish).await?;
        let object = build(wish, &group, call.clock().now());
        let object = Object::from_value(object).map_err(|error| Error::unprocessable(error.to_string()))?;
        match call.try_write(Operation::Create(object)).await {
            Ok(written) => {
                let written = Type::read(&written.into_object());
                return written.ok_or_else(|| Error::unavailable("a type was lost"));
            }
            // Another version, or this one, was quicker.
            Err(Refused::Store(concert_store::Error::AlreadyExists { .. })) => {}
            Err(refused) => return Err(refused.into()),
        }
    }
    Err(Error::conflict(format!("Resource type {}/{} already exists", wish.name, wish.version)))
}

/// The group of a new type: the plain one if no other version has it, otherwise one of its own.
async fn group_for(call: &Call<'_>, wish: &Wish<'_>) -> Result<String, Error> {
    let (name, plural) = (wish.name, names::plural(wish.name));
    let is_first = match call.store().get(&definition_key(&plural, GROUP)).await {
        Ok(definition) => Type::read(&definition).is_none_or(|it| it.name != name),
        Err(concert_store::Error::NotFound { .. }) => true,
        Err(error) => return Err(error.into()),
    };
    let group = if is_first { GROUP.to_owned() } else { names::versioned_group(wish.version) };
    // Within a group no two kinds share a word. Kubernetes would store the definition and not serve it.
    let words = [plural.clone(), name.to_ascii_lowercase()];
    let cards = call.store().cards();
    let clash = cards.iter().find(|card| {
        let taken = [&*card.kind.plural, &*card.singular];
        *card.kind.group_kind.group == *group
            && (words.iter().any(|word| taken.contains(&word.as_str()))
                || *card.list_kind == *name
                || *card.kind.group_kind.kind == *format!("{name}List"))
    });
    match clash {
        None => Ok(group),
        Some(card) => {
            let other = &card.kind.group_kind.kind;
            Err(Error::conflict(format!(
                "Resource type {name}/{} is spelt too much like {other}",
                wish.version
            )))
        }
    }
}

/// `PUT /resource-types/{id}`.
pub(crate) async fn update(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("resource_type_id", id)?;
    call.admin("update").await?;
    let body = call.body()?;
    let mut fields = Fields::of_optional(&body)?;
    fields.object("schema");
    fields.object("metadata");
    let (description, status) = (fields.text("description"), fields.text("status"));
    let (schema, metadata) = (fields.value("schema"), fields.value("metadata"));
    fields.check()?;
    if let Some(schema) = schema {
        check_schema(schema)?;
    }
    for _ in 0..TRIES_MAX {
        let found = by_id(call, id).await?;
        call.check_match(&found.resource_version.0)?;
        let mut object = found.object.clone();
        object.set_metadata("resourceVersion", Value::from(&*found.resource_version.0));
        let texts = [
            (names::SCHEMA, schema.map(Value::to_string)),
            (names::METADATA, metadata.map(Value::to_string)),
            (names::DESCRIPTION, description.map(str::to_owned)),
            (names::STATUS, status.map(str::to_owned)),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                object.set_annotation(name, &text);
            }
        }
        if object.annotations() != found.object.annotations() {
            object.set_annotation(names::UPDATED_AT, &time::micros(call.clock().now()));
        }
        match call.write(Operation::Update(object, Part::Main)).await {
            Ok(written) => {
                let written =
                    Type::read(&written.into_object()).ok_or_else(|| Error::not_found(NOT_FOUND))?;
                return Ok(shown(StatusCode::OK, &written));
            }
            Err(error) if error.code == StatusCode::CONFLICT => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::conflict("the resource type is being changed by somebody else"))
}

/// `DELETE /resource-types/{id}`. Resources that are on their way out do not count: the definition waits
/// for them.
pub(crate) async fn delete(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let id = call.id("resource_type_id", id)?;
    call.admin("delete").await?;
    let found = by_id(call, id).await?;
    call.check_match(&found.resource_version.0)?;
    let resources = match call.store().list(&Query::all(found.kind.clone()), &PageRequest::whole()).await {
        Ok(page) => page.items,
        Err(concert_store::Error::UnknownKind { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if resources.iter().any(|it| it.head().deleted_at.is_none()) {
        return Err(Error::conflict(IN_USE));
    }
    let key = definition_key(&found.plural, &found.kind.group);
    let resource_version = call.has_match().then_some(found.resource_version);
    let options = Delete { uid: found.object.uid(), resource_version, ..Delete::default() };
    call.write(Operation::Delete(key, options)).await?;
    Ok(no_content())
}

fn shown(code: StatusCode, found: &Type) -> Response<Body> {
    tagged(code, &found.view(), &found.resource_version.0)
}

async fn by_id(call: &Call<'_>, id: u64) -> Result<Type, Error> {
    let all = list(call.store()).await?;
    all.into_iter().find(|it| it.id == id && !it.is_deleting).ok_or_else(|| Error::not_found(NOT_FOUND))
}
