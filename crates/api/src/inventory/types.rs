//! `/section-types`: what is known of all sections of one name.

use concert_model::Object;
use concert_model::inventory::{SectionType, names};
use concert_store::{Delete, PageRequest, Query, Store};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::caller::Caller;
use super::door::{Inner, commit};
use super::sections::check_name;
use super::sent::Sent;
use crate::kube::Body;
use crate::rest::call::{answer, no_content};
use crate::rest::{Call, Error};
use crate::write::Operation;

const RESOURCE: &str = "sectiontypes";

fn shown(object: &Object) -> Value {
    let kind = SectionType(object);
    json!({"name": kind.section(), "secret": kind.is_secret(), "schema": kind.schema()})
}

impl Inner {
    /// `GET /section-types`.
    pub async fn types(&self, call: &Call<'_>, caller: &Caller<'_>) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        self.permit_user(caller, "list", RESOURCE, "").await?;
        let all = Query::all(names::section_type_kind());
        let page = self.parts.store.list(&all, &PageRequest::whole()).await?;
        let items: Vec<Value> = page.items.iter().map(|it| shown(&it.decode())).collect();
        Ok(answer(StatusCode::OK, &json!({"items": items})))
    }

    /// One type. What it may become is judged as for every door.
    pub async fn type_(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        name: &str,
    ) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        let key = names::section_type_key(name);
        let known = self.find(&key).await?;
        let verb = verb(call, known.is_some());
        self.permit_user(caller, verb, RESOURCE, name).await?;
        match verb {
            "get" | "delete" if known.is_none() => Err(Error::not_found("Section type not found")),
            "delete" => {
                commit(call, Operation::Delete(key, Delete::default())).await?;
                Ok(no_content())
            }
            "get" => Ok(answer(StatusCode::OK, &known.map(|it| shown(&it.decode())).unwrap_or_default())),
            _ => {
                check_name(name)?;
                let mut sent = Sent::read(call, &["secret", "schema"])?;
                let mut spec = json!({"secret": sent.flag("secret")?.unwrap_or_default()});
                if let Some(schema) = sent.object("schema")? {
                    spec["schema"] = Value::Object(schema);
                }
                let fresh = Object::new(&names::versioned(&names::section_type_kind()), "", name);
                self.replace(call, known.map(|it| it.decode()).unwrap_or(fresh), spec, shown).await
            }
        }
    }

    /// Puts `spec` into an object that is there or is not.
    pub async fn replace(
        &self,
        call: &Call<'_>,
        mut object: Object,
        spec: Value,
        shown: fn(&Object) -> Value,
    ) -> Result<Response<Body>, Error> {
        let is_new = object.resource_version().is_none();
        object.set("spec", spec);
        let operation = match is_new {
            true => Operation::Create(object),
            false => Operation::Update(object, concert_store::Part::Main),
        };
        let written = commit(call, operation).await?.into_object().decode();
        let code = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        Ok(answer(code, &shown(&written)))
    }
}

/// What roles call a request for a thing that is there or is not.
pub(super) fn verb(call: &Call<'_>, is_there: bool) -> &'static str {
    match (call.method().as_str(), is_there) {
        ("GET", _) => "get",
        ("DELETE", _) => "delete",
        (_, true) => "update",
        (_, false) => "create",
    }
}
