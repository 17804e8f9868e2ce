//! `/api/v1/resources`: objects of the kinds that are resource types.

mod change;
mod create;
mod history;
mod list;

use concert_model::{Encoded, Object};
use http::{Response, StatusCode};
use serde_json::{Value, json};

pub(crate) use change::{delete, finalizers, reconcile, update};
pub(crate) use create::create;
pub(crate) use history::history;
pub(crate) use list::list;

use super::call::{Call, answer, tagged};
use super::error::Error;
use super::{types, view};
use crate::kube::Body;

const NOT_FOUND: &str = "Resource not found";

/// A resource that may be used.
pub(crate) struct Found {
    pub(crate) id: u64,
    pub(crate) encoded: Encoded,
    pub(crate) object: Object,
}

/// The resource with a number, if the caller may do `verb` to it.
///
/// # Errors
/// 422 for what is no number, 404, 403.
pub(crate) async fn find(call: &Call<'_>, id: &str, verb: &str) -> Result<Found, Error> {
    let id = call.id("resource_id", id)?;
    let door = call.door;
    let found = door.index.find(&door.store, &door.ids, id).await?;
    let encoded = found.ok_or_else(|| Error::not_found(NOT_FOUND))?;
    permit(call, verb, &encoded).await?;
    Ok(Found { id, object: encoded.decode(), encoded })
}

async fn permit(call: &Call<'_>, verb: &str, object: &Encoded) -> Result<(), Error> {
    let card = call.store().card(&object.key().kind)?;
    call.permit(verb, &object.key().kind, &card.kind.plural, &object.key().name).await
}

/// A resource as an answer.
pub(crate) fn shown(code: StatusCode, encoded: &Encoded) -> Response<Body> {
    tagged(code, &view::resource(&encoded.decode()), &encoded.resource_version().0)
}

/// `GET /resources/{id}`.
pub(crate) async fn get(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    Ok(shown(StatusCode::OK, &find(call, id, "get").await?.encoded))
}

/// `GET /resources/by-name/{type}/{version}/{name}`.
pub(crate) async fn get_by_name(
    call: &Call<'_>,
    (type_name, version): (&str, &str),
    name: &str,
) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let not_found = || Error::not_found(NOT_FOUND);
    let kind = types::find_any(call.store(), type_name, version).await?.ok_or_else(not_found)?;
    call.permit("get", &kind.kind, &kind.plural, name).await?;
    let key = concert_model::ObjectKey::cluster(kind.kind.clone(), name);
    match concert_store::Store::get(call.store(), &key).await {
        Ok(encoded) if super::index::id_of(&encoded).is_some() => Ok(shown(StatusCode::OK, &encoded)),
        Ok(_) | Err(concert_store::Error::NotFound { .. } | concert_store::Error::UnknownKind { .. }) => {
            Err(not_found())
        }
        Err(error) => Err(error.into()),
    }
}

/// `GET /resources/{id}/outputs`.
pub(crate) async fn outputs(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let found = find(call, id, "get").await?;
    let outputs = found.object.status().get("outputs").cloned().unwrap_or_else(|| json!({}));
    Ok(answer(StatusCode::OK, &json!({"outputs": outputs})))
}

/// Labels that people gave in the metadata of a resource: those that can be labels.
pub(crate) fn labels_of(metadata: Option<&Value>) -> Vec<(&str, &str)> {
    use concert_model::name::{check_label_value, check_qualified};
    let given = metadata.and_then(|it| it.get("labels")).and_then(Value::as_object);
    let can_be = |name: &str, value: &str| {
        check_qualified(name).is_ok()
            && check_label_value(value).is_ok()
            && !name.starts_with(concert_model::no8s::GROUP)
    };
    let texts =
        given.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
    texts.filter(|(name, value)| can_be(name, value)).collect()
}
