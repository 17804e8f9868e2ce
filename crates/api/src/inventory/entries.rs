//! Entries come, are shown, change and go.

use concert_model::inventory::{Entry, Expected, Right, names};
use concert_model::{FieldSelector, LabelSelector, Object, Patch, name};
use concert_store::{Delete, Error as StoreError, PageRequest, Part, Query, Store};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use super::caller::Caller;
use super::contents::Contents;
use super::door::{Inner, commit};
use super::sections::{check_name, code_of};
use super::sent::Sent;
use super::view;
use super::write::Order;
use crate::kube::Body;
use crate::rest::call::{answer, tagged};
use crate::rest::{Call, Error};
use crate::write::{Change, Operation};

/// Entries of one page, unless another number is asked for, and at most.
const PAGE: i64 = 500;
const PAGE_MAX: i64 = 10_000;
/// Longest kind and tenant: those of the definition.
const KIND_BYTES_MAX: usize = 63;
const TENANT_BYTES_MAX: usize = 253;

impl Inner {
    /// `GET /entries`.
    pub async fn list(&self, call: &Call<'_>, caller: &Caller<'_>) -> Result<Response<Body>, Error> {
        self.permit_entry(caller, "list", "").await?;
        let mut query = call.query(&["kind", "label", "limit", "continue"]);
        let limit = query.integer("limit", PAGE, 1, PAGE_MAX);
        query.check()?;
        let mut wanted = Query::all(names::entry_kind());
        if let Some(kind) = query.text("kind") {
            wanted = wanted.with_fields(FieldSelector::field("spec.kind", kind));
        }
        if let Some(text) = query.text("label") {
            let labels = LabelSelector::parse(text);
            wanted = wanted.with_labels(labels.map_err(|error| Error::unprocessable(error.to_string()))?);
        }
        let page = PageRequest { limit: Some(limit), token: query.text("continue").map(str::to_owned) };
        let page = self.parts.store.list(&wanted, &page).await?;
        let books = self.books.now().await?;
        let shown = |object: Object| view::entry(&object, books.revision(&Entry(&object).uid()));
        let items: Vec<Value> = page.items.iter().map(|it| shown(it.decode())).collect();
        Ok(answer(StatusCode::OK, &json!({"items": items, "continue": page.next})))
    }

