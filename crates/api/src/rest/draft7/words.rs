//! Mistakes in the words of the `jsonschema` library of Python.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::LocationSegment;
use serde_json::Value;

use super::python::repr;

/// Longest message: a spec may be a megabyte, and need not come back.
const MESSAGE_BYTES_MAX: usize = 2_048;

/// Where, and what.
pub(super) fn placed(spec: &Value, error: &ValidationError<'_>) -> (String, String) {
    let segments = error.instance_path().segments().map(|segment| match segment {
        LocationSegment::Property(name) => name.to_string(),
        LocationSegment::Index(index) => index.to_string(),
    });
    let place = segments.collect::<Vec<_>>().join(".");
    let message = closed(spec, error).unwrap_or_else(|| mistake(error));
    (if place.is_empty() { "(root)".into() } else { place }, message)
}

/// An object that may have no fields at all, which the library sees as a schema that allows nothing.
fn closed(spec: &Value, error: &ValidationError<'_>) -> Option<String> {
    let is_closed = matches!(error.kind(), Kind::FalseSchema)
        && error.schema_path().as_str().ends_with("/additionalProperties");
    let fields = spec.pointer(error.instance_path().as_str())?.as_object().filter(|_| is_closed)?;
    Some(unexpected(&fields.keys().cloned().collect::<Vec<_>>()))
}

fn unexpected(names: &[String]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    let verb = if names.len() == 1 { "was" } else { "were" };
    let names: Vec<String> = names.into_iter().map(|name| repr(&Value::String(name))).collect();
    format!("Additional properties are not allowed ({} {verb} unexpected)", names.join(", "))
}

/// What is wrong.
pub(super) fn mistake(error: &ValidationError<'_>) -> String {
    let message = words(error);
    if message.len() <= MESSAGE_BYTES_MAX {
        return message;
    }
    format!("{}...", &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)])
}

fn words(error: &ValidationError<'_>) -> String {
    let value = || repr(error.instance());
    match error.kind() {
        Kind::Required { property } => format!("{} is a required property", repr(property)),
        Kind::Type { kind } => format!("{} is not of type {}", value(), types(kind)),
        Kind::Enum { options } => format!("{} is not one of {}", value(), repr(options)),
        Kind::Constant { expected_value } => format!("{} was expected", repr(expected_value)),
        Kind::Minimum { limit } => format!("{} is less than the minimum of {}", value(), repr(limit)),
        Kind::Maximum { limit } => format!("{} is greater than the maximum of {}", value(), repr(limit)),
        Kind::ExclusiveMinimum { limit } => {
            format!("{} is less than or equal to the minimum of {}", value(), repr(limit))
        }
        Kind::ExclusiveMaximum { limit } => {
            format!("{} is greater than or equal to the maximum of {}", value(), repr(limit))
        }
        Kind::MultipleOf { multiple_of } => format!("{} is not a multiple of {multiple_of}", value()),
        Kind::Pattern { pattern } => {
            format!("{} does not match {}", value(), repr(&Value::String(pattern.clone())))
        }
        Kind::Format { format } => format!("{} is not a {}", value(), repr(&Value::String(format.clone()))),
        Kind::MinLength { limit: 1 } | Kind::MinItems { limit: 1 } | Kind::MinProperties { limit: 1 } => {
            format!("{} should be non-empty", value())
        }
        Kind::MaxLength { limit: 0 } | Kind::MaxItems { limit: 0 } | Kind::MaxProperties { limit: 0 } => {
            format!("{} is expected to be empty", value())
        }
        Kind::MinLength { .. } | Kind::MinItems { .. } => format!("{} is too short", value()),
        Kind::MaxLength { .. } | Kind::MaxItems { .. } => format!("{} is too long", value()),
        Kind::MinProperties { .. } => format!("{} does not have enough properties", value()),
        Kind::MaxProperties { .. } => format!("{} has too many properties", value()),
        Kind::UniqueItems => format!("{} has non-unique elements", value()),
        Kind::AdditionalProperties { unexpected: names } => unexpected(names),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            format!("{} is not valid under any of the given schemas", value())
        }
        Kind::OneOfMultipleValid { .. } => format!("{} is valid under more than one of the schemas", value()),
        Kind::Not { schema } => format!("{} should not be valid under {}", value(), repr(schema)),
        Kind::Contains => format!("{} does not contain items matching the given schema", value()),
        Kind::FalseSchema => format!("False schema does not allow {}", value()),
        Kind::PropertyNames { error } => words(error),
        _ => error.to_string(),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => format!("'{one}'"),
        TypeKind::Multiple(all) => all.iter().map(|one| format!("'{one}'")).collect::<Vec<_>>().join(", "),
    }
}
