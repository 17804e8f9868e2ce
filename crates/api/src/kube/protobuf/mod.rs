//! Protobuf bodies of Kubernetes' own kinds.
//!
//! kubectl and Go controllers write the kinds that they were compiled with in protobuf, and do not fall
//! back when it is refused. Bodies are read by a table of fields into the JSON that everything else works
//! on; answers are JSON, which those clients take.

mod kinds;
mod wire;

use concert_model::time;
use serde_json::{Map, Value, json};

use self::kinds::{Field, Kind};
use self::wire::{Part, Reader};
use crate::error::Error;

/// The content type of such bodies.
pub(crate) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every body starts with.
const MAGIC: &[u8] = b"k8s\0";

/// Reads a body.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, Error> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or_else(|| malformed("it does not start as one"))?;
    let (mut kind, mut api_version, mut raw) = (String::new(), String::new(), &[][..]);
    for part in Reader(envelope) {
        match part? {
            (1, Part::Bytes(type_meta)) => {
                for part in Reader(type_meta) {
                    match part? {
                        (1, Part::Bytes(text)) => api_version = utf8(text)?,
                        (2, Part::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Part::Bytes(bytes)) => raw = bytes,
            (3, Part::Bytes(encoding)) if !encoding.is_empty() => {
                return Err(malformed("it is encoded again"));
            }
            _ => {}
        }
    }
    let Some(fields) = kinds::find(&api_version, &kind) else {
        return Err(Error::unsupported_media(&["application/json", "application/yaml"]));
    };
    let mut object = message(fields, raw)?;
    object.insert("kind".into(), kind.into());
    object.insert("apiVersion".into(), api_version.into());
    Ok(Value::Object(object))
}

fn malformed(why: &str) -> Error {
    Error::bad_request(format!("the body is not a protobuf of Kubernetes: {why}"))
}

fn utf8(bytes: &[u8]) -> Result<String, Error> {
    String::from_utf8(bytes.to_vec()).map_err(|_| malformed("a text is not UTF-8"))
}

fn message(fields: &[Field], bytes: &[u8]) -> Result<Map<String, Value>, Error> {
    let mut object = Map::new();
    for part in Reader(bytes) {
        let (number, part) = part?;
        let Some(field) = fields.iter().find(|field| field.number == number) else {
            return Err(malformed(&format!("field {number} is not known")));
        };
        add(&mut object, field, &part)?;
    }
    Ok(object)
}

fn add(object: &mut Map<String, Value>, field: &Field, part: &Part<'_>) -> Result<(), Error> {
    let value = match (&field.kind, part) {
        (Kind::Ignored, _) => return Ok(()),
        (Kind::Text | Kind::OptionalText | Kind::Texts, Part::Bytes(bytes)) => json!(utf8(bytes)?),
        (Kind::Int | Kind::OptionalInt, Part::Number(number)) => json!(*number as i64),
        (Kind::Bool, Part::Number(number)) => json!(*number != 0),
        (Kind::Time | Kind::MicroTime, Part::Bytes(bytes)) => {
            moment(bytes, matches!(field.kind, Kind::MicroTime))?
        }
        (Kind::Json, Part::Bytes(bytes)) => embedded(bytes)?,
        (Kind::Message(fields) | Kind::Messages(fields), Part::Bytes(bytes)) => {
            message(fields, bytes)?.into()
        }
        (Kind::TextMap | Kind::BytesMap, Part::Bytes(bytes)) => return entry(object, field, bytes),
        _ => return Err(malformed(&format!("{} is of another type", field.name))),
    };
    match field.kind {
        Kind::Texts | Kind::Messages(_) => {
            if let Value::Array(list) = object.entry(field.name).or_insert_with(|| json!([])) {
                list.push(value);
            }
        }
        // What a writer in Go cannot leave out is left out here, as in its JSON.
        Kind::Text if value == "" => {}
        Kind::Int if value == 0 => {}
        Kind::Message(_) if value.as_object().is_some_and(Map::is_empty) => {}
        _ if value.is_null() => {}
        _ => drop(object.insert(field.name.into(), value)),
    }
    Ok(())
}

/// One entry of a map.
fn entry(object: &mut Map<String, Value>, field: &Field, bytes: &[u8]) -> Result<(), Error> {
    let (mut key, mut value) = (String::new(), &[][..]);
    for part in Reader(bytes) {
        match part? {
            (1, Part::Bytes(bytes)) => key = utf8(bytes)?,
            (2, Part::Bytes(bytes)) => value = bytes,
            _ => return Err(malformed(&format!("an entry of {} is of another type", field.name))),
        }
    }
    let value = if matches!(field.kind, Kind::BytesMap) { wire::base64(value) } else { utf8(value)? };
    if let Value::Object(map) = object.entry(field.name).or_insert_with(|| json!({})) {
        map.insert(key, value.into());
    }
    Ok(())
}

/// A moment; null if none is set.
fn moment(bytes: &[u8], is_micro: bool) -> Result<Value, Error> {
    let (mut seconds, mut nanos) = (None, 0);
    for part in Reader(bytes) {
        match part? {
            (1, Part::Number(number)) => seconds = Some(number as i64),
            (2, Part::Number(number)) => nanos = number as i32,
            _ => return Err(malformed("a time is of another type")),
        }
    }
    let Some(seconds) = seconds else { return Ok(Value::Null) };
    let moment =
        concert_model::Timestamp::new(seconds, nanos).map_err(|_| malformed("a time is out of range"))?;
    Ok(if is_micro { time::micros(moment) } else { time::seconds(moment) }.into())
}

/// JSON inside of a message that holds nothing else.
fn embedded(bytes: &[u8]) -> Result<Value, Error> {
    let mut value = Value::Null;
    for part in Reader(bytes) {
        if let (1, Part::Bytes(json)) = part? {
            value = serde_json::from_slice(json).map_err(|_| malformed("a field holds no JSON"))?;
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests;
