//! What must not leave with an event: fields that a schema marks, and those that look like secrets.

use std::collections::{HashMap, HashSet};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::reach::in_place;

/// What names of secrets contain, in small letters and without separators.
const WORDS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "accesskey",
    "credential",
];

/// The patterns of `patternProperties` in a schema, ready to be held against names.
#[derive(Default)]
pub(super) struct Patterns(HashMap<String, Validator>);

impl Patterns {
    pub(super) fn of(root: &Value) -> Self {
        let mut patterns = HashMap::new();
        let mut open = vec![root];
        while let Some(place) = open.pop() {
            match place {
                Value::Object(fields) => {
                    let found = fields.get("patternProperties").and_then(Value::as_object);
                    for pattern in found.into_iter().flat_map(Map::keys) {
                        // What is none is part of a default or an example: the schema itself has been compiled.
                        if let Ok(validator) = super::validator(&json!({"pattern": pattern})) {
                            patterns.insert(pattern.clone(), validator);
                        }
                    }
                    open.extend(fields.values());
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        Self(patterns)
    }

    fn matches(&self, pattern: &str, name: &str) -> bool {
        self.0.get(pattern).is_none_or(|it| it.is_valid(&Value::from(name)))
    }
}

/// Takes secrets out of `value`, as deep as it goes. The schema is one that `reach::check` lets pass.
pub(super) fn remove(root: &Value, patterns: &Patterns, value: &mut Value) {
    let marks = Marks { root, patterns };
    marks.remove(&marks.all([root]), value);
}

struct Marks<'a> {
    root: &'a Value,
    patterns: &'a Patterns,
}

impl<'a> Marks<'a> {
    /// `schemas` are [all](Self::all) that `value` is held against.
    fn remove(&self, schemas: &[&'a Value], value: &mut Value) {
        match value {
            Value::Object(fields) => fields.retain(|name, value| {
                if is_secret_name(name) {
                    return false;
                }
                let inner = self.all(schemas.iter().copied().flat_map(|it| self.of_field(it, name)));
                let stays = !is_marked(&inner);
                if stays {
                    self.remove(&inner, value);
                }
                stays
            }),
            Value::Array(items) => {
                for (place, item) in items.iter_mut().enumerate() {
                    let inner = self.all(schemas.iter().copied().flat_map(|it| of_item(it, place)));
                    if is_marked(&inner) {
                        // The others keep their places, which may be what they mean.
                        *item = Value::Null;
                    } else {
                        self.remove(&inner, item);
                    }
                }
            }
            _ => {}
        }
    }

    /// These schemas and whatever counts for a value because they do, each once: no more than there are
    /// in the whole schema. One that counts for some values only counts here for all.
    fn all(&self, schemas: impl IntoIterator<Item = &'a Value>) -> Vec<&'a Value> {
        let mut open: Vec<&'a Value> = schemas.into_iter().collect();
        let mut known: HashSet<*const Value> = HashSet::new();
        let mut all = Vec::new();
        while let Some(schema) = open.pop() {
            if known.insert(std::ptr::from_ref(schema)) {
                all.push(schema);
                open.extend(in_place(self.root, schema));
            }
        }
        all
    }

    /// What one schema says of a field.
    fn of_field(&self, schema: &'a Value, name: &str) -> Vec<&'a Value> {
        let own = schema.get("properties").and_then(|it| it.get(name));
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let matching =
            patterns.into_iter().flatten().filter(|(pattern, _)| self.patterns.matches(pattern, name));
        let mut found: Vec<&'a Value> = own.into_iter().chain(matching.map(|(_, schema)| schema)).collect();
        if found.is_empty() {
            found.extend(schema.get("additionalProperties"));
        }
        found
    }
}

/// What one schema says of an item of a list.
fn of_item(schema: &Value, place: usize) -> impl Iterator<Item = &Value> {
    let own = match schema.get("items") {
        Some(Value::Array(tuple)) => tuple.get(place).or_else(|| schema.get("additionalItems")),
        every => every,
    };
    own.into_iter().chain(schema.get("contains"))
}

fn is_marked(schemas: &[&Value]) -> bool {
    let is = |schema: &Value| {
        schema.get("writeOnly") == Some(&Value::Bool(true))
            || schema.get("format").is_some_and(|it| it == "password")
    };
    schemas.iter().copied().any(is)
}

fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    WORDS.iter().any(|word| plain.contains(word))
}

#[cfg(test)]
mod tests {
    use super::super::Schema;
    use super::*;

    #[test]
    fn marked_and_telling_fields_go() {
        let schema = json!({
            "definitions": {"hidden": {"writeOnly": true}},
            "properties": {
                "pin": {"type": "string", "writeOnly": true},
                "door": {"$ref": "#/definitions/hidden"},
                "users": {"items": {"properties": {"code": {"format": "password"}}}},
            },
        });
        let mut value = json!({
            "pin": "1", "door": "2", "users": [{"code": "3", "name": "a"}], "dbPassword": "4",
            "api_key": "5", "host": {"Auth-Token": "6", "port": 1},
        });
        Schema::compile(&schema).unwrap().without_secrets(&mut value);
        assert_eq!(value, json!({"users": [{"name": "a"}], "host": {"port": 1}}));
    }

    #[test]
    fn a_mark_counts_wherever_a_schema_can_say_it() {
        let hidden = json!({"properties": {"pin": {"writeOnly": true}}});
        let code = json!({"properties": {"code": {"format": "password"}}});
        for schema in [
            json!({"definitions": {"h": hidden}, "allOf": [{"$ref": "#/definitions/h"}]}),
            json!({"definitions": {"h": hidden}, "oneOf": [{"anyOf": [{"$ref": "#/definitions/h"}]}]}),
            json!({"properties": {"pin": {"type": "string"}}, "allOf": [hidden]}),
            json!({"anyOf": [{"properties": {"pin": {}}}, hidden]}),
            json!({"if": {}, "then": hidden}),
            json!({"if": {}, "else": hidden}),
            json!({"dependencies": {"open": hidden}}),
            json!({"patternProperties": {"^p": {"writeOnly": true}}}),
            json!({"properties": {"pin": {}}, "patternProperties": {"in$": {"writeOnly": true}}}),
            json!({"properties": {"open": {}, "list": {}}, "additionalProperties": {"writeOnly": true}}),
            json!({"properties": {"pin": {"allOf": [{"type": "string"}, {"writeOnly": true}]}}}),
            json!({"definitions": {"s": {"type": "string"}},
                "properties": {"pin": {"$ref": "#/definitions/s", "writeOnly": true}}}),
        ] {
            let mut value = json!({"pin": "1", "open": 2, "list": [3]});
            Schema::compile(&schema).unwrap().without_secrets(&mut value);
            assert_eq!(value, json!({"open": 2, "list": [3]}), "{schema}");
        }
        for (items, rest) in [
            (json!({"items": [{}, code]}), json!([{"code": 1, "a": 1}, {"a": 2}, {"code": 3}])),
            (json!({"items": [{}], "additionalItems": code}), json!([{"code": 1, "a": 1}, {"a": 2}, {}])),
            (json!({"items": {"allOf": [code]}}), json!([{"a": 1}, {"a": 2}, {}])),
            (json!({"items": [{"writeOnly": true}]}), json!([null, {"code": 2, "a": 2}, {"code": 3}])),
        ] {
            let mut value = json!({"list": [{"code": 1, "a": 1}, {"code": 2, "a": 2}, {"code": 3}]});
            let schema = json!({"properties": {"list": items}});
            Schema::compile(&schema).unwrap().without_secrets(&mut value);
            assert_eq!(value, json!({"list": rest}), "{schema}");
        }
    }

    #[test]
    fn a_default_may_look_like_a_pattern_that_is_none() {
        let schema = json!({"properties": {"a": {"default": {"patternProperties": {"(": 1}}}}});
        let mut value = json!({"a": 1});
        Schema::compile(&schema).unwrap().without_secrets(&mut value);
        assert_eq!(value, json!({"a": 1}));
    }
}
