//! The contract's types as messages of `concert.provider.v1`, and back.
//!
//! What comes in is checked here, once: a message that cannot be read is a provider, or a caller, that
//! broke the protocol.

mod answer;
mod failure;
mod handshake;

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use concert_model::{GroupVersionKind, Object};
use prost_types::Duration as WireDuration;
use serde_json::{Map, Value};

pub(crate) use answer::{
    created_from, created_to, deleted_from, deleted_to, delta_from, delta_to, observation_from,
    observation_to, plan_from, plan_to,
};
pub(crate) use failure::{NEEDS_CONFIGURE, failure_from, failure_to};
pub(crate) use handshake::{handshake_from, handshake_to};

use crate::details::Details;
use crate::error::{Class, Error};
use crate::handshake::Served;
use crate::text;
use crate::wire::v1;

/// Broken rules of the protocol.
pub(crate) fn misbehaved(what: impl AsRef<str>) -> Error {
    Error::new(Class::Misbehaved, text::clean(what.as_ref()))
}

/// Complaints about one handshake that are kept. More would only fill a status.
const COMPLAINTS_MAX: usize = 20;

/// The kinds that can be read, and what is wrong with the others: one that cannot is no reason to do without
/// the rest.
pub(crate) fn readable(kinds: impl IntoIterator<Item = Result<Served, Error>>) -> (Vec<Served>, Vec<String>) {
    let (mut served, mut refused, mut more) = (Vec::new(), Vec::new(), 0);
    for kind in kinds {
        match kind {
            Ok(kind) => served.push(kind),
            Err(error) if refused.len() < COMPLAINTS_MAX => refused.push(error.message),
            Err(_) => more += 1,
        }
    }
    if more > 0 {
        refused.push(format!("{more} more kinds make no sense"));
    }
    (served, refused)
}

/// An object as JSON text.
pub(crate) fn object_to(object: &Object) -> Bytes {
    serde_json::to_vec(object.as_map()).expect("a JSON tree can be written").into()
}

/// JSON text as an object.
pub(crate) fn object_from(json: &[u8]) -> Result<Object, Error> {
    Object::from_slice(json).map_err(|e| misbehaved(format!("not an object: {e}")))
}

/// A JSON object as text; nothing as nothing.
pub(crate) fn map_to(map: Option<&Map<String, Value>>) -> Bytes {
    map.map(|map| serde_json::to_vec(map).expect("a JSON tree can be written").into()).unwrap_or_default()
}

/// JSON text as an object's fields; nothing as nothing.
pub(crate) fn map_from(field: &str, json: &[u8]) -> Result<Option<Map<String, Value>>, Error> {
    if json.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(json)
        .map(Some)
        .map_err(|e| misbehaved(format!("{field} is not a JSON object: {e}")))
}

pub(crate) fn details_to(details: &Details) -> HashMap<String, Bytes> {
    details.iter().map(|(name, bytes)| (name.to_owned(), Bytes::copy_from_slice(bytes))).collect()
}

pub(crate) fn details_from(details: HashMap<String, Bytes>) -> Details {
    details.into_iter().map(|(name, bytes)| (name, bytes.to_vec())).collect()
}

pub(crate) fn kind_to(kind: &GroupVersionKind) -> v1::KindReference {
    v1::KindReference { api_version: kind.api_version(), kind: kind.group_kind.kind.to_string() }
}

pub(crate) fn kind_from(kind: Option<v1::KindReference>) -> Result<GroupVersionKind, Error> {
    let kind = kind.ok_or_else(|| misbehaved("a kind is missing"))?;
    GroupVersionKind::parse(&kind.api_version, &kind.kind)
        .map_err(|e| misbehaved(format!("kind {:?} of {:?}: {e}", kind.kind, kind.api_version)))
}

pub(crate) fn duration_to(duration: Duration) -> WireDuration {
    // Beyond 292 years: for ever is as good.
    WireDuration::try_from(duration).unwrap_or(WireDuration { seconds: i64::MAX, nanos: 0 })
}

/// Negative durations, which the wire can carry, are none.
pub(crate) fn duration_from(duration: Option<WireDuration>) -> Option<Duration> {
    duration.and_then(|it| Duration::try_from(it).ok())
}

/// Empty text is none.
pub(crate) fn text_from(text: String) -> Option<String> {
    Some(text).filter(|it| !it.is_empty())
}
