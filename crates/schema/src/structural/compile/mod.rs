//! Reading a schema and refusing what is not structural.
//!
//! Everything that is wrong is reported at once, against the place in the schema where it is wrong
//! (`properties[spec].type`). The work is bounded: by the depth of the schema, by its number of nodes,
//! by its number of different patterns and the size of each, by what its defaults come to, and by what
//! its rules are estimated to cost.

mod branch;
mod checks;
mod defaults;
mod keywords;
mod lists;
mod node;
mod resource;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use concert_model::field::{FieldError, FieldPath};
use serde_json::Value;

use super::path::Path;
use super::pattern::Pattern;
use super::schema::Schema;
use super::validate::ERRORS_MAX;
use crate::cel;

/// Deepest nesting of schemas. Our parser reads JSON 128 levels deep, and a field within a field takes
/// two of them, so of fields no text holds more; only lists of lists could go deeper.
pub const SCHEMA_DEPTH_MAX: usize = 64;

/// Most schemas within one schema. With name and type a node takes about thirty bytes of text, so this
/// is about what fits into the 1.5 MB that Kubernetes stores of one object.
pub const SCHEMA_NODES_MAX: usize = 50_000;

/// Most different patterns within one schema: each takes up to a megabyte.
pub const SCHEMA_PATTERNS_MAX: usize = 1_000;

/// Most values that the defaults of one node come to: every object that leaves them out gets them all.
pub const SCHEMA_DEFAULTS_MAX: usize = 1_000;

impl Schema {
    /// Compiles the `openAPIV3Schema` of a CustomResourceDefinition.
    ///
    /// # Errors
    /// Everything that makes it no structural schema, or too large, at most [`ERRORS_MAX`] things.
    pub fn compile(source: &Value) -> Result<Self, Vec<FieldError>> {
        Self::compile_at(&FieldPath::root(), source)
    }

    /// As [`Schema::compile`], for a schema that is found at `path`.
    ///
    /// # Errors
    /// As for [`Schema::compile`].
    pub fn compile_at(path: &FieldPath, source: &Value) -> Result<Self, Vec<FieldError>> {
        let path = Path::Root(path);
        let mut compiler = Compiler::default();
        let schema = compiler.node(source, node::Level::Root, &path);
        match schema {
            Some(mut schema) if compiler.errors.is_empty() => {
                defaults::check(&schema, &path, &mut compiler);
                cel::admit(&mut schema, &path).into_iter().for_each(|error| compiler.add(error));
                if compiler.errors.is_empty() { Ok(schema) } else { Err(compiler.errors) }
            }
            _ => Err(compiler.errors),
        }
    }
}

/// What is known across the nodes of one schema.
#[derive(Default)]
struct Compiler {
    errors: Vec<FieldError>,
    nodes: usize,
    depth: usize,
    /// Patterns repeat a lot, and compiled ones are shared.
    patterns: HashMap<String, Pattern>,
}

impl Compiler {
    fn add(&mut self, error: FieldError) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        }
    }

    fn forbid(&mut self, path: &Path<'_>, why: impl Into<String>) {
        self.add(FieldError::forbidden(path.field(), why));
    }

    fn require(&mut self, path: &Path<'_>, why: impl Into<String>) {
        self.add(FieldError::required(path.field(), why));
    }

    fn invalid(&mut self, path: &Path<'_>, value: &Value, why: impl Into<String>) {
        self.add(FieldError::invalid(path.field(), value, why));
    }

    /// Runs `read` one level deeper; none when that is too deep or the schema too large.
    fn enter<T>(&mut self, path: &Path<'_>, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.nodes += 1;
        if self.nodes > SCHEMA_NODES_MAX {
            // Said once, where the limit is passed; every further node is one too many as well.
            if self.nodes == SCHEMA_NODES_MAX + 1 {
                self.forbid(path, format!("a schema may not have more than {SCHEMA_NODES_MAX} nodes"));
            }
            return None;
        }
        if self.depth == SCHEMA_DEPTH_MAX {
            self.forbid(path, format!("a schema may not be nested deeper than {SCHEMA_DEPTH_MAX} levels"));
            return None;
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}
