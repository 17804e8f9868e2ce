//! How much a schema asks for, so that none can ask for more than there is.
//!
//! References make schemas that hold one value against themselves again and again, or against so many
//! others that no one would see the end. What does so whatever the value is, is refused; what depends on
//! the value is counted before it is done.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::defaults::locate;

/// Schemas inside of each other that one and the same value is held against. A value is 120 deep at most, and
/// both together have to fit on the stack of a thread.
const DEPTH_MAX: usize = 20;
/// Schemas that one and the same value is held against in all.
const WIDTH_MAX: u64 = 10_000;
/// Pairs of a schema and a value that one check may come to.
const PAIRS_MAX: usize = 1_000_000;

/// Refuses a schema that holds a value against itself without end, too deep, or too often.
///
/// # Errors
/// Which of these.
pub(super) fn check(root: &Value) -> Result<(), String> {
    let mut reach = Reach { root, known: HashMap::new(), path: Vec::new() };
    let mut open = vec![root];
    while let Some(place) = open.pop() {
        match place {
            Value::Object(fields) => {
                reach.of(place)?;
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a value can be held against a schema in bounded time. The schema is one that [`check`] lets pass.
pub(super) fn is_within(root: &Value, value: &Value) -> bool {
    let mut open = vec![(root, value)];
    let mut pairs = 0;
    while let Some((schema, value)) = open.pop() {
        pairs += 1;
        if pairs > PAIRS_MAX {
            return false;
        }
        open.extend(in_place(root, schema).into_iter().map(|part| (part, value)));
        match (schema, value) {
            (Value::Object(schema), Value::Object(fields)) => inside_object(schema, fields, &mut open),
            (Value::Object(schema), Value::Array(items)) => inside_array(schema, items, &mut open),
            _ => {}
        }
    }
    true
}

fn inside_object<'a>(
    schema: &'a Map<String, Value>,
    fields: &'a Map<String, Value>,
    open: &mut Vec<(&'a Value, &'a Value)>,
) {
    let known = schema.get("properties").and_then(Value::as_object);
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    for (name, value) in fields {
        match known.and_then(|it| it.get(name)) {
            Some(schema) => open.push((schema, value)),
            None => open.extend(schema.get("additionalProperties").map(|schema| (schema, value))),
        }
        open.extend(patterns.into_iter().flat_map(Map::values).map(|schema| (schema, value)));
    }
}

fn inside_array<'a>(
    schema: &'a Map<String, Value>,
    items: &'a [Value],
    open: &mut Vec<(&'a Value, &'a Value)>,
) {
    for keyword in ["items", "additionalItems", "contains"] {
        match schema.get(keyword) {
            Some(Value::Array(schemas)) => open.extend(schemas.iter().zip(items)),
            Some(schema) => open.extend(items.iter().map(|item| (schema, item))),
            None => {}
        }
    }
}

/// The schemas that a value is held against because it is held against this one.
pub(super) fn in_place<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let Some(fields) = schema.as_object() else { return Vec::new() };
    // Beside a reference nothing else counts in draft 7.
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
        return locate(root, reference).into_iter().collect();
    }
    let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|it| fields.get(*it)?.as_array()).flatten();
    let single = ["not", "if", "then", "else"].iter().filter_map(|it| fields.get(*it));
    let dependencies = fields.get("dependencies").and_then(Value::as_object);
    lists.chain(single).chain(dependencies.into_iter().flat_map(Map::values)).collect()
}

struct Reach<'a> {
    root: &'a Value,
    /// Depth and width of what was looked at, by where it is in memory: the schema does not move.
    known: HashMap<*const Value, (usize, u64)>,
    path: Vec<*const Value>,
}

impl<'a> Reach<'a> {
    fn of(&mut self, place: &'a Value) -> Result<(usize, u64), String> {
        let address: *const Value = place;
        if let Some(known) = self.known.get(&address) {
            return Ok(*known);
        }
        if self.path.contains(&address) {
            return Err("a $ref leads back to where it is without going into the value".into());
        }
        let (mut depth, mut width) = (1, 1_u64);
        self.path.push(address);
        for part in in_place(self.root, place) {
            if self.path.len() >= DEPTH_MAX {
                return Err(too_deep());
            }
            let (inner, count) = self.of(part)?;
            (depth, width) = (depth.max(inner + 1), width.saturating_add(count));
        }
        self.path.pop();
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        if width > WIDTH_MAX {
            return Err(format!("one value would be held against more than {WIDTH_MAX} schemas"));
        }
        self.known.insert(address, (depth, width));
        Ok((depth, width))
    }
}

