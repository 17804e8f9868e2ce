//! What is wrong with which field.
//!
//! Texts are those a Kubernetes user knows: `spec.replicas: Invalid value: 0: must be at least 1`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A place inside an object, printed as Kubernetes does: `spec.rules[0].hosts[a.b]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FieldPath(String);

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path from its printed form.
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// The member `name` of the object at this path.
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// The element `index` of the list at this path.
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The entry `key` of the map at this path: for keys that are data, not field names.
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// True for the object itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The printed form; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

/// Which rule a field broke. The names are the `reason`s of Kubernetes' status causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rule {
    /// The field must be there.
    #[serde(rename = "FieldValueRequired")]
    Required,
    /// The value is malformed.
    #[serde(rename = "FieldValueInvalid")]
    Invalid,
    /// The value has the wrong JSON type.
    #[serde(rename = "FieldValueTypeInvalid")]
    Type,
    /// The value is none of a fixed set.
    #[serde(rename = "FieldValueNotSupported")]
    NotSupported,
    /// The value must be unique and is not.
    #[serde(rename = "FieldValueDuplicate")]
    Duplicate,
    /// The field may not be set, or not by this caller.
    #[serde(rename = "FieldValueForbidden")]
    Forbidden,
    /// The text is too long.
    #[serde(rename = "FieldValueTooLong")]
    TooLong,
    /// The list or map has too many entries.
    #[serde(rename = "FieldValueTooMany")]
    TooMany,
    /// The field names something that is not there.
    #[serde(rename = "FieldValueNotFound")]
    NotFound,
}

impl Rule {
    fn text(self) -> &'static str {
        match self {
            Rule::Required => "Required value",
            Rule::Invalid | Rule::Type => "Invalid value",
            Rule::NotSupported => "Unsupported value",
            Rule::Duplicate => "Duplicate value",
            Rule::Forbidden => "Forbidden",
            Rule::TooLong => "Too long",
            Rule::TooMany => "Too many",
            Rule::NotFound => "Not found",
        }
    }
}

/// One field, one broken rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldError {
    /// Where.
    pub field: FieldPath,
    /// Which rule.
    pub rule: Rule,
    /// The offending value as shown to the user; none where it would say nothing (required,
    /// forbidden, too long) or must not be repeated.
    pub value: Option<String>,
    /// What the rule asks for.
    pub detail: String,
}

/// Longest rendering of an offending value, in characters: an error must not echo a megabyte.
const VALUE_CHARS_MAX: usize = 256;

impl FieldError {
    /// `field` must be there.
    pub fn required(field: FieldPath, detail: impl Into<String>) -> Self {
        Self { field, rule: Rule::Required, value: None, detail: detail.into() }
    }

    /// `field` may not be set or changed.
    pub fn forbidden(field: FieldPath, detail: impl Into<String>) -> Self {
        Self { field, rule: Rule::Forbidden, value: None, detail: detail.into() }
    }

    /// The value of `field` breaks `rule`.
    pub fn new(field: FieldPath, rule: Rule, value: &Value, detail: impl Into<String>) -> Self {
        Self { field, rule, value: Some(shown(value)), detail: detail.into() }
    }

    /// The value of `field` is malformed.
    pub fn invalid(field: FieldPath, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(field, Rule::Invalid, value, detail)
    }

    /// The text of `field` is malformed.
    pub fn invalid_text(field: FieldPath, value: &str, detail: impl Into<String>) -> Self {
        Self::invalid(field, &Value::from(value), detail)
    }

    /// `field` holds more than `bytes_max` bytes of text.
    pub fn too_long(field: FieldPath, bytes_max: usize) -> Self {
        let detail = format!("may not be more than {bytes_max} bytes");
        Self { field, rule: Rule::TooLong, value: None, detail }
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Array(_) => "[list]".to_owned(),
        Value::Object(_) => "{map}".to_owned(),
        other => other.to_string(),
    };
    if text.chars().count() <= VALUE_CHARS_MAX {
        return text;
    }
    text.chars().take(VALUE_CHARS_MAX).chain("…".chars()).collect()
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.rule.text())?;
        if let Some(value) = &self.value {
            write!(f, ": {value}")?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl std::error::Error for FieldError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_like_kubernetes() {
        let field = FieldPath::root().child("spec").child("ports").index(2).child("port");
        let error = FieldError::invalid(field, &Value::from(0), "must be at least 1");
        assert_eq!(error.to_string(), "spec.ports[2].port: Invalid value: 0: must be at least 1");
        let error = FieldError::required(FieldPath::new("spec.size"), "");
        assert_eq!(error.to_string(), "spec.size: Required value");
    }

    #[test]
    fn never_echoes_a_megabyte() {
        let error = FieldError::invalid_text(FieldPath::new("spec"), &"x".repeat(1 << 20), "too big");
        assert!(error.to_string().len() < 400);
    }
}
