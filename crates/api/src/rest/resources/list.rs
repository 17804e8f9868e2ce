//! `GET /resources`: newest first, page by page.

use std::cmp::Reverse;

use concert_model::no8s::{Phase, Resource, names};
use concert_model::{Encoded, LabelSelector};
use concert_store::{PageRequest, Query, Store};
use http::header::HeaderValue;
use http::{Response, StatusCode};
use serde_json::Value;

use crate::auth::Refusal;
use crate::kube::Body;
use crate::rest::call::{Call, access, answer};
use crate::rest::error::Error;
use crate::rest::{index, types, view};

const PARAMS: &[&str] = &[
    "status",
    "action_plugin",
    "resource_type_name",
    "resource_type_version",
    "label",
    "limit",
    "offset",
    "continue",
];

/// The header of a page that is not the last one: what `continue` takes to get the next.
const CONTINUE: &str = "x-continue";

/// What is asked for.
struct Wanted<'a> {
    phase: Option<&'a str>,
    action: Option<&'a str>,
    type_name: Option<&'a str>,
    version: Option<&'a str>,
    labels: LabelSelector,
    limit: usize,
    offset: usize,
    /// Only numbers below this one.
    below: u64,
}

impl<'a> Wanted<'a> {
    fn read(call: &Call<'a>) -> Result<Self, Error> {
        let mut query = call.query(PARAMS);
        let labels = LabelSelector::parse(query.text("label").unwrap_or_default()).unwrap_or_else(|error| {
            query.refuse("label", &error.detail);
            LabelSelector::everything()
        });
        let below = match query.text("continue").map(str::parse) {
            None => u64::MAX,
            Some(Ok(below)) => below,
            Some(Err(_)) => {
                query.refuse("continue", "is not what a page before this one gave");
                0
            }
        };
        let phases: Vec<&str> = Phase::ALL.into_iter().map(Phase::as_str).collect();
        let wanted = Self {
            phase: query.choice("status", &phases),
            action: query.text("action_plugin"),
            type_name: query.text("resource_type_name"),
            version: query.text("resource_type_version"),
            labels,
            limit: query.limit(100),
            offset: query.offset(),
            below,
        };
        query.check()?;
        Ok(wanted)
    }

    fn is_type(&self, kind: &types::Type) -> bool {
        self.type_name.is_none_or(|it| it == kind.name) && self.version.is_none_or(|it| it == kind.version)
    }

    /// What can be told without opening an object.
    fn is_head(&self, object: &Encoded) -> bool {
        let action = object.head().labels.get(names::ACTION).map_or("", String::as_str);
        self.action.is_none_or(|it| it == action)
    }
}

/// `GET /resources`. What the caller may not read is left out before anything is counted.
pub(crate) async fn list(call: &Call<'_>) -> Result<Response<Body>, Error> {
    let wanted = Wanted::read(call)?;
    let mut found = readable(call, &wanted).await?;
    found.sort_unstable_by_key(|(id, _)| Reverse(*id));
    let mut page: Vec<Value> = Vec::new();
    let (mut skipped, mut last, mut is_cut) = (0, 0, false);
    for (id, encoded) in &found {
        let object = encoded.decode();
        let phase = Resource(&object).shown_phase();
        if wanted.phase.is_some_and(|it| it != phase.as_str()) {
            continue;
        }
        if skipped < wanted.offset {
            skipped += 1;
            continue;
        }
        if page.len() == wanted.limit {
            is_cut = true;
            break;
        }
        last = *id;
        page.push(view::resource(&object));
    }
    let mut response = answer(StatusCode::OK, &Value::Array(page));
    if is_cut && last > 0 {
        response.headers_mut().insert(CONTINUE, HeaderValue::from(last));
    }
    Ok(response)
}

/// All that is wanted by what its head tells, and that the caller may list.
async fn readable(call: &Call<'_>, wanted: &Wanted<'_>) -> Result<Vec<(u64, Encoded)>, Error> {
    let mut found = Vec::new();
    for kind in types::list(call.store()).await?.iter().filter(|kind| wanted.is_type(kind)) {
        match call.gate().authorise(call.user, &access("list", &kind.kind, &kind.plural, "")).await {
            Ok(()) => {}
            Err(Refusal::Forbidden(_)) => continue,
            Err(refusal) => return Err(Error::refused(refusal, "")),
        }
        let query = Query::all(kind.kind.clone()).with_labels(wanted.labels.clone());
        let page = match call.store().list(&query, &PageRequest::whole()).await {
            Ok(page) => page,
            // Its definition went away meanwhile.
            Err(concert_store::Error::UnknownKind { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let numbered = page.items.into_iter().filter_map(|it| Some((index::id_of(&it)?, it)));
        found.extend(numbered.filter(|(id, it)| *id < wanted.below && wanted.is_head(it)));
    }
    Ok(found)
}
