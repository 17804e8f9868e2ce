//! Compiling the rules of a schema, and refusing what is wrong or too expensive.

use std::sync::Arc;

use concert_model::field::FieldError;
use serde_json::Value;

use super::ast::Node;
use super::estimate::{Estimate, Kind, Shape, size_of};
use super::{Fault, Program, RULE_COST_MAX, SCHEMA_COST_MAX, parse};
use crate::columns::JsonPath;
use crate::structural::path::Path;
use crate::structural::{ERRORS_MAX, ListType, SCHEMA_PATTERNS_MAX, Schema, Type, ValidationRule};

const HINT: &str = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, \
                    maps, and strings are declared)";

/// Compiles every rule in `schema`, and says what is wrong with which.
pub(crate) fn admit(schema: &mut Schema, path: &Path<'_>) -> Vec<FieldError> {
    measure(schema);
    let mut admission = Admission { cost: 0, patterns: 0, errors: Vec::new() };
    if schema.facts.has_rules {
        admission.node(schema, path, Around { times: 1, is_correlatable: true });
    }
    if admission.cost > SCHEMA_COST_MAX {
        let factor = factor(admission.cost, SCHEMA_COST_MAX);
        let why = format!(
            "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by \
             factor of {factor} {HINT}"
        );
        admission.errors.push(FieldError::forbidden(path.field(), why));
    }
    admission.errors
}

/// Notes how large values may and must be, from the leaves up.
fn measure(schema: &mut Schema) {
    let mut has_rules = !schema.rules().is_empty();
    let (properties, each, items) = schema.parts_mut();
    for below in properties.values_mut().chain(each).chain(items) {
        measure(below);
        has_rules |= below.facts.has_rules;
    }
    schema.facts.has_rules = has_rules;
    schema.facts.bytes_min = bytes_min(schema);
    schema.facts.weight = weight(schema);
}

fn bytes_min(schema: &Schema) -> u64 {
    match schema.kind() {
        Some(Type::String | Type::Array) => 2,
        Some(Type::Boolean) => 4,
        Some(Type::Integer | Type::Number) | None => 1,
        Some(Type::Object) => {
            // Quotes, colon and comma around each.
            let field = |name: &String| {
                name.len() as u64 + 4 + schema.property(name).map_or(1, |property| property.facts.bytes_min)
            };
            schema.required().iter().map(field).fold(2, u64::saturating_add)
        }
    }
}

fn weight(schema: &Schema) -> u64 {
    let size = size_of(schema);
    match schema.kind() {
        Some(Type::String) => size / 10 + 1,
        Some(Type::Array) => {
            let items = schema.items().map_or(1, |items| items.facts.weight);
            size.saturating_mul(items).saturating_add(1)
        }
        Some(Type::Object) => match schema.each() {
            Some(each) => size.saturating_mul(each.facts.weight).saturating_add(1),
            None => {
                let fields = schema.properties().map(|(_, property)| property.facts.weight);
                fields.fold(1, u64::saturating_add)
            }
        },
        Some(Type::Integer | Type::Number | Type::Boolean) => 1,
        None => size,
    }
}

struct Admission {
    cost: u64,
    patterns: usize,
    errors: Vec<FieldError>,
}

/// What a rule depends on besides its own node.
#[derive(Clone, Copy)]
struct Around {
    /// How often the rule runs at most.
    times: u64,
    /// An old value can be found for every new one.
    is_correlatable: bool,
}

impl Admission {
    fn node(&mut self, schema: &mut Schema, path: &Path<'_>, around: Around) {
        if !schema.facts.has_rules {
            return;
        }
        let programs = self.programs(schema, path, around);
        schema.facts.programs = programs;
        let times = around.times.saturating_mul(size_of(schema));
        let is_by_key = schema.list_type() == ListType::Map;
        let (properties, each, items) = schema.parts_mut();
        let place = path.child("properties");
        for (name, property) in properties {
            self.node(property, &place.key(name), around);
        }
        if let Some(each) = each {
            self.node(each, &path.child("additionalProperties"), Around { times, ..around });
        }
        if let Some(items) = items {
            let is_correlatable = around.is_correlatable && is_by_key;
            self.node(items, &path.child("items"), Around { times, is_correlatable });
        }
    }

    fn programs(&mut self, schema: &Schema, path: &Path<'_>, around: Around) -> Vec<Arc<Program>> {
        let place = path.child("x-kubernetes-validations");
        let mut programs = Vec::with_capacity(schema.rules().len());
        for (index, rule) in schema.rules().iter().enumerate() {
            if self.errors.len() >= ERRORS_MAX || self.patterns > SCHEMA_PATTERNS_MAX {
                break;
            }
            programs.extend(self.program(rule, schema, &place.index(index), around).map(Arc::new));
        }
        programs
    }

