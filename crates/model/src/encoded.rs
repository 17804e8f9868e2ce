//! An object at rest: canonical JSON in three segments behind a typed head.
//!
//! Segments are `metadata` (without `resourceVersion`), `status`, and the rest (everything but
//! `apiVersion` and `kind`). No-op, generation and status questions are comparisons of bytes, a
//! status write is a splice, and nothing holds a parsed tree: 22 KB for a 1 KB object.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::key::{GroupVersionKind, ObjectKey, ResourceVersion, Uid};
use crate::object::Object;
use crate::owner::OwnerReference;
use crate::selector::Labels;
use crate::time::Timestamp;

/// What is known of an object without opening its payload. Stored in clear, so that selecting,
/// collecting and scheduling need no key: labels must not hold secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The version the payload is written in.
    #[serde(rename = "v")]
    pub version: Arc<str>,
    /// Which incarnation.
    #[serde(rename = "u")]
    pub uid: Uid,
    /// `metadata.generation`; 0 where the kind has none.
    #[serde(rename = "g", default, skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// When it was made.
    #[serde(rename = "c")]
    pub created_at: Timestamp,
    /// When its deletion was asked for.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Its labels.
    #[serde(rename = "l", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: Labels,
    /// Who it lives and dies with.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<OwnerReference>,
    /// Values of the fields that the kind lets clients select by.
    #[serde(rename = "f", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

fn is_zero(n: &i64) -> bool {
    *n == 0
}

/// Head and payload of one write of one object, before or without its resource version.
#[derive(Clone, PartialEq, Eq)]
pub struct Body {
    /// Whose.
    pub key: ObjectKey,
    /// What is known without opening the payload.
    pub head: Head,
    payload: Bytes,
    metadata_end: usize,
    status_end: usize,
}

/// Two lengths of four bytes stand before the segments.
const PREFIX_BYTES: usize = 8;

impl Body {
    /// Writes `object` down. `head` is what the caller found in it.
    pub fn encode(key: ObjectKey, head: Head, object: &Object) -> Self {
        let metadata = metadata_of(object);
        let status = object.as_map().get("status").map(text).unwrap_or_default();
        let mut rest = Vec::with_capacity(1024);
        let is_apart = |field: &str| matches!(field, "apiVersion" | "kind" | "metadata" | "status");
        write_members(&mut rest, object.as_map().iter().filter(|(field, _)| !is_apart(field)));
        Self::assemble(key, head, &metadata, &status, &rest)
    }

    /// Takes back a payload that [`Body::payload`] gave out.
    ///
    /// # Errors
    /// The bytes are not a payload: the store is damaged.
    pub fn from_payload(key: ObjectKey, head: Head, payload: Bytes) -> Result<Self, DamagedError> {
        let length = |at: usize| -> Option<usize> {
            let bytes: [u8; 4] = payload.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_le_bytes(bytes)).ok()
        };
        let ends = || {
            let metadata_end = PREFIX_BYTES.checked_add(length(0)?)?;
            let status_end = metadata_end.checked_add(length(4)?)?;
            let is_object =
                |segment: &[u8]| segment.starts_with(b"{") && segment.ends_with(b"}") && segment.len() > 1;
            let parts = (payload.get(PREFIX_BYTES..metadata_end)?, payload.get(status_end..)?);
            (is_object(parts.0) && is_object(parts.1)).then_some((metadata_end, status_end))
        };
        let Some((metadata_end, status_end)) = ends() else { return Err(DamagedError { key }) };
        Ok(Self { key, head, payload, metadata_end, status_end })
    }

    /// This body with the metadata of `object`, and nothing else of it.
    pub fn with_metadata(&self, head: Head, object: &Object) -> Self {
        Self::assemble(self.key.clone(), head, &metadata_of(object), self.status(), self.rest())
    }

    /// This body with another status, null for none: the splice that a status write is.
    pub fn with_status(&self, head: Head, status: &Value) -> Self {
        let status = if status.is_null() { Vec::new() } else { text(status) };
        Self::assemble(self.key.clone(), head, self.metadata(), &status, self.rest())
    }

    /// This body with the status of `other`: what an update of everything else keeps.
    pub fn with_status_of(&self, other: &Self) -> Self {
        let (key, head) = (self.key.clone(), self.head.clone());
        Self::assemble(key, head, self.metadata(), other.status(), self.rest())
    }

    fn assemble(key: ObjectKey, head: Head, metadata: &[u8], status: &[u8], rest: &[u8]) -> Self {
        let metadata_end = PREFIX_BYTES + metadata.len();
        let status_end = metadata_end + status.len();
        let mut payload = Vec::with_capacity(status_end + rest.len());
        for part in [metadata, status] {
            // Objects are bounded far below 4 GiB before they get here.
            payload.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
        }
        for part in [metadata, status, rest] {
            payload.extend_from_slice(part);
        }
        Self { key, head, payload: payload.into(), metadata_end, status_end }
    }

    /// All segments as one run of bytes.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// `metadata` without `resourceVersion`, as JSON.
    pub fn metadata(&self) -> &[u8] {
        &self.payload[PREFIX_BYTES..self.metadata_end]
    }

    /// `status` as JSON; empty if there is none.
    pub fn status(&self) -> &[u8] {
        &self.payload[self.metadata_end..self.status_end]
    }

    /// Everything but `apiVersion`, `kind`, `metadata` and `status`, as a JSON object.
    pub fn rest(&self) -> &[u8] {
        &self.payload[self.status_end..]
    }

    /// The type in the version it is stored in.
    pub fn gvk(&self) -> GroupVersionKind {
        self.key.kind.at_version(self.head.version.clone())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads may hold secrets: never in a log.
        write!(f, "Body({}, {} bytes)", self.key, self.payload.len())
    }
}

