//! Filling in what is missing and has a default.

use serde_json::{Map, Value};

/// Places that are looked at in one value: far more than any sensible spec has, and an end for schemas
/// that fan out.
const STEPS_MAX: usize = 100_000;
/// References that lead to references.
const HOPS_MAX: usize = 64;
/// How deep a value may become: no deeper than one that is sent.
const DEPTH_MAX: usize = 120;

/// Gives every field that is missing in `value` the default that `schema` has for it. False if defaults in
/// defaults made it too deep: then it is half done.
pub(super) fn fill(schema: &Value, value: &mut Value) -> bool {
    let mut filling = Filling { root: schema, steps: 0, depth: 0, is_too_deep: false };
    filling.fill(schema, value);
    !filling.is_too_deep
}

/// Refuses references out of the schema, to nowhere and in circles; whether there are any.
///
/// # Errors
/// The reference, and what is wrong with it.
pub(super) fn check_references(schema: &Value) -> Result<bool, String> {
    let mut is_any = false;
    let mut open = vec![schema];
    while let Some(place) = open.pop() {
        match place {
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    check_reference(schema, reference)?;
                    is_any = true;
                }
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    Ok(is_any)
}

fn check_reference(root: &Value, reference: &str) -> Result<(), String> {
    if !reference.starts_with('#') {
        return Err(format!("$ref '{reference}' leads out of the schema"));
    }
    match resolve(root, reference) {
        Some(_) => Ok(()),
        None => Err(format!("$ref '{reference}' leads nowhere")),
    }
}

/// What a reference leads to in the end; none for nowhere and for circles.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let mut target = locate(root, reference)?;
    for _ in 0..HOPS_MAX {
        let Some(next) = target.get("$ref").and_then(Value::as_str) else { return Some(target) };
        target = locate(root, next)?;
    }
    None
}

pub(super) fn locate<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return None;
    }
    let decoded = crate::kube::path::percent_decode(pointer.bytes())?;
    root.pointer(&decoded)
}

/// A schema behind its reference. Beside one, nothing else counts in draft 7.
pub(super) fn behind<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => resolve(root, reference).unwrap_or(schema),
        None => schema,
    }
}

struct Filling<'a> {
    root: &'a Value,
    steps: usize,
    /// How far inside the value.
    depth: usize,
    is_too_deep: bool,
}

impl<'a> Filling<'a> {
    fn fill(&mut self, schema: &'a Value, value: &mut Value) {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return;
        }
        if self.depth > DEPTH_MAX {
            self.is_too_deep = true;
            return;
        }
        let schema = behind(self.root, schema);
        self.depth += 1;
        match value {
            Value::Object(fields) => self.fill_fields(schema, fields),
            Value::Array(items) => self.fill_items(schema, items),
            _ => {}
        }
        self.depth -= 1;
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.fill(part, value);
        }
    }

    fn fill_fields(&mut self, schema: &'a Value, fields: &mut Map<String, Value>) {
        let Some(known) = schema.get("properties").and_then(Value::as_object) else { return };
        for (name, schema) in known {
            let schema = behind(self.root, schema);
            if !fields.contains_key(name)
                && let Some(default) = schema.get("default")
            {
                fields.insert(name.clone(), default.clone());
            }
            if let Some(value) = fields.get_mut(name) {
                self.fill(schema, value);
            }
        }
    }

    fn fill_items(&mut self, schema: &'a Value, items: &mut [Value]) {
        match schema.get("items") {
            Some(Value::Array(schemas)) => {
                for (schema, item) in schemas.iter().zip(items) {
                    self.fill(schema, item);
                }
            }
            Some(schema) => items.iter_mut().for_each(|item| self.fill(schema, item)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_reach_everywhere_that_is_there() {
        let schema = json!({
            "definitions": {"port": {"default": 80}},
            "properties": {
                "a": {"default": {}, "properties": {"b": {"default": 1}}},
                "list": {"items": {"properties": {"port": {"$ref": "#/definitions/port"}}}},
                "absent": {"properties": {"never": {"default": 1}}},
                "pair": {"items": [{}, {"properties": {"x": {"default": 2}}}]},
            },
            "allOf": [{"properties": {"c": {"default": null}}}],
        });
        let mut value = json!({"list": [{}, {"port": 1}, 3], "pair": [{}, {}]});
        fill(&schema, &mut value);
        let expected =
            json!({"a": {"b": 1}, "list": [{"port": 80}, {"port": 1}, 3], "pair": [{}, {"x": 2}], "c": null});
        assert_eq!(value, expected);
    }

    #[test]
    fn what_is_set_stays_and_fans_end() {
        let mut value = json!({"a": null});
        fill(&json!({"properties": {"a": {"default": 1}}}), &mut value);
        assert_eq!(value, json!({"a": null}));
        let mut definitions = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/definitions/l{}", level + 1)});
            definitions.insert(format!("l{level}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("l40".into(), json!({}));
        let fan = json!({"definitions": definitions, "allOf": [{"$ref": "#/definitions/l0"}]});
        assert!(fill(&fan, &mut value));
    }
}
