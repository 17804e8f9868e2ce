//! Single objects.

use concert_model::Encoded;
use concert_store::Store;
use serde_json::Value;

use super::accept::Form;
use super::answer::{Answer, text};
use super::api::Call;
use super::table::{Include, Tables};
use super::{list, splice};
use crate::error::Error;

/// Parameters of reading one object.
const PARAMS: &[&str] = &["resourceVersion", "includeObject"];

/// `GET` of an object.
pub(crate) async fn get(call: &Call<'_>, form: Form) -> Result<Answer, Error> {
    call.params.check(PARAMS)?;
    let include = Include::read(call.params)?;
    // What is read is never older than any version that was given out here.
    if let Some(version) = list::least_version(call.params)? {
        list::check_reached(call.api, call.resource, &version).await?;
    }
    let object = call.api.store.get(&call.key()).await;
    let object = object.map_err(|error| Error::of_read(error, &call.naming()))?;
    Ok(Answer::ok(write(call, &object, form, include)))
}

/// One object as JSON, in the form that the client wants.
pub(crate) fn write(call: &Call<'_>, object: &Encoded, form: Form, include: Include) -> Vec<u8> {
    match form {
        Form::Whole if object.resource_version().0.is_empty() => unstored(call, object),
        Form::Whole | Form::Aggregated => object.to_json_as(call.resource.version()),
        Form::Partial => splice::partial(object),
        Form::Table => {
            let tables = Tables { resource: call.resource, include, now: call.api.clock.now() };
            tables.single(object, true)
        }
    }
}

/// What a dry run would have made: it has no version, and an empty one would say that it has.
fn unstored(call: &Call<'_>, object: &Encoded) -> Vec<u8> {
    let mut object = object.decode();
    object.set("apiVersion", Value::from(&*call.resource.api_version));
    object.set_metadata("resourceVersion", Value::Null);
    text(&object.into_value())
}
