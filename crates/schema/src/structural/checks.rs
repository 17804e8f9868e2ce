//! Value validations: the part of a schema that narrows values without giving them a shape.
//!
//! A node of the tree has them, and so has each branch of `allOf`, `anyOf`, `oneOf` and `not`. They
//! are grouped by what they apply to, and boxed, because most nodes have none.

use std::collections::BTreeMap;

use serde_json::Value;

use super::format::Format;
use super::number::Num;
use super::pattern::Pattern;
use super::schema::Type;

/// What a value must satisfy.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    pub(super) values: Option<Box<[Value]>>,
    pub(super) text: Option<Box<TextChecks>>,
    pub(super) number: Option<Box<NumberChecks>>,
    pub(super) items: Range,
    pub(super) properties: Range,
    pub(super) required: Box<[String]>,
    pub(super) branches: Option<Box<Branches>>,
}

/// How many there may be of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

/// For strings. The length counts characters.
#[derive(Clone, Debug, Default)]
pub(super) struct TextChecks {
    pub(super) length: Range,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<Format>,
}

/// For integers and other numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberChecks {
    pub(super) minimum: Option<Bound>,
    pub(super) maximum: Option<Bound>,
    pub(super) multiple_of: Option<Num>,
    pub(super) format: Option<Format>,
}

/// One end of an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) limit: Num,
    pub(super) exclusive: bool,
}

/// The logical junctors.
#[derive(Clone, Debug, Default)]
pub(super) struct Branches {
    pub(super) all_of: Vec<Branch>,
    pub(super) any_of: Vec<Branch>,
    pub(super) one_of: Vec<Branch>,
    pub(super) not: Option<Branch>,
}

/// One branch: checks for the value and for what is in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    pub(super) checks: Checks,
    /// Only in the int-or-string pattern; a branch has no type otherwise.
    pub(super) kind: Option<Type>,
    pub(super) properties: BTreeMap<String, Branch>,
    pub(super) items: Option<Box<Branch>>,
}
