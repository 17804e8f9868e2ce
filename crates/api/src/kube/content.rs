//! Bodies of requests: bounded, JSON or YAML, read once.
//!
//! Fields that are given twice are found while reading, since afterwards nobody can tell.

use std::cell::RefCell;
use std::fmt;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::accept::Media;
use super::protobuf;
use crate::error::{Error, Reason};
use crate::listen::BodyError;

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Most fields given twice that are named: an answer need not repeat a megabyte of mistakes.
const DUPLICATES_MAX: usize = 100;

/// Most events of one YAML document, aliases played back included: two for every byte of a dense body of
/// the largest size would be six millions, and no object of a permitted size comes near this.
const YAML_EVENTS_MAX: usize = 1_000_000;

/// What was sent, and which of its fields more than once.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) value: Value,
    pub(crate) duplicates: Vec<String>,
}

/// All bytes of a body, at most `bytes_max`.
pub(crate) async fn collect<B>(body: B, bytes_max: usize) -> Result<Bytes, Error>
where
    B: http_body::Body,
    B::Data: Buf,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::too_large(bytes_max)),
        Err(error) => Err(match error.downcast_ref::<BodyError>() {
            Some(BodyError::TooLarge { max }) => {
                Error::too_large(usize::try_from(*max).unwrap_or(usize::MAX))
            }
            Some(slow @ BodyError::TooSlow) => Error::new(Reason::RequestTimeout, slow.to_string()),
            Some(BodyError::Broken(_)) | None => {
                Error::bad_request("the body of the request ended too early")
            }
        }),
    }
}

/// The content type of a request, without its parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim()
}

/// How the body of a write that is no patch is written.
fn media_of(headers: &HeaderMap) -> Result<Media, Error> {
    match content_type(headers) {
        "" | "application/json" => Ok(Media::Json),
        "application/yaml" | "application/x-yaml" | "text/yaml" => Ok(Media::Yaml),
        _ => Err(Error::unsupported_media(&["application/json", "application/yaml"])),
    }
}

/// Reads the body of a write that is no patch, as its content type says.
pub(crate) fn read_sent(headers: &HeaderMap, bytes: &[u8]) -> Result<Document, Error> {
    if content_type(headers) == protobuf::CONTENT_TYPE {
        return Ok(Document { value: protobuf::read(bytes)?, duplicates: Vec::new() });
    }
    read(bytes, media_of(headers)?)
}

/// Reads a document.
pub(crate) fn read(bytes: &[u8], media: Media) -> Result<Document, Error> {
    let duplicates = RefCell::default();
    let tree = Tree { place: &Place::Root, duplicates: &duplicates };
    let value = match media {
        Media::Json => {
            let mut reader = serde_json::Deserializer::from_slice(bytes);
            let read = tree.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
            read.map_err(|error| Error::bad_request(format!("the body is not JSON: {error}")))?
        }
        Media::Yaml => {
            let read =
                serde_saphyr::with_deserializer_from_slice_with_options(bytes, yaml_options(), |reader| {
                    tree.deserialize(reader)
                });
            // Without the snippet: it would repeat what may be a secret.
            let text = |error: serde_saphyr::Error| error.without_snippet().to_string();
            read.map_err(|error| Error::bad_request(format!("the body is not YAML: {}", text(error))))?
        }
    };
    Ok(Document { value, duplicates: duplicates.into_inner() })
}

fn yaml_options() -> serde_saphyr::Options {
    let mut options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    options.alias_limits.max_total_replayed_events = YAML_EVENTS_MAX / 10;
    if let Some(budget) = &mut options.budget {
        budget.max_events = YAML_EVENTS_MAX;
        budget.max_depth = concert_model::object::DEPTH_MAX;
    }
    options
}

/// Where in the document, as a list of borrowed steps: printed only when something is wrong.
enum Place<'a> {
    Root,
    Field(&'a Place<'a>, &'a str),
    Element(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Field(Place::Root, name) => f.write_str(name),
            Place::Field(parent, name) => write!(f, "{parent}.{name}"),
            Place::Element(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Reads any JSON value and remembers fields that were given twice.
struct Tree<'a> {
    place: &'a Place<'a>,
    duplicates: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = serde_json::Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("numbers must be finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let place = Place::Element(self.place, items.len());
            match access.next_element_seed(Tree { place: &place, duplicates: self.duplicates })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let place = Place::Field(self.place, &name);
            if fields.contains_key(&name) {
                let mut duplicates = self.duplicates.borrow_mut();
                if duplicates.len() >= DUPLICATES_MAX {
                    return Err(A::Error::custom("too many fields are given twice"));
                }
                duplicates.push(place.to_string());
            }
            let value = access.next_value_seed(Tree { place: &place, duplicates: self.duplicates })?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_given_twice_are_named_and_the_last_one_counts() {
        let json = br#"{"a":1,"b":[{"c":1,"c":2}],"a":{"d":1,"d":1}}"#;
        let document = read(json, Media::Json).unwrap();
        assert_eq!(document.value, json!({"a": {"d": 1}, "b": [{"c": 2}]}));
        assert_eq!(document.duplicates, ["b[0].c", "a", "a.d"]);
        let document = read(b"a: 1\nb:\n- c: 1\n  c: 2\na: 3\n", Media::Yaml).unwrap();
        assert_eq!(document.value, json!({"a": 3, "b": [{"c": 2}]}));
        assert_eq!(document.duplicates, ["b[0].c", "a"]);
    }

    #[test]
    fn numbers_and_texts_survive() {
        let json = br#"{"i":9223372036854775807,"u":18446744073709551615,"f":1.5,"t":"\u00e4","n":null}"#;
        let expected = json!({"i": i64::MAX, "u": u64::MAX, "f": 1.5, "t": "ä", "n": null});
        assert_eq!(read(json, Media::Json).unwrap().value, expected);
        let yaml = "i: 9223372036854775807\nf: 1.5\nt: ä\nn: null\nq: \"1\"\nb: true\n";
        let expected = json!({"i": i64::MAX, "f": 1.5, "t": "ä", "n": null, "q": "1", "b": true});
        assert_eq!(read(yaml.as_bytes(), Media::Yaml).unwrap().value, expected);
    }

    #[test]
    fn hostile_documents_are_refused() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
        for bad in ["", "{", "{}x", "nul", &deep, "\u{0}"] {
            assert!(read(bad.as_bytes(), Media::Json).is_err(), "{bad:.10}");
        }
        for bad in ["a: [", "{}: {", "a: .nan", &deep, laughs, "a: 1\n---\nb: 2\n"] {
            assert!(read(bad.as_bytes(), Media::Yaml).is_err(), "{bad:.10}");
        }
        assert!(read(b"\xff", Media::Json).is_err());
        assert!(read(b"\xff", Media::Yaml).is_err());
    }
}
