//! `GET`, `PUT` and `DELETE /entries/{id}/sections/{name}`.

use concert_model::inventory::{Entry, Expected, GROUP, Right, Section, SectionType, names};
use concert_model::{Object, ObjectKey, base64};
use http::header::{HeaderMap, IF_MATCH};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::caller::Caller;
use super::contents::{Contents, Place};
use super::door::Inner;
use super::sent::Sent;
use super::view;
use super::write::Order;
use crate::audit::Record;
use crate::auth::Access;
use crate::kube::Body;
use crate::rest::call::{answer, tagged};
use crate::rest::{Call, Error};

/// Reads of a secret section whose Secret is replaced meanwhile.
const READS_MAX: usize = 8;

impl Inner {
    /// One section. Whatever comes of it, an access to a secret one is written down.
    pub async fn section(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        id: &str,
        name: &str,
    ) -> Result<Response<Body>, Error> {
        let (verb, answered) = match call.method().as_str() {
            "GET" => ("get", self.read_section(call, caller, id, name).await),
            "PUT" => ("update", self.put_section(call, caller, id, name).await),
            _ => ("delete", self.delete_section(call, caller, id, name).await),
        };
        self.note(call, caller, verb, (id, name), code_of(&answered)).await;
        answered
    }

    /// Writes down an access to a secret section.
    pub async fn note(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        verb: &str,
        (id, name): (&str, &str),
        code: StatusCode,
    ) {
        // What cannot be found out is taken for a secret: a line too many harms nobody.
        if !self.is_secret(id, name).await.unwrap_or(true) {
            return;
        }
        let object = names::section_object(id, name);
        let access = Access::Resource {
            verb,
            group: GROUP,
            resource: "sections",
            subresource: "secret",
            namespace: "",
            name: &object,
        };
        let now = self.parts.clock.now();
        let mut record = Record::new(now, Some(caller.user()), Some(&access), code.as_u16());
        record.from = call.peer().map(|peer| peer.address.ip());
        self.parts.audit.note(record);
    }

    /// Whether a section is secret, be it there or not.
    async fn is_secret(&self, id: &str, name: &str) -> Result<bool, Error> {
        if let Some(kind) = self.find(&names::section_type_key(name)).await? {
            return Ok(SectionType(&kind.decode()).is_secret());
        }
        let section = self.find(&names::section_key(id, name)).await?;
        Ok(section.is_some_and(|it| Section(&it.decode()).is_secret()))
    }

