//! An expression of its own, with names that whoever runs it gives a meaning.

use std::sync::Arc;

use concert_model::time;
use serde_json::{Map, Number, Value};

use super::ast::Node;
use super::estimate::{Estimate, Shape};
use super::eval::Run;
use super::value::Val;
use super::{Fault, RUN_BUDGET, parse, span};
use crate::structural::Schema;

/// An expression that was read and checked. Cheap to clone.
///
/// ```
/// use concert_schema::Expression;
/// use serde_json::json;
///
/// let version = Expression::compile("'REDIS_' + claim.version.replace('.', '_')", &[("claim", None)])?;
/// assert_eq!(version.run(&[("claim", &json!({"version": "3.2"}))])?, json!("REDIS_3_2"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    source: Arc<str>,
    node: Arc<Node>,
}

impl Expression {
    /// Reads `source`, in which `names` stand for objects, each of its schema where that is known.
    ///
    /// # Errors
    /// In words: bad syntax, a function or a name that there is not, a field that the schema does not have.
    pub fn compile(source: &str, names: &[(&str, Option<&Schema>)]) -> Result<Self, String> {
        let node = parse::parse(source).map_err(|fault| fault.to_string())?;
        let scope = names.iter().map(|(name, schema)| {
            let shape = schema.map_or_else(Shape::unknown, Shape::of_object);
            ((*name).to_owned(), shape)
        });
        Estimate { scope: scope.collect() }.of(&node).map_err(|fault| fault.to_string())?;
        Ok(Self { source: source.into(), node: Arc::new(node) })
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it comes to when the names have these values. What is absent is null.
    ///
    /// # Errors
    /// In words: it asks for a field that is not there, costs too much, or is nothing that JSON can hold.
    pub fn run(&self, values: &[(&str, &Value)]) -> Result<Value, String> {
        let scope = values.iter().map(|(name, value)| (*name, Val::read(value, None))).collect();
        let value = Run::new(RUN_BUDGET, scope).eval(&self.node).and_then(|it| json(&it));
        value.map_err(|fault| fault.to_string())
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

fn json(value: &Val<'_>) -> Result<Value, Fault> {
    Ok(match value {
        Val::Null | Val::Maybe(None) => Value::Null,
        Val::Maybe(Some(inner)) => json(inner)?,
        Val::Bool(flag) => Value::Bool(*flag),
        Val::Int(number) => Value::from(*number),
        Val::Uint(number) => Value::from(*number),
        Val::Double(number) => {
            Value::Number(Number::from_f64(*number).ok_or_else(|| Fault::error("not a number"))?)
        }
        Val::Text(text) => Value::from(text.as_str()),
        Val::Time(at) => Value::from(time::seconds(*at)),
        Val::Span(nanoseconds) => Value::from(span::print(*nanoseconds)),
        Val::Items(items, _) => Value::Array(items.to_vec()),
        Val::Fields(fields, _) => Value::Object((*fields).clone()),
        Val::List(list) => Value::Array(list.iter().map(json).collect::<Result<_, _>>()?),
        Val::Map(entries) => {
            let mut map = Map::new();
            for (key, value) in entries.iter() {
                let Val::Text(key) = key else { return Err(Fault::error("keys of a map must be texts")) };
                map.insert(key.as_str().to_owned(), json(value)?);
            }
            Value::Object(map)
        }
        other => return Err(Fault::error(format!("a {} cannot be stored", other.type_name()))),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(source: &str) -> Result<Value, String> {
        let (claim, class) = (json!({"a": {"b": 1}, "l": [1, "x"], "n": null}), json!({}));
        let names = [("claim", None), ("class", None)];
        Expression::compile(source, &names)?.run(&[("claim", &claim), ("class", &class)])
    }

    #[test]
    fn whatever_json_can_hold_comes_out() {
        for (source, value) in [
            ("claim.a", json!({"b": 1})),
            ("claim.l", json!([1, "x"])),
            ("claim.?nothing", json!(null)),
            ("claim.?a.?b", json!(1)),
            ("has(class.x) ? class.x : 'y'", json!("y")),
            ("{'k': [claim.a.b + 1, 1.5, true]}", json!({"k": [2, 1.5, true]})),
            ("null", json!(null)),
        ] {
            assert_eq!(run(source), Ok(value), "{source}");
        }
        assert_eq!(run("quantity('1')"), Err("a kubernetes.Quantity cannot be stored".into()));
        assert_eq!(run("{1: 2}"), Err("keys of a map must be texts".into()));
    }

    #[test]
    fn what_cannot_be_right_is_refused_when_it_is_read() {
        for (source, why) in [
            ("claim.", "ends too early"),
            ("other.a", "undeclared reference to 'other'"),
            ("claim.a.nonesuch(1)", "nonesuch"),
        ] {
            let error = Expression::compile(source, &[("claim", None)]).unwrap_err();
            assert!(error.contains(why), "{source}: {error}");
        }
    }

    #[test]
    fn fields_are_checked_where_the_schema_is_known() {
        let schema = Schema::compile(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"version": {"type": "string"}}}}}))
        .unwrap();
        let compile = |source: &str| Expression::compile(source, &[("claim", Some(&schema))]);
        assert!(compile("claim.spec.version").is_ok());
        assert!(compile("claim.metadata.namespace + claim.metadata.labels['a']").is_ok());
        assert_eq!(compile("claim.spec.verison").unwrap_err(), "undefined field 'verison'");
    }

    #[test]
    fn an_absent_field_and_a_high_price_are_errors_when_it_runs() {
        assert_eq!(run("claim.nothing"), Err("no such key: nothing".into()));
        let loops = "claim.l.map(a, claim.l.map(b, claim.l.map(c, claim.l)))";
        let deep = (0..18).fold(loops.to_owned(), |inner, _| format!("claim.l.map(x, {inner})"));
        assert!(run(&deep).unwrap_err().contains("cost"));
    }
}
