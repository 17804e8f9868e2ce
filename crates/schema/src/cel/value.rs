//! Values while a rule runs.
//!
//! Data of the object is borrowed, never copied: what it is to CEL is decided by its schema when it is
//! read. Only what an expression builds is owned.

use std::net::IpAddr;
use std::rc::Rc;

use concert_model::time::{self, Timestamp};
use serde_json::{Map, Value};

use super::net::Cidr;
use super::quantity::Quantity;
use super::semver::Version;
use super::span;
use crate::structural::{Schema, Type};

#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Time(Timestamp),
    /// A duration, in nanoseconds.
    Span(i64),
    Quantity(Quantity),
    Ip(IpAddr),
    Cidr(Cidr),
    Version(Rc<Version>),
    Type(&'static str),
    List(Rc<Vec<Val<'a>>>),
    /// A list of the object, with the schema of the list.
    Items(&'a [Value], Option<&'a Schema>),
    Map(Rc<Vec<(Val<'a>, Val<'a>)>>),
    /// An object of the object, with its schema.
    Fields(&'a Map<String, Value>, Option<&'a Schema>),
    Maybe(Option<Rc<Val<'a>>>),
}

#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl<'a> Val<'a> {
    pub(super) fn text(text: impl Into<Rc<str>>) -> Self {
        Val::Text(Text::Shared(text.into()))
    }

    pub(super) fn list(list: Vec<Val<'a>>) -> Self {
        Val::List(Rc::new(list))
    }

    pub(super) fn maybe(value: Option<Val<'a>>) -> Self {
        Val::Maybe(value.map(Rc::new))
    }

    /// What `value` is to CEL, given its schema.
    pub(super) fn read(value: &'a Value, schema: Option<&'a Schema>) -> Self {
        let kind = schema.and_then(Schema::kind);
        match value {
            Value::Null => Val::Null,
            Value::Bool(flag) => Val::Bool(*flag),
            Value::Number(number) => {
                let float = number.as_f64().unwrap_or_default();
                match (kind, number.as_i64()) {
                    (Some(Type::Number), _) => Val::Double(float),
                    (_, Some(integer)) => Val::Int(integer),
                    (Some(Type::Integer), None) if float.fract() == 0.0 => Val::Int(float as i64),
                    (_, None) => number.as_u64().map_or(Val::Double(float), Val::Uint),
                }
            }
            Value::String(text) => read_text(text, schema),
            Value::Array(list) => Val::Items(list, schema),
            Value::Object(fields) => Val::Fields(fields, schema),
        }
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::Text(_) => "string",
            Val::Time(_) => "google.protobuf.Timestamp",
            Val::Span(_) => "google.protobuf.Duration",
            Val::Quantity(_) => "kubernetes.Quantity",
            Val::Ip(_) => "net.IP",
            Val::Cidr(_) => "net.CIDR",
            Val::Version(_) => "kubernetes.Semver",
            Val::Type(_) => "type",
            Val::List(_) | Val::Items(..) => "list",
            Val::Map(_) | Val::Fields(..) => "map",
            Val::Maybe(_) => "optional_type",
        }
    }

    /// How many elements, entries or characters there are.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Val::Text(text) => Some(text.as_str().chars().count()),
            Val::List(list) => Some(list.len()),
            Val::Items(list, _) => Some(list.len()),
            Val::Map(entries) => Some(entries.len()),
            Val::Fields(fields, _) => Some(fields.len()),
            _ => None,
        }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Val::List(_) | Val::Items(..))
    }

    /// The element at `index`, where this is a list.
    pub(super) fn element(&self, index: usize) -> Option<Val<'a>> {
        match self {
            Val::List(list) => list.get(index).cloned(),
            Val::Items(list, schema) => {
                list.get(index).map(|value| Val::read(value, schema.and_then(Schema::items)))
            }
            _ => None,
        }
    }

    /// All elements of a list, or all keys of a map: what a macro goes through.
    pub(super) fn range(&self) -> Option<Vec<Val<'a>>> {
        match self {
            Val::List(list) => Some(list.to_vec()),
            Val::Items(list, schema) => {
                let items = schema.and_then(Schema::items);
                Some(list.iter().map(|value| Val::read(value, items)).collect())
            }
            Val::Map(entries) => Some(entries.iter().map(|(key, _)| key.clone()).collect()),
            Val::Fields(fields, _) => Some(fields.keys().map(|key| Val::Text(Text::Borrowed(key))).collect()),
            _ => None,
        }
    }

    /// The entry `name`. Fields that no identifier can name are written in an escaped form.
    pub(super) fn field(&self, name: &str) -> Option<Val<'a>> {
        match self {
            Val::Fields(fields, schema) => {
                let (name, value) = match fields.get_key_value(name) {
                    Some(found) => found,
                    None => fields.get_key_value(&unescaped(name)?)?,
                };
                let schema = schema.and_then(|schema| schema.property(name));
                let is_absent = value.is_null() && !schema.is_some_and(Schema::is_nullable);
                if is_absent { None } else { Some(Val::read(value, schema)) }
            }
            Val::Map(entries) => {
                let is_it = |key: &Val<'_>| matches!(key, Val::Text(text) if text.as_str() == name);
                entries.iter().find(|(key, _)| is_it(key)).map(|(_, value)| value.clone())
            }
            _ => None,
        }
    }
}

fn read_text<'a>(text: &'a str, schema: Option<&Schema>) -> Val<'a> {
    // No time is longer, and every look at it costs the same.
    const TIME_BYTES_MAX: usize = 64;
    let read = match schema.and_then(Schema::text_format) {
        _ if text.len() > TIME_BYTES_MAX => None,
        Some("date-time" | "datetime") => time::parse(text).map(Val::Time),
        Some("date") => time::parse(&format!("{text}T00:00:00Z")).map(Val::Time),
        Some("duration") => span::parse(text).map(Val::Span),
        _ => None,
    };
    read.unwrap_or(Val::Text(Text::Borrowed(text)))
}

/// The field that the escaped `name` stands for; none when it is not escaped.
pub(super) fn unescaped(name: &str) -> Option<String> {
    if !name.contains("__") {
        return None;
    }
    const KEYWORDS: [&str; 19] = [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
    ];
    if let Some(word) = name.strip_prefix("__").and_then(|name| name.strip_suffix("__"))
        && (KEYWORDS.contains(&word) || matches!(word, "void" | "while"))
    {
        return Some(word.to_owned());
    }
    let plain = name.replace("__dot__", ".").replace("__dash__", "-").replace("__slash__", "/");
    Some(plain.replace("__underscores__", "__"))
}
