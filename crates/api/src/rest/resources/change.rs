//! Changing and ending resources.

use concert_model::no8s::{Resource, names};
use concert_model::time::SignedDuration;
use concert_model::{Encoded, Object, Timestamp, time};
use concert_store::{Delete, Part};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::create::check_sizes;
use super::{Found, find, labels_of, shown};
use crate::kube::Body;
use crate::rest::Fields;
use crate::rest::call::{Call, answer};
use crate::rest::error::Error;
use crate::write::{Operation, Refused};

/// Tries at a change that its worker keeps overtaking.
const TRIES_MAX: usize = 16;

/// Longest delay of a run that is asked for: a year.
const DELAY_MAX: f64 = 31_536_000.0;

/// Changes a resource as it is at the moment of writing; gives it as it was and as it is.
async fn rewrite(
    call: &Call<'_>,
    id: &str,
    change: impl Fn(&mut Object) -> Result<(), Error>,
) -> Result<(Found, Encoded), Error> {
    for _ in 0..TRIES_MAX {
        let found = find(call, id, "update").await?;
        call.check_match(&found.encoded.resource_version().0)?;
        let mut object = found.object.clone();
        change(&mut object)?;
        match call.try_write(Operation::Update(object, Part::Main)).await {
            Ok(written) => return Ok((found, written.into_object())),
            Err(Refused::Store(concert_store::Error::Conflict { .. })) => {}
            Err(refused) => return Err(refused.into()),
        }
    }
    Err(Error::conflict("the resource is being changed by somebody else"))
}

/// `PUT /resources/{id}`: each part that is given replaces what is there.
pub(crate) async fn update(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    // Who may not, and what is not there, comes before what is wrong with the body.
    find(call, id, "update").await?;
    let body = call.body()?;
    let mut fields = Fields::of(&body)?;
    for name in ["spec", "plugin_config", "metadata"] {
        fields.object(name);
    }
    let (spec, config, metadata) =
        (fields.value("spec"), fields.value("plugin_config"), fields.value("metadata"));
    check_sizes(&mut fields);
    fields.check()?;
    let change = |object: &mut Object| {
        if object.deleted_at().is_some() {
            return Err(Error::conflict("Resource is being deleted"));
        }
        if let Some(spec) = spec {
            object.set("spec", spec.clone());
        }
        if let Some(config) = config {
            set_plugin(object, "config", config);
        }
        if let Some(metadata) = metadata {
            relabel(object, metadata);
            set_plugin(object, "metadata", metadata);
        }
        Ok(())
    };
    let (_, written) = rewrite(call, id, change).await?;
    Ok(shown(StatusCode::OK, &written))
}

/// Nothing and an empty object are the same to clients, so one is not made of the other.
fn set_plugin(object: &mut Object, field: &str, value: &Value) {
    let is_empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
    if !(is_empty(value) && is_empty(&object.get("plugin")[field])) {
        object.get_mut("plugin")[field] = value.clone();
    }
}

/// Labels follow the metadata that they came from.
fn relabel(object: &mut Object, metadata: &Value) {
    let before = Resource(object).details().clone();
    let mut labels = object.labels();
    for (name, _) in labels_of(Some(&before)) {
        labels.remove(name);
    }
    for (name, value) in labels_of(Some(metadata)) {
        labels.insert(name.to_owned(), value.to_owned());
    }
    object.set_metadata("labels", json!(labels));
}

/// `DELETE /resources/{id}`.
pub(crate) async fn delete(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let found = find(call, id, "delete").await?;
    let version = found.encoded.resource_version();
    call.check_match(&version.0)?;
    let resource_version = call.has_match().then(|| version.clone());
    let options =
        Delete { uid: Some(found.encoded.head().uid.clone()), resource_version, ..Delete::default() };
    match call.try_write(Operation::Delete(found.encoded.key().clone(), options)).await {
        Ok(_) => {}
        Err(Refused::Store(concert_store::Error::NotFound { .. })) => {
            return Err(Error::not_found(super::NOT_FOUND));
        }
        Err(Refused::Store(concert_store::Error::Conflict { .. })) if call.has_match() => {
            return Err(Error::new(StatusCode::PRECONDITION_FAILED, "the resource was changed meanwhile"));
        }
        Err(refused) => return Err(refused.into()),
    }
    let said = json!({"message": "Resource marked for deletion", "resource_id": found.id});
    Ok(answer(StatusCode::ACCEPTED, &said))
}

/// `PUT /resources/{id}/finalizers`. The last one taken from what is to go lets it go.
pub(crate) async fn finalizers(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    find(call, id, "update").await?;
    let body = call.body()?;
    let mut fields = Fields::of(&body)?;
    let (add, remove) = (fields.texts("add").unwrap_or_default(), fields.texts("remove").unwrap_or_default());
    for finalizer in &add {
        if let Err(error) = concert_model::name::check_qualified(finalizer) {
            fields.refuse("add", error.0);
        }
    }
    fields.check()?;
    let change = |object: &mut Object| {
        let mut is_new = false;
        for finalizer in &add {
            is_new |= object.add_finalizer(finalizer);
        }
        if is_new && object.deleted_at().is_some() {
            return Err(Error::conflict("Resource is being deleted: finalizers can only be removed"));
        }
        for finalizer in &remove {
            object.remove_finalizer(finalizer);
        }
        Ok(())
    };
    let (found, written) = rewrite(call, id, change).await?;
    if found.object.deleted_at().is_some() && written.decode().finalizers().is_empty() {
        call.door.index.forget(&written);
        let said = json!({"message": "All finalizers removed, resource deleted", "resource_id": found.id});
        return Ok(answer(StatusCode::OK, &said));
    }
    Ok(shown(StatusCode::OK, &written))
}

/// `POST /resources/{id}/reconcile`: asks for a run now, or after `delay_seconds`. Its worker watches for
/// the mark, which stays over a restart.
pub(crate) async fn reconcile(call: &Call<'_>, id: &str) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    find(call, id, "update").await?;
    let body = call.body()?;
    let mut fields = Fields::of_optional(&body)?;
    let delay = fields.number("delay_seconds").unwrap_or_default();
    if !(0.0..=DELAY_MAX).contains(&delay) {
        fields.refuse("delay_seconds", "delay_seconds must be from 0 to 31536000");
    }
    fields.check()?;
    let delay = SignedDuration::try_from_secs_f64(delay).unwrap_or_default();
    let due = call.clock().now().checked_add(delay).unwrap_or(Timestamp::MAX);
    let mark = |object: &mut Object| {
        object.set_annotation(names::RECONCILE_AT, &time::micros(due));
        Ok(())
    };
    let (found, _) = rewrite(call, id, mark).await?;
    Ok(answer(StatusCode::ACCEPTED, &json!({"message": "Reconciliation triggered", "resource_id": found.id})))
}
