//! Running the rules of a schema on an object.

use concert_model::field::{FieldError, FieldPath, Rule};
use serde_json::Value;

use super::ast::Node;
use super::eval::Run;
use super::value::Val;
use super::{Fault, OBJECT_BUDGET, Program, RUN_BUDGET};
use crate::structural::earlier::is_unchanged;
use crate::structural::path::Path;
use crate::structural::{ERRORS_MAX, Reason, Schema, Type, ValidationRule};

/// Longest message that an expression may make, in bytes: Kubernetes' own bound.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

impl Schema {
    /// The rules that `new` breaks, at most [`ERRORS_MAX`]; those that compare with before run where
    /// `old` has a value too. The others are not asked of what has stayed as it was: it broke them before
    /// they were made, and who changes something else is not to mend that.
    ///
    /// What it costs is bounded, whatever the rules and the object: when the budget of one rule is spent
    /// the rule counts as broken, when that of the object is, no more rules run and it is refused.
    pub fn check_rules(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut checker = Checker { budget: OBJECT_BUDGET, is_spent: false, errors: Vec::new() };
        if self.facts.has_rules {
            checker.node(self, new, old, &Path::Root(&FieldPath::root()));
        }
        checker.errors
    }
}

struct Checker {
    budget: u64,
    is_spent: bool,
    errors: Vec<FieldError>,
}

impl Checker {
    fn node(&mut self, schema: &Schema, new: &Value, old: Option<&Value>, path: &Path<'_>) {
        if !schema.facts.has_rules || new.is_null() {
            return;
        }
        for (rule, program) in schema.rules().iter().zip(&schema.facts.programs) {
            if self.is_spent || self.errors.len() >= ERRORS_MAX {
                return;
            }
            self.rule(rule, program, schema, new, old, path);
        }
        match new {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(property) = schema.property(name) {
                        let old = old.and_then(|old| old.get(name));
                        self.node(property, value, old, &path.child(name));
                    }
                }
            }
            Value::Array(list) => self.elements(schema, list, old, path),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn elements(&mut self, schema: &Schema, list: &[Value], old: Option<&Value>, path: &Path<'_>) {
        let Some(items) = schema.items().filter(|items| items.facts.has_rules) else { return };
        let olds = schema.earlier_elements(old);
        for (index, element) in list.iter().enumerate() {
            let old = if olds.is_empty() { None } else { olds.get(&schema.element_key(element)).copied() };
            self.node(items, element, old, &path.index(index));
        }
    }

    fn rule(
        &mut self,
        rule: &ValidationRule,
        program: &Program,
        schema: &Schema,
        new: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
    ) {
        let is_optional = rule.optional_old_self == Some(true);
        let old_self = match (program.uses_old, old) {
            (true, None) if !is_optional => return,
            (_, old) if is_optional => Val::maybe(old.map(|old| Val::read(old, Some(schema)))),
            (_, old) => old.map_or(Val::Null, |old| Val::read(old, Some(schema))),
        };
        let scope = vec![("self", Val::read(new, Some(schema))), ("oldSelf", old_self)];
        let place = program.field.iter().fold(path.field(), |path, name| path.child(name));
        match self.run(&program.rule, scope.clone()) {
            Ok(Val::Bool(true)) => {}
            _ if self.budget > 0 && !program.uses_old && is_unchanged(path, old, new) => {}
            Ok(Val::Bool(false)) => {
                let message = self.message(rule, program, scope);
                self.errors.push(broken(rule.reason, place, schema, new, message));
            }
            Ok(_) => self.fail(&Fault::overload(), rule, place, schema, new),
            Err(_) if self.budget == 0 => {
                self.is_spent = true;
                let why = "validation failed due to running out of cost budget, no further validation rules \
                           will be run";
                self.errors.push(broken(Reason::Invalid, place, schema, new, why.to_owned()));
            }
            Err(fault) => self.fail(&fault, rule, place, schema, new),
        }
    }

    fn fail(&mut self, fault: &Fault, rule: &ValidationRule, place: FieldPath, schema: &Schema, new: &Value) {
        let detail = format!("{fault} evaluating rule: {}", said(rule));
        self.errors.push(broken(Reason::Invalid, place, schema, new, detail));
    }

    /// Runs within what is left, and takes what it cost from that.
    fn run<'a>(&mut self, node: &'a Node, scope: Vec<(&'a str, Val<'a>)>) -> Result<Val<'a>, Fault> {
        let granted = self.budget.min(RUN_BUDGET);
        let mut run = Run::new(granted, scope);
        let result = run.eval(node);
        self.budget -= granted - run.budget();
        result
    }

    /// What the rule's own expression says, if it says something that fits a line.
    fn message<'a>(
        &mut self,
        rule: &'a ValidationRule,
        program: &'a Program,
        scope: Vec<(&'a str, Val<'a>)>,
    ) -> String {
        let expression = program.message.as_ref();
        let made = expression.and_then(|node| self.run(node, scope).ok());
        match made {
            Some(Val::Text(text)) => {
                let text = text.as_str().trim();
                let is_fine =
                    !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains(['\n', '\r']);
                if is_fine { text.to_owned() } else { said(rule) }
            }
            _ => said(rule),
        }
    }
}

fn said(rule: &ValidationRule) -> String {
    match &rule.message {
        Some(message) => message.trim().to_owned(),
        None => format!("failed rule: {}", rule.rule.trim()),
    }
}

fn broken(reason: Reason, place: FieldPath, schema: &Schema, value: &Value, detail: String) -> FieldError {
    // Objects and lists say nothing by being shown; their type at least says what was looked at.
    let shown = match value {
        Value::Array(_) | Value::Object(_) => Value::from(schema.kind().map_or("", Type::name)),
        scalar => scalar.clone(),
    };
    match reason {
        Reason::Invalid => FieldError::invalid(place, &shown, detail),
        Reason::Duplicate => FieldError::new(place, Rule::Duplicate, &shown, detail),
        Reason::Forbidden => FieldError::forbidden(place, detail),
        Reason::Required => FieldError::required(place, detail),
    }
}
