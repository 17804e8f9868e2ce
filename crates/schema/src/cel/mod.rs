//! CEL rules: `x-kubernetes-validations`.
//!
//! A rule is read, checked against its schema and its cost estimated when the schema is compiled; a rule
//! that could cost too much on the largest object its schema allows is refused there. While it runs every
//! step is paid from a budget, so that no estimate needs to be trusted.
//!
//! The evaluator is our own, because that is the only way to count: crates we know neither stop a running
//! expression nor tell its cost, and copy every list they select. It knows the language and the common
//! functions; a rule that uses another function is refused by name, not accepted and ignored.

mod admit;
mod arithmetic;
mod ast;
mod check;
mod estimate;
mod eval;
mod expression;
mod functions;
mod lex;
mod net;
mod parse;
mod quantity;
mod semver;
mod span;
#[cfg(test)]
mod tests;
mod texts;
mod value;

use std::sync::Arc;

pub(crate) use admit::admit;
pub use expression::Expression;

/// Highest estimated cost of one rule, times how often it runs. Kubernetes' own bound, as the next three.
const RULE_COST_MAX: u64 = 10_000_000;

/// Highest estimated cost of all rules of a schema together.
const SCHEMA_COST_MAX: u64 = 100_000_000;

/// What one run of one rule may spend.
const RUN_BUDGET: u64 = 1_000_000;

/// What all rules may spend on one object.
const OBJECT_BUDGET: u64 = 10_000_000;

/// What is known about a node of a schema for its rules and those around it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    programs: Vec<Arc<Program>>,
    /// The node or one below it has rules.
    has_rules: bool,
    /// Most steps it takes to look at everything in a value.
    weight: u64,
    /// Fewest bytes that a value takes.
    bytes_min: u64,
}

/// A rule, ready to run.
#[derive(Debug)]
struct Program {
    rule: ast::Node,
    message: Option<ast::Node>,
    uses_old: bool,
    /// The field to blame, below the node.
    field: Vec<String>,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    /// It cost too much.
    Budget,
    Error(String),
}

impl Fault {
    fn error(text: impl Into<String>) -> Self {
        Fault::Error(text.into())
    }

    fn overload() -> Self {
        Fault::error("no such overload")
    }

    fn overflow() -> Self {
        Fault::error("overflow")
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Budget => f.write_str("call cost exceeds limit"),
            Fault::Error(text) => f.write_str(text),
        }
    }
}