/// A payload that cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored bytes of {key} are damaged")]
pub struct DamagedError {
    /// Whose payload.
    pub key: ObjectKey,
}

/// One stored state of an object: what stores hand out. Cheap to clone and to share.
#[derive(Clone, PartialEq, Eq)]
pub struct Encoded {
    body: Arc<Body>,
    resource_version: ResourceVersion,
}

impl Encoded {
    /// `body` as written under `resource_version`.
    pub fn new(body: Arc<Body>, resource_version: ResourceVersion) -> Self {
        Self { body, resource_version }
    }

    /// Whose.
    pub fn key(&self) -> &ObjectKey {
        &self.body.key
    }

    /// What is known without opening the payload.
    pub fn head(&self) -> &Head {
        &self.body.head
    }

    /// Head and segments.
    pub fn body(&self) -> &Arc<Body> {
        &self.body
    }

    /// The token of the write that made this state.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.resource_version
    }

    /// The tree, in the version it is stored in.
    pub fn decode(&self) -> Object {
        let read = |segment: &[u8]| serde_json::from_slice(segment).unwrap_or(Value::Null);
        // What cannot be read was not written by `encode`: shown as empty rather than not at all.
        let mut fields = match read(self.body.rest()) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let gvk = self.body.gvk();
        fields.insert("apiVersion".into(), gvk.api_version().into());
        fields.insert("kind".into(), (&*gvk.group_kind.kind).into());
        let mut metadata = match read(self.body.metadata()) {
            Value::Object(metadata) => metadata,
            _ => Map::new(),
        };
        metadata.insert("resourceVersion".into(), (&*self.resource_version.0).into());
        fields.insert("metadata".into(), Value::Object(metadata));
        if !self.body.status().is_empty() {
            fields.insert("status".into(), read(self.body.status()));
        }
        Object { fields }
    }

    /// JSON text in the version it is stored in, put together from the segments without parsing.
    pub fn to_json(&self) -> Vec<u8> {
        self.to_json_as(&self.body.head.version)
    }

    /// JSON text as another version of the kind sees it (no conversion: the fields are the same).
    pub fn to_json_as(&self, version: &str) -> Vec<u8> {
        let body = &self.body;
        let gvk = body.key.kind.at_version(version);
        let mut out = Vec::with_capacity(body.payload.len() + 128);
        out.extend_from_slice(b"{\"apiVersion\":");
        out.extend_from_slice(&text(&gvk.api_version().into()));
        out.extend_from_slice(b",\"kind\":");
        out.extend_from_slice(&text(&(&*gvk.group_kind.kind).into()));
        out.extend_from_slice(b",\"metadata\":{\"resourceVersion\":");
        out.extend_from_slice(&text(&(&*self.resource_version.0).into()));
        extend_members(&mut out, body.metadata());
        out.push(b'}');
        if !body.status().is_empty() {
            out.extend_from_slice(b",\"status\":");
            out.extend_from_slice(body.status());
        }
        extend_members(&mut out, body.rest());
        out.push(b'}');
        out
    }
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoded({} at {})", self.body.key, self.resource_version)
    }
}

/// Adds the members of the JSON object `members` to an object being written.
fn extend_members(out: &mut Vec<u8>, members: &[u8]) {
    let inner = &members[1..members.len() - 1];
    if !inner.is_empty() {
        out.push(b',');
        out.extend_from_slice(inner);
    }
}