fn too_deep() -> String {
    format!("one value would be held against more than {DEPTH_MAX} schemas inside of each other")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Schema;
    use super::*;

    /// Like a thread that answers requests.
    fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
        std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
    }

    /// `count` schemas, each of which has `parts` references to the next.
    fn chain(count: usize, parts: usize) -> Value {
        let mut definitions = Map::new();
        for level in 0..count {
            let next = json!({"$ref": format!("#/definitions/l{}", level + 1)});
            definitions.insert(format!("l{level}"), json!({"allOf": vec![next; parts]}));
        }
        definitions.insert(format!("l{count}"), json!({"type": "object"}));
        json!({"definitions": definitions, "$ref": "#/definitions/l0"})
    }

    #[test]
    fn what_holds_a_value_against_itself_is_refused() {
        on_a_small_stack(|| {
            for schema in [
                json!({"allOf": [{"$ref": "#"}]}),
                json!({"anyOf": [{"type": "object"}, {"$ref": "#"}]}),
                json!({"oneOf": [{"not": {"$ref": "#"}}]}),
                json!({"if": {"$ref": "#"}}),
                json!({"then": {"else": {"$ref": "#"}}}),
                json!({"dependencies": {"a": {"$ref": "#"}}}),
                json!({"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}}),
                json!({"definitions": {"a": {"allOf": [{"$ref": "#/definitions/b"}]},
                    "b": {"anyOf": [{"$ref": "#/definitions/a"}]}}}),
            ] {
                let refused = Schema::compile(&schema).err().unwrap_or_default();
                assert!(refused.contains("leads back"), "{schema}: {refused}");
            }
        });
    }

    #[test]
    fn deep_and_wide_fans_are_refused() {
        on_a_small_stack(|| {
            let refusal = |schema: Value| Schema::compile(&schema).err().unwrap_or_default();
            assert!(refusal(chain(5_000, 1)).contains("inside of each other"));
            assert!(refusal(chain(40, 2)).contains("inside of each other"));
            assert!(refusal(chain(5, 10)).contains("more than 10000 schemas"));
            assert_eq!(refusal(chain(3, 10)), "");
        });
    }

    #[test]
    fn the_deepest_value_fits_on_the_stack_with_the_deepest_schema() {
        on_a_small_stack(|| {
            // Each step of the chain is two schemas: the part and what it refers to.
            let mut schema = chain((DEPTH_MAX - 3) / 2, 1);
            let last = format!("l{}", (DEPTH_MAX - 3) / 2);
            schema["definitions"][last] =
                json!({"properties": {"a": {"$ref": "#"}, "n": {"type": "string", "default": "x"}}});
            let schema = Schema::compile(&schema).unwrap();
            let mut spec = json!({"n": 1});
            for _ in 0..110 {
                spec = json!({"a": spec});
            }
            schema.complete(&mut spec);
            let mistakes = schema.mistakes(&spec);
            assert_eq!(mistakes.len(), 1, "{mistakes:?}");
            assert!(mistakes[0].ends_with("1 is not of type 'string'"), "{mistakes:?}");
        });
    }

    #[test]
    fn what_grows_with_the_depth_of_the_value_is_counted_first() {
        let twice = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        let schema = Schema::compile(&json!({"properties": {"a": twice}})).unwrap();
        let mut spec = json!({});
        for _ in 0..10 {
            spec = json!({"a": spec});
        }
        assert!(schema.mistakes(&spec).is_empty());
        for _ in 0..50 {
            spec = json!({"a": spec});
        }
        assert_eq!(schema.mistakes(&spec), ["(root): takes too many steps to hold against the schema"]);
    }

    #[test]
    fn defaults_that_contain_themselves_are_refused() {
        on_a_small_stack(|| {
            let endless = json!({
                "definitions": {"n": {"default": {}, "properties": {"a": {"$ref": "#/definitions/n"}}}},
                "properties": {"a": {"$ref": "#/definitions/n"}},
            });
            assert!(Schema::compile(&endless).err().unwrap_or_default().contains("defaults"));
            // Where only some values lead there, those are left as they are.
            let hidden = json!({
                "definitions": {"n": {"default": {}, "properties": {"a": {"$ref": "#/definitions/n"}}}},
                "properties": {"list": {"items": {"$ref": "#/definitions/n"}}, "b": {"default": 1}},
            });
            let schema = Schema::compile(&hidden).unwrap();
            let mut spec = json!({"list": [{}]});
            schema.complete(&mut spec);
            assert_eq!(spec, json!({"list": [{}]}));
            let mut spec = json!({});
            schema.complete(&mut spec);
            assert_eq!(spec, json!({"b": 1}));
        });
    }
}