    /// `GET /entries/{id}`, with those sections that the caller may read.
    pub async fn get(&self, call: &Call<'_>, caller: &Caller<'_>, id: &str) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        self.permit_entry(caller, "get", id).await?;
        let entry = self.entry(caller, id).await?;
        self.shown(caller, &entry, StatusCode::OK).await
    }

    async fn shown(
        &self,
        caller: &Caller<'_>,
        entry: &Object,
        code: StatusCode,
    ) -> Result<Response<Body>, Error> {
        let uid = Entry(entry).uid();
        // Before the sections: who waits for what has changed since this revision misses nothing that was
        // not shown, whatever is written meanwhile.
        let (revision, there) = {
            let books = self.books.now().await?;
            (books.revision(&uid), books.sections(&uid).map(str::to_owned).collect::<Vec<_>>())
        };
        let mut sections = Map::new();
        for name in there {
            if self.permit_section(caller, (Right::Read, "get"), Entry(entry).id(), &name).await.is_err() {
                continue;
            }
            if let Some(section) = self.section_of(entry, &name).await? {
                sections.insert(name, view::section(&section));
            }
        }
        let mut shown = view::entry(entry, revision);
        shown["sections"] = Value::Object(sections);
        Ok(tagged(code, &shown, &revision.to_string()))
    }

    /// `POST /entries`, with any number of sections.
    pub async fn create(&self, call: &Call<'_>, caller: &Caller<'_>) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        let mut sent = Sent::read(call, &["id", "kind", "tenant", "labels", "paused", "sections"])?;
        let id = sent.text("id", KIND_BYTES_MAX)?.unwrap_or_default();
        self.permit_entry(caller, "create", &id).await?;
        names::check_entry(&id).map_err(|rule| Error::unprocessable(format!("id: {rule}")))?;
        let mut object = Object::new(&names::versioned(&names::entry_kind()), "", &id);
        object.set("spec", spec(&mut sent)?);
        for (key, value) in labels(&mut sent)?.into_iter().flatten() {
            object.set_label(&key, value.as_str().unwrap_or_default());
        }
        let sections = sent.object("sections")?.unwrap_or_default();
        sections.keys().try_for_each(|it| check_name(it))?;
        let answered = self.create_with(call, caller, object, &sections).await;
        // Whatever came of it, as if each had been written by itself.
        for section in sections.keys() {
            self.note(call, caller, "update", (&id, section), code_of(&answered)).await;
        }
        answered
    }

    async fn create_with(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        object: Object,
        sections: &Map<String, Value>,
    ) -> Result<Response<Body>, Error> {
        let id = object.name().to_owned();
        for (section, data) in sections {
            self.permit_section(caller, (Right::Write, "update"), &id, section).await?;
            // What cannot be written later is refused before anything is.
            self.contents(&object, section, data).await?;
        }
        let entry = commit(call, Operation::Create(object)).await?.into_object().decode();
        if let Err(error) = self.fill(caller, &entry, sections).await {
            self.take_back(caller, &entry).await;
            return Err(error);
        }
        self.shown(caller, &entry, StatusCode::CREATED).await
    }

    async fn fill(
        &self,
        caller: &Caller<'_>,
        entry: &Object,
        sections: &Map<String, Value>,
    ) -> Result<(), Error> {
        for (section, data) in sections {
            let contents = self.contents(entry, section, data).await?;
            self.add(caller, entry.name(), section, &contents).await?;
        }
        Ok(())
    }

    /// Removes an entry that could not be filled, so that the same can be asked for again.
    async fn take_back(&self, caller: &Caller<'_>, entry: &Object) {
        let by = self.by(caller, "not all of its sections could be written");
        let options = Delete { uid: entry.uid(), ..Delete::default() };
        match self.parts.store.delete(&names::entry_key(entry.name()), &options, &by).await {
            Ok(_) | Err(StoreError::NotFound { .. } | StoreError::Conflict { .. }) => {}
            Err(error) => {
                tracing::warn!(entry = entry.name(), %error, "an entry is left without its sections");
            }
        }
    }

    async fn add(
        &self,
        caller: &Caller<'_>,
        entry: &str,
        section: &str,
        contents: &Contents<'_>,
    ) -> Result<(), Error> {
        let by = self.by(caller, "section written");
        let (expected, writer) = (Expected::Anything, caller.name());
        let order = Order { entry, section, contents, expected, writer, lease: caller.lease(), by: &by };
        self.write(&order).await.map(drop)
    }

    /// `PATCH /entries/{id}`: labels (null removes one), tenant, paused.
    pub async fn patch(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        id: &str,
    ) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        self.permit_entry(caller, "patch", id).await?;
        let mut sent = Sent::read(call, &["labels", "tenant", "paused"])?;
        let mut patch = json!({"metadata": {}, "spec": {}});
        if let Some(labels) = labels(&mut sent)? {
            patch["metadata"]["labels"] = Value::Object(labels);
        }
        if let Some(tenant) = sent.text("tenant", TENANT_BYTES_MAX)? {
            patch["spec"]["tenant"] = json!(tenant);
        }
        if let Some(paused) = sent.flag("paused")? {
            patch["spec"]["paused"] = json!(paused);
        }
        self.entry(caller, id).await?;
        let change = Change::Plain { version: names::VERSION.into(), patch: Patch::Merge(patch) };
        let entry = commit(call, Operation::Patch(names::entry_key(id), Part::Main, change)).await?;
        self.shown(caller, &entry.into_object().decode(), StatusCode::OK).await
    }

    /// `DELETE /entries/{id}`: it goes when nobody holds it any more, and its sections with it.
    pub async fn delete(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        id: &str,
    ) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        self.permit_entry(caller, "delete", id).await?;
        let entry = self.entry(caller, id).await?;
        let options = Delete { uid: entry.uid(), ..Delete::default() };
        commit(call, Operation::Delete(names::entry_key(id), options)).await?;
        Ok(answer(StatusCode::ACCEPTED, &json!({"id": id, "deleting": true})))
    }
}

fn spec(sent: &mut Sent) -> Result<Value, Error> {
    let kind = sent.text("kind", KIND_BYTES_MAX)?.filter(|it| !it.is_empty());
    let kind = kind.ok_or_else(|| Error::unprocessable("kind must be given"))?;
    let mut spec = json!({"kind": kind});
    if let Some(tenant) = sent.text("tenant", TENANT_BYTES_MAX)? {
        spec["tenant"] = json!(tenant);
    }
    if let Some(paused) = sent.flag("paused")? {
        spec["paused"] = json!(paused);
    }
    Ok(spec)
}

/// Labels that may be set by hand; a null takes one away.
fn labels(sent: &mut Sent) -> Result<Option<Map<String, Value>>, Error> {
    let Some(labels) = sent.object("labels")? else { return Ok(None) };
    let is_good = |(key, value): (&String, &Value)| {
        let is_value =
            value.is_null() || value.as_str().is_some_and(|it| name::check_label_value(it).is_ok());
        name::check_qualified(key).is_ok() && is_value && !view::is_ours(key)
    };
    match labels.iter().all(is_good) {
        true => Ok(Some(labels)),
        false => Err(Error::unprocessable("labels must be a map of labels that are not the inventory's own")),
    }
}
