//! The object that a request is about: what the path says and what the body says must agree.

use concert_model::Object;
use serde_json::{Value, json};

use crate::error::Error;
use crate::kube::api::Call;

/// Takes `value` for an object of the resource and namespace that `call` is for.
pub(super) fn read(call: &Call<'_>, mut value: Value) -> Result<Object, Error> {
    let resource = call.resource;
    let kind = &*resource.group_kind().kind;
    let Value::Object(fields) = &mut value else {
        return Err(Error::bad_request("the body of the request must be an object"));
    };
    for (field, text) in [("kind", kind), ("apiVersion", &*resource.api_version)] {
        let is_missing = fields.get(field).is_none_or(|value| value.is_null() || value == "");
        if is_missing && resource.card().is_built_in {
            fields.insert(field.into(), json!(text));
        } else if is_missing {
            let name = if field == "kind" { "Kind" } else { field };
            return Err(Error::bad_request(format!("Object '{name}' is missing")));
        }
    }
    let mut object = Object::from_value(value).map_err(|error| Error::bad_request(error.to_string()))?;
    if object.kind() != kind {
        let (sent, version) = (object.kind(), resource.version());
        return Err(Error::bad_request(format!(
            "{sent} in version {version:?} cannot be handled as a {kind}: its kind must be {kind:?}"
        )));
    }
    if object.api_version() != &*resource.api_version {
        return Err(Error::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            object.api_version(),
            resource.api_version
        )));
    }
    place(call, &mut object)?;
    Ok(object)
}

/// Puts the object where the path says.
fn place(call: &Call<'_>, object: &mut Object) -> Result<(), Error> {
    for field in ["namespace", "name"] {
        let value = object.metadata(field);
        if !value.is_null() && !value.is_string() {
            return Err(Error::bad_request(format!("metadata.{field} must be a string")));
        }
    }
    if !call.resource.is_namespaced() {
        object.set_metadata("namespace", Value::Null);
    } else if object.namespace().is_empty() {
        object.set_metadata("namespace", json!(call.namespace));
    } else if object.namespace() != call.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Error::bad_request(message));
    }
    if call.name.is_empty() {
        return Ok(());
    }
    if object.name().is_empty() {
        object.set_metadata("name", json!(call.name));
    } else if object.name() != call.name {
        return Err(Error::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            object.name(),
            call.name
        )));
    }
    Ok(())
}
