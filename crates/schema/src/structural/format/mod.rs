//! Formats: what `format` adds to a type.
//!
//! The names are those Kubernetes checks; any other is ignored, as there, so that a schema may use a
//! format only its tools know. Hyphens in names of text formats do not matter: `date-time` is `datetime`.

mod code;
mod network;
mod quantity;
mod time;

use super::number::Num;
use super::schema::Type;

/// A format that is checked.
#[derive(Clone, Debug)]
pub(super) enum Format {
    /// The name as written, and whether a text has the format.
    Text(Box<str>, fn(&str) -> bool),
    Int32,
    Int64,
    Float,
}

impl Format {
    /// The format `name` of values of type `kind`; none when it is not checked.
    pub(super) fn new(kind: Option<Type>, name: &str) -> Option<Self> {
        match (kind, name) {
            (None | Some(Type::String), _) => {
                let accepts = text_format(&name.replace('-', ""))?;
                Some(Format::Text(name.into(), accepts))
            }
            (Some(Type::Integer), "int32") => Some(Format::Int32),
            (Some(Type::Integer), "int64") => Some(Format::Int64),
            (Some(Type::Number), "float") => Some(Format::Float),
            _ => None,
        }
    }

    /// The name as written.
    pub(super) fn name(&self) -> &str {
        match self {
            Format::Text(name, _) => name,
            Format::Int32 => "int32",
            Format::Int64 => "int64",
            Format::Float => "float",
        }
    }

    /// Formats of numbers have nothing against a text.
    pub(super) fn accepts_text(&self, text: &str) -> bool {
        match self {
            Format::Text(_, accepts) => accepts(text),
            Format::Int32 | Format::Int64 | Format::Float => true,
        }
    }

    /// Formats of texts have nothing against a number.
    pub(super) fn accepts_number(&self, number: Num) -> bool {
        match self {
            Format::Text(..) => true,
            Format::Int32 => is_between(number, i32::MIN.into(), i32::MAX.into()),
            Format::Int64 => is_between(number, i64::MIN.into(), i64::MAX.into()),
            Format::Float => number.as_f64().abs() <= f32::MAX.into(),
        }
    }
}

fn is_between(number: Num, low: i128, high: i128) -> bool {
    number >= Num::Integer(low) && number <= Num::Integer(high)
}

fn text_format(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name {
        "bsonobjectid" => code::is_bson_object_id,
        "byte" => code::is_base64,
        "cidr" => network::is_cidr,
        "creditcard" => code::is_credit_card,
        "date" => time::is_date,
        "datetime" => time::is_date_time,
        "duration" => time::is_duration,
        "email" => network::is_email,
        "hexcolor" => code::is_hex_color,
        "hostname" => network::is_hostname,
        "ipv4" => network::is_ipv4,
        "ipv6" => network::is_ipv6,
        "isbn" => code::is_isbn,
        "isbn10" => code::is_isbn10,
        "isbn13" => code::is_isbn13,
        "k8sshortname" => network::is_short_name,
        "k8slongname" => network::is_long_name,
        "mac" => network::is_mac,
        "quantity" => quantity::is_quantity,
        "rgbcolor" => code::is_rgb_color,
        "ssn" => code::is_ssn,
        "uri" => network::is_uri,
        "uuid" => code::is_uuid,
        "uuid3" => code::is_uuid3,
        "uuid4" => code::is_uuid4,
        "uuid5" => code::is_uuid5,
        // `password` is a hint for user interfaces: any text will do.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(number: i128) -> Num {
        Num::Integer(number)
    }

    #[test]
    fn integers_fit_their_width() {
        let int32 = Format::new(Some(Type::Integer), "int32").unwrap();
        assert!(int32.accepts_number(int(i32::MAX.into())));
        assert!(!int32.accepts_number(int(i128::from(i32::MAX) + 1)));
        assert!(!int32.accepts_number(int(i128::from(i32::MIN) - 1)));
        let int64 = Format::new(Some(Type::Integer), "int64").unwrap();
        assert!(int64.accepts_number(int(i64::MAX.into())));
        assert!(!int64.accepts_number(int(i128::from(i64::MAX) + 1)));
    }

    #[test]
    fn a_float_is_of_single_precision() {
        let float = Format::new(Some(Type::Number), "float").unwrap();
        assert!(float.accepts_number(Num::Float(1.5)));
        assert!(!float.accepts_number(Num::Float(1e39)));
        assert!(Format::new(Some(Type::Number), "double").is_none());
    }

    #[test]
    fn unknown_formats_and_those_of_other_types_are_ignored() {
        assert!(Format::new(Some(Type::String), "barcode").is_none());
        assert!(Format::new(Some(Type::String), "int32").is_none());
        assert!(Format::new(Some(Type::Integer), "date").is_none());
        assert!(Format::new(Some(Type::Object), "date").is_none());
    }

    #[test]
    fn hyphens_do_not_matter() {
        assert!(Format::new(Some(Type::String), "datetime").is_some());
        assert_eq!(Format::new(None, "date-time").unwrap().name(), "date-time");
    }
}