    fn program(
        &mut self,
        rule: &ValidationRule,
        schema: &Schema,
        path: &Path<'_>,
        around: Around,
    ) -> Option<Program> {
        let expression =
            self.expression(rule, &rule.rule, schema, &path.child("rule"), around.times, false)?;
        let message = match &rule.message_expression {
            None => None,
            Some(text) => {
                let place = path.child("messageExpression");
                Some(self.expression(rule, text, schema, &place, around.times, true)?)
            }
        };
        let field = self.field(rule, schema, path)?;
        let uses_old = expression.mentions("oldSelf");
        let program = Program { rule: expression, message, uses_old, field };
        self.check_old(rule, &program, path, around);
        Some(program)
    }

    /// Reads an expression and checks its type and cost.
    fn expression(
        &mut self,
        rule: &ValidationRule,
        source: &str,
        schema: &Schema,
        path: &Path<'_>,
        times: u64,
        is_message: bool,
    ) -> Option<Node> {
        let priced = parse::parse(source).and_then(|node| {
            let cost = cost(&node, rule, schema, is_message)?;
            Ok((node, cost))
        });
        match priced {
            Ok((node, cost)) => {
                self.keep(&node, path);
                self.pay(cost.saturating_mul(times), path);
                Some(node)
            }
            Err(fault) => {
                let why = match fault {
                    Fault::Error(text) => format!("compilation failed: {text}"),
                    Fault::Budget => "compilation failed".to_owned(),
                };
                self.errors.push(FieldError::invalid(path.field(), &Value::from(source), why));
                None
            }
        }
    }

    /// Compiled patterns take memory for as long as the schema lives.
    fn keep(&mut self, node: &Node, path: &Path<'_>) {
        self.patterns += node.patterns();
        if self.patterns > SCHEMA_PATTERNS_MAX {
            let why = format!("rules may not have more than {SCHEMA_PATTERNS_MAX} patterns");
            self.errors.push(FieldError::forbidden(path.field(), why));
        }
    }

    fn pay(&mut self, cost: u64, path: &Path<'_>) {
        self.cost = self.cost.saturating_add(cost);
        if cost > RULE_COST_MAX {
            let factor = factor(cost, RULE_COST_MAX);
            let why = format!("estimated rule cost exceeds budget by factor of {factor} {HINT}");
            self.errors.push(FieldError::forbidden(path.field(), why));
        }
    }

    /// The fields that `fieldPath` names, all of which the schema must have.
    fn field(&mut self, rule: &ValidationRule, schema: &Schema, path: &Path<'_>) -> Option<Vec<String>> {
        let Some(source) = &rule.field_path else { return Some(Vec::new()) };
        let parsed = JsonPath::parse(source).ok();
        let names = parsed.as_ref().and_then(JsonPath::fields);
        let mut at = Some(schema);
        for name in names.iter().flatten() {
            at = at.and_then(|schema| schema.property(name));
        }
        if names.is_some() && at.is_some() {
            return names.map(|names| names.into_iter().map(str::to_owned).collect());
        }
        let why = "fieldPath must be a valid path to a field of the schema";
        self.errors.push(FieldError::invalid_text(path.child("fieldPath").field(), source, why));
        None
    }

    fn check_old(&mut self, rule: &ValidationRule, program: &Program, path: &Path<'_>, around: Around) {
        if program.uses_old && !around.is_correlatable {
            let why = "oldSelf cannot be used on the uncorrelatable portion of the schema";
            self.errors.push(FieldError::invalid_text(path.child("rule").field(), &rule.rule, why));
        }
        if rule.optional_old_self.is_some() && !program.uses_old {
            let why = "may not be set if oldSelf is not used in rule";
            let found = Value::from(rule.optional_old_self);
            self.errors.push(FieldError::invalid(path.child("optionalOldSelf").field(), &found, why));
        }
    }
}

/// What running `node` may cost; an error when it is not what it should be.
fn cost(node: &Node, rule: &ValidationRule, schema: &Schema, is_message: bool) -> Result<u64, Fault> {
    let own = Shape::of(schema);
    let old = if rule.optional_old_self == Some(true) { own.clone().maybe() } else { own.clone() };
    let scope = vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)];
    let (shape, cost) = Estimate { scope }.of(node)?;
    match (&shape.kind, is_message) {
        (Kind::Dyn, _) | (Kind::Bool, false) | (Kind::Text, true) => Ok(cost),
        (_, false) => Err(Fault::error("cel expression must evaluate to a bool")),
        (_, true) => Err(Fault::error("must evaluate to a string")),
    }
}

/// As Kubernetes says it: exact up to a hundred.
fn factor(cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    if factor > 100.0 { "more than 100x".to_owned() } else { format!("{factor:.1}x") }
}
