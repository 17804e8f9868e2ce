//! `POST /resources`.

use concert_model::Object;
use concert_model::no8s::{GROUP, names};
use concert_model::{GroupKind, no8s};
use http::header::{HeaderValue, LOCATION};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use super::{labels_of, shown};
use crate::kube::Body;
use crate::rest::admit::{self, PART_BYTES_MAX};
use crate::rest::call::Call;
use crate::rest::error::Error;
use crate::rest::owners::Owners;
use crate::rest::{Fields, types};
use crate::write::{Operation, Refused};

/// Longest name of a resource: a DNS label.
const NAME_CHARS_MAX: usize = 63;
const NAME_RULE: &str = "name must consist of lowercase alphanumeric characters or '-', must start and end \
                         with an alphanumeric character";

/// What somebody wants to exist.
struct Wish<'a> {
    name: &'a str,
    type_name: &'a str,
    version: &'a str,
    action: &'a str,
    spec: Value,
    config: Option<&'a Map<String, Value>>,
    metadata: Option<&'a Value>,
}

impl<'a> Wish<'a> {
    fn read(body: &'a Value) -> Result<Self, Error> {
        let mut fields = Fields::of(body)?;
        let name = fields.bounded_text("name", 0, NAME_CHARS_MAX);
        if !fields.is_noted("name") && concert_model::name::check_label(name).is_err() {
            fields.refuse("name", NAME_RULE);
        }
        let type_name = fields.required_text("resource_type_name");
        let version = fields.required_text("resource_type_version");
        let action = fields.text("action_plugin").unwrap_or_default();
        let spec = fields.object("spec").cloned().map_or(Value::Null, Value::Object);
        let config = fields.object("plugin_config");
        fields.object("metadata");
        let metadata = fields.value("metadata");
        check_sizes(&mut fields);
        fields.check()?;
        Ok(Self { name, type_name, version, action, spec, config, metadata })
    }

    fn object(&self, kind: &GroupKind) -> Value {
        let mut plugin = Map::new();
        if !self.action.is_empty() {
            plugin.insert("action".into(), self.action.into());
        }
        if let Some(config) = self.config {
            plugin.insert("config".into(), Value::Object(config.clone()));
        }
        if let Some(metadata) = self.metadata {
            plugin.insert("metadata".into(), metadata.clone());
        }
        let labels: Map<String, Value> =
            labels_of(self.metadata).into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let mut object = json!({
            "apiVersion": kind.at_version(self.version).api_version(), "kind": &*kind.kind,
            "metadata": {"name": self.name, "labels": labels}, "spec": self.spec,
        });
        if !plugin.is_empty() {
            object["plugin"] = Value::Object(plugin);
        }
        object
    }
}

/// Notes parts that are more text than a resource may hold.
pub(super) fn check_sizes(fields: &mut Fields<'_>) {
    for name in ["spec", "plugin_config"] {
        if fields.value(name).is_some_and(admit::is_too_large) {
            fields.refuse_unshown(name, &format!("{name} must not exceed {PART_BYTES_MAX} bytes of JSON"));
        }
    }
}

/// The checks come in the order that clients know; the write path makes them again, for all doors.
pub(crate) async fn create(call: &Call<'_>) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    let body = call.body()?;
    let wish = Wish::read(&body)?;
    let found = types::find(call.store(), wish.type_name, wish.version).await?;
    let plain = GroupKind::new(GROUP, wish.type_name);
    let (kind, plural) = match &found {
        Some(found) => (&found.kind, found.plural.clone()),
        // So that who may use any type hears that there is none.
        None => (&plain, names::plural(wish.type_name)),
    };
    call.permit("create", kind, &plural, wish.name).await?;
    let owners = Owners::read(call.store()).await?;
    admit::finalizer(&owners, wish.type_name, wish.version, wish.action)?;
    admit::check_spec(&wish.spec)?;
    if found.is_none() {
        let (name, version) = (wish.type_name, wish.version);
        return Err(Error::bad_request(format!("Resource type {name}/{version} not found")));
    }
    let object = Object::from_value(wish.object(kind)).map_err(|it| Error::unprocessable(it.to_string()))?;
    let written = call.try_write(Operation::Create(object)).await.map_err(|refused| match refused {
        Refused::Store(concert_store::Error::AlreadyExists { .. }) => {
            Error::conflict(format!("Resource '{}' already exists", wish.name))
        }
        other => other.into(),
    })?;
    let created = written.into_object();
    let mut response = shown(StatusCode::CREATED, &created);
    let id = no8s::Resource(&created.decode()).id().unwrap_or_default();
    if let Ok(place) = HeaderValue::try_from(format!("/api/v1/resources/{id}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}
