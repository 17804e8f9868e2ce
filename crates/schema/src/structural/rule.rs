//! CEL rules as they stand in a schema: `x-kubernetes-validations`.
//!
//! They are read and checked for form with their node. When the schema is whole their expressions are
//! compiled; [`super::Schema::check_rules`] runs them.

use std::fmt;

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationRule {
    /// The expression that must hold; `self` is the value at the node.
    pub rule: String,
    /// What to say when it does not.
    pub message: Option<String>,
    /// An expression that says it; wins over `message`.
    pub message_expression: Option<String>,
    /// The rule reported as broken.
    pub reason: Reason,
    /// The field to blame, relative to the node.
    pub field_path: Option<String>,
    /// True when the rule also runs without an old value.
    pub optional_old_self: Option<bool>,
}

/// What a broken CEL rule is reported as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The value is malformed.
    #[default]
    Invalid,
    /// The field may not be set or changed.
    Forbidden,
    /// The field must be there.
    Required,
    /// The value must be unique.
    Duplicate,
}

impl Reason {
    pub(super) const ALL: [Reason; 4] =
        [Reason::Duplicate, Reason::Forbidden, Reason::Invalid, Reason::Required];

    /// The name in schemas and status causes.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Invalid => "FieldValueInvalid",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::Required => "FieldValueRequired",
            Reason::Duplicate => "FieldValueDuplicate",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