    async fn read_section(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        id: &str,
        name: &str,
    ) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        self.permit_section(caller, (Right::Read, "get"), id, name).await?;
        let entry = self.entry(caller, id).await?;
        for _ in 0..READS_MAX {
            let object = self.section_of(&entry, name).await?;
            let object = object.ok_or_else(|| Error::not_found("Section not found"))?;
            let mut shown = view::section(&object);
            if Section(&object).is_secret() {
                self.permit_secret(caller, id, name).await?;
                // Replaced between the two reads: the section points at another one by now.
                let Some(data) = self.opened(&object).await? else { continue };
                shown["data"] = data;
            }
            return Ok(tagged(StatusCode::OK, &shown, &Section(&object).version().to_string()));
        }
        Err(Error::unavailable("the section is being replaced all the time"))
    }

    /// What a secret section holds; none if that was replaced.
    async fn opened(&self, section: &Object) -> Result<Option<Value>, Error> {
        let name = Section(section).secret_name().unwrap_or_default();
        let key = ObjectKey::namespaced(names::secret_kind(), names::NAMESPACE, name);
        let Some(secret) = self.find(&key).await? else { return Ok(None) };
        let secret = secret.decode();
        let content = secret.get("data")[names::CONTENT].as_str().and_then(base64::decode);
        let content = content.and_then(|it| serde_json::from_slice(&it).ok());
        content.map(Some).ok_or_else(|| Error::unavailable("the contents of the section cannot be read"))
    }

    async fn put_section(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        id: &str,
        name: &str,
    ) -> Result<Response<Body>, Error> {
        self.permit_section(caller, (Right::Write, "update"), id, name).await?;
        call.query(&[]).check()?;
        let expected = expected(&call.head.headers)?;
        check_name(name)?;
        let entry = self.entry(caller, id).await?;
        let data = Sent::read(call, &["data"])?.object("data")?;
        let data = data.ok_or_else(|| Error::unprocessable("data must be given"))?;
        let data = Value::Object(data);
        let contents = self.contents(&entry, name, &data).await?;
        let by = self.by(caller, "section written");
        let (writer, lease) = (caller.name(), caller.lease());
        let order = Order { entry: id, section: name, contents: &contents, expected, writer, lease, by: &by };
        let done = self.write(&order).await?;
        let revision = self.books.now().await?.revision(&Entry(&entry).uid());
        let mut said = json!({"version": done.version, "revision": revision});
        if !done.is_changed {
            said["unchanged"] = json!(true);
        }
        Ok(tagged(StatusCode::OK, &said, &done.version.to_string()))
    }

    /// Contents that may be written to a section of `entry`.
    pub async fn contents<'a>(
        &self,
        entry: &Object,
        section: &str,
        data: &'a Value,
    ) -> Result<Contents<'a>, Error> {
        let kind = self.find(&names::section_type_key(section)).await?.map(|it| it.decode());
        let uid = Entry(entry).uid();
        let place = Place { entry: &uid, section };
        Contents::check(&place, data, kind.as_ref(), &self.schemas, &self.parts.keys)
    }

    async fn delete_section(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        id: &str,
        name: &str,
    ) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        self.permit_section(caller, (Right::Write, "delete"), id, name).await?;
        let entry = self.entry(caller, id).await?;
        if self.section_of(&entry, name).await?.is_none() {
            return Err(Error::not_found("Section not found"));
        }
        let by = self.by(caller, "section removed");
        self.remove(id, name, expected(&call.head.headers)?, caller.lease(), &by).await?;
        let revision = self.books.now().await?.revision(&Entry(&entry).uid());
        Ok(answer(StatusCode::OK, &json!({"revision": revision})))
    }

    /// A section of this incarnation of an entry.
    pub async fn section_of(&self, entry: &Object, name: &str) -> Result<Option<Object>, Error> {
        let entry = Entry(entry);
        let found = self.find(&names::section_key(entry.id(), name)).await?.map(|it| it.decode());
        Ok(found.filter(|it| Section(it).entry_uid() == Some(entry.uid())))
    }
}

/// The status of an answer.
pub(super) fn code_of(answered: &Result<Response<Body>, Error>) -> StatusCode {
    answered.as_ref().map_or_else(|error| error.code, Response::status)
}

/// The name of a section must be able to be part of that of an object.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    names::check_section(name).map_err(|rule| Error::unprocessable(format!("the name of a section: {rule}")))
}

/// What a writer believes to be there.
fn expected(headers: &HeaderMap) -> Result<Expected, Error> {
    let Some(header) = headers.get(IF_MATCH) else { return Ok(Expected::Anything) };
    let text = header.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(Expected::Something);
    }
    let version = text.strip_prefix("W/").unwrap_or(text).trim_matches('"').parse();
    version
        .map(Expected::Version)
        .map_err(|_| Error::bad_request("If-Match must be one version such as \"12\", \"0\" for none, or *"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_match_names_one_version() {
        for (text, is) in [
            ("\"12\"", Some(Expected::Version(12))),
            ("12", Some(Expected::Version(12))),
            ("W/\"12\"", Some(Expected::Version(12))),
            ("\"0\"", Some(Expected::Version(0))),
            ("*", Some(Expected::Something)),
            ("\"1\", \"2\"", None),
            ("\"x\"", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(IF_MATCH, text.parse().unwrap());
            assert_eq!(expected(&headers).ok(), is, "{text}");
        }
        assert_eq!(expected(&HeaderMap::new()).ok(), Some(Expected::Anything));
    }
}