fn metadata_of(object: &Object) -> Vec<u8> {
    let mut metadata = Vec::with_capacity(512);
    let fields = object.get("metadata").as_object().into_iter().flatten();
    write_members(&mut metadata, fields.filter(|(field, _)| *field != "resourceVersion"));
    metadata
}

/// Writes a JSON object with these members.
fn write_members<'a>(out: &mut Vec<u8>, members: impl Iterator<Item = (&'a String, &'a Value)>) {
    out.push(b'{');
    for (i, (field, value)) in members.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        // Writing into memory cannot fail.
        let _ = serde_json::to_writer(&mut *out, field);
        out.push(b':');
        let _ = serde_json::to_writer(&mut *out, value);
    }
    out.push(b'}');
}

fn text(value: &Value) -> Vec<u8> {
    // Writing a tree into memory cannot fail: its keys are strings and its numbers finite.
    serde_json::to_vec(value).unwrap_or_default()
}

/// The value at a dotted path (`spec.region`), as field selectors compare it.
pub fn selectable(object: &Object, path: &str) -> Option<String> {
    let (field, rest) = path.split_once('.').unwrap_or((path, ""));
    text_at(object.as_map().get(field)?, rest)
}

/// The value at a dotted path inside `value`; the empty path is the value itself.
pub fn text_at(value: &Value, path: &str) -> Option<String> {
    let steps = path.split('.').filter(|step| !step.is_empty());
    match steps.into_iter().try_fold(value, |value, step| value.get(step))? {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn encode(object: &Object) -> Encoded {
        let head = Head {
            version: "v1".into(),
            uid: Uid::from_random(7),
            generation: object.generation(),
            created_at: Timestamp::UNIX_EPOCH,
            deleted_at: None,
            labels: object.labels(),
            owners: object.owners(),
            fields: BTreeMap::new(),
        };
        let body = Body::encode(object.key().unwrap(), head, object);
        Encoded::new(Arc::new(body), ResourceVersion("5".into()))
    }

    fn widget(status: Value, spec: Value) -> Object {
        let mut object = Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "a", "namespace": "default", "resourceVersion": "5"}}))
        .unwrap();
        object.set("status", status);
        object.set("spec", spec);
        object
    }

    #[test]
    fn keys_are_written_in_one_order_whatever_they_were_read_in() {
        let one: Value = serde_json::from_str(r#"{"b":1,"a":{"d":1,"c":2}}"#).unwrap();
        assert_eq!(text(&one), br#"{"a":{"c":2,"d":1},"b":1}"#);
    }

    #[test]
    fn a_status_splice_touches_nothing_else() {
        let old = encode(&widget(json!({"n": 1}), json!({"size": 1})));
        let new = encode(&widget(json!({"n": 2}), json!({"size": 2})));
        let spliced = old.body().with_status_of(new.body());
        assert_eq!((spliced.metadata(), spliced.rest()), (old.body().metadata(), old.body().rest()));
        assert_eq!(spliced.status(), br#"{"n":2}"#);
    }

    #[test]
    fn damaged_payloads_are_refused() {
        let good = encode(&widget(json!({}), json!({})));
        let (key, head) = (good.key().clone(), good.head().clone());
        for bytes in [&b""[..], &b"1234"[..], &[255; 8][..], &[9, 0, 0, 0, 0, 0, 0, 0, 1][..]] {
            let result = Body::from_payload(key.clone(), head.clone(), Bytes::copy_from_slice(bytes));
            assert!(result.is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn another_version_is_a_view_of_the_same_bytes() {
        let json = encode(&widget(json!(null), json!({"size": 1}))).to_json_as("v2");
        let object = Object::from_slice(&json).unwrap();
        assert_eq!((object.api_version(), object.spec()), ("example.com/v2", &json!({"size": 1})));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(|n| serde_json::Number::from_f64(n).map_or(Value::Null, Value::Number)),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_object_survives_the_round_trip(status in any_json(), spec in any_json()) {
            let object = widget(status, spec);
            let encoded = encode(&object);
            prop_assert_eq!(&encoded.decode(), &object);
            prop_assert_eq!(&Object::from_slice(&encoded.to_json()).unwrap(), &object);
            let (key, head) = (encoded.key().clone(), encoded.head().clone());
            let again = Body::from_payload(key, head, encoded.body().payload().clone()).unwrap();
            prop_assert_eq!(&again, &**encoded.body());
        }
    }
}
