//! Objects of our own kinds as things with a number: users, roles and webhooks.

use concert_model::no8s::names;
use concert_model::{Encoded, GroupKind, Object, Timestamp, time};
use concert_store::{Error as StoreError, Local, PageRequest, Part, Query, Store};
use http::{Response, StatusCode};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::call::{Call, access, answer, tagged};
use super::error::{Error, NOT_ADMIN};
use super::index;
use crate::kube::Body;
use crate::write::{Operation, Refused};

/// Tries at a change that others keep overtaking.
const TRIES_MAX: usize = 8;
/// The version of our own kinds.
const VERSION: &str = "v1alpha1";

/// One of our own kinds, and what it is called.
pub(crate) struct Sort {
    pub(crate) kind: GroupKind,
    pub(crate) plural: &'static str,
    /// What is answered where there is none: `User not found`.
    pub(crate) missing: &'static str,
}

impl Sort {
    /// Lets those pass who may do this to such objects.
    ///
    /// # Errors
    /// 403 that asks for an administrator.
    pub(crate) async fn admin(&self, call: &Call<'_>, verb: &str) -> Result<(), Error> {
        let access = access(verb, &self.kind, self.plural, "");
        call.gate().authorise(call.user, &access).await.map_err(|it| Error::refused(it, NOT_ADMIN))
    }

    /// All of them, by number.
    pub(crate) async fn all(&self, store: &Local) -> Result<Vec<Object>, StoreError> {
        let page = match store.list(&Query::all(self.kind.clone()), &PageRequest::whole()).await {
            Err(StoreError::UnknownKind { .. }) => return Ok(Vec::new()),
            listed => listed?,
        };
        let mut all: Vec<Object> = page.items.iter().map(Encoded::decode).collect();
        all.sort_by_key(|object| (id(object), object.name().to_owned()));
        Ok(all)
    }

    /// The one with this number.
    ///
    /// # Errors
    /// 404.
    pub(crate) async fn find(&self, call: &Call<'_>, id: u64) -> Result<Object, Error> {
        let found = match id {
            0 => None,
            id => index::by_label(call.store(), self.kind.clone(), id).await?,
        };
        found.map(|encoded| encoded.decode()).ok_or_else(|| Error::not_found(self.missing))
    }

    /// Changes the one with this number, against its newest state.
    ///
    /// # Errors
    /// 404; 412 if the caller named another state; 409 if others write all the time; what `change` says.
    pub(crate) async fn change(
        &self,
        call: &Call<'_>,
        id: u64,
        change: impl Fn(&mut Object) -> Result<(), Error> + Send + Sync,
    ) -> Result<Object, Error> {
        for _ in 0..TRIES_MAX {
            let mut object = self.find(call, id).await?;
            check_match(call, &object)?;
            let before = object.clone();
            change(&mut object)?;
            if object == before {
                return Ok(object);
            }
            object.set_annotation(names::UPDATED_AT, &time::micros(call.clock().now()));
            match call.try_write(Operation::Update(object, Part::Main)).await {
                Err(Refused::Store(StoreError::Conflict { .. })) => {}
                written => return Ok(written?.into_object().decode()),
            }
        }
        Err(Error::conflict("the object was changed by somebody else meanwhile"))
    }

    /// A new one.
    pub(crate) fn object(&self, name: &str, spec: Value) -> Object {
        let mut object = Object::new(&self.kind.clone().at_version(VERSION), "", name);
        object.set("spec", spec);
        object
    }

    /// The name of an object for something that people call `name`: that, if it can be one and is free.
    pub(crate) async fn object_name(&self, store: &Local, name: &str) -> Result<String, StoreError> {
        let taken: Vec<String> = self.all(store).await?.iter().map(|it| it.name().to_owned()).collect();
        let is_free = |name: &String| !taken.contains(name);
        let plain = Some(name.to_owned()).filter(|name| concert_model::name::check_label(name).is_ok());
        if let Some(name) = plain.filter(is_free) {
            return Ok(name);
        }
        let hashed = (0..).map(|i| {
            let hash = digest(&SHA256, format!("{i} {name}").as_bytes());
            let digits: String = hash.as_ref()[..5].iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}-{digits}", self.plural.trim_end_matches('s'))
        });
        Ok(hashed.into_iter().find(is_free).unwrap_or_default())
    }
}

/// Whether the caller's `If-Match` lets this state be changed.
///
/// # Errors
/// 412 if it does not.
pub(crate) fn check_match(call: &Call<'_>, object: &Object) -> Result<(), Error> {
    object.resource_version().map_or(Ok(()), |version| call.check_match(&version.0))
}

/// One of them as an answer, with the state that it is in.
pub(crate) fn shown(code: StatusCode, object: &Object, view: &Value) -> Response<Body> {
    match object.resource_version() {
        Some(version) => tagged(code, view, &version.0),
        None => answer(code, view),
    }
}

/// The number of an object; 0 if nobody has given it one.
pub(crate) fn id(object: &Object) -> u64 {
    object.labels().get(names::ID).and_then(|id| id.parse().ok()).unwrap_or(0)
}

/// What people call it.
pub(crate) fn shown_name(object: &Object) -> &str {
    let name = object.spec().get("name").and_then(Value::as_str).filter(|it| !it.is_empty());
    name.unwrap_or_else(|| object.name())
}

/// When it was made, and when it was last written.
pub(crate) fn times(object: &Object) -> (Option<Timestamp>, Option<Timestamp>) {
    let created = object.created_at();
    (created, object.annotation(names::UPDATED_AT).and_then(time::parse).or(created))
}

/// `2026-11-15T20:31:16.710423Z`, or null.
pub(crate) fn zulu(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| json!(time::micros(at)))
}

/// Sets a field of the spec, or takes it away.
pub(crate) fn set(object: &mut Object, field: &str, value: Option<Value>) {
    if object.spec().is_null() {
        object.set("spec", json!({}));
    }
    if let Value::Object(spec) = object.get_mut("spec") {
        match value {
            Some(value) => drop(spec.insert(field.to_owned(), value)),
            None => drop(spec.remove(field)),
        }
    }
}
