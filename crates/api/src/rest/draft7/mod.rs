//! JSON Schema, draft 7, as resource types are described with.
//!
//! Compiled once for each state of a type. What is wrong with a spec is said in the words of the Python
//! library that its users know; missing fields get their defaults before that.

mod defaults;
mod python;
mod reach;
mod secrets;
mod words;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

pub use python::{dumps, repr};

/// Steps that a pattern with look-around may take; beyond that the text counts as not matching.
const BACKTRACK_MAX: usize = 100_000;
/// Most mistakes that one answer names.
const MISTAKES_MAX: usize = 100;

/// A schema that can be asked.
pub struct Schema {
    tree: Value,
    validator: Validator,
    patterns: secrets::Patterns,
    /// Without references, what there is to do is bounded by how long the schema is.
    has_references: bool,
}

impl Schema {
    /// Reads a schema. References may only lead to places inside of it.
    ///
    /// # Errors
    /// Why it is no schema, in words.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let mut tree = schema.clone();
        if let Some(fields) = tree.as_object_mut() {
            // Whatever it says of itself, it is read as draft 7; nothing is fetched.
            fields.remove("$schema");
        }
        if let Err(error) = jsonschema::draft7::meta::validate(&tree) {
            return Err(words::mistake(&error));
        }
        let has_references = defaults::check_references(&tree)?;
        reach::check(&tree)?;
        if !defaults::fill(&tree, &mut Value::Object(serde_json::Map::new())) {
            return Err("defaults contain each other without end".into());
        }
        let validator = validator(&tree)?;
        let patterns = secrets::Patterns::of(&tree);
        Ok(Self { tree, validator, patterns, has_references })
    }

    /// Fills in what is missing and has a default. A spec in which that would have no end stays as it is.
    pub fn complete(&self, spec: &mut Value) {
        let before = self.has_references.then(|| spec.clone());
        let is_done = defaults::fill(&self.tree, spec);
        if let Some(before) = before.filter(|_| !is_done) {
            *spec = before;
        }
    }

    /// What is wrong with a spec: each `path: message`, by path.
    pub fn mistakes(&self, spec: &Value) -> Vec<String> {
        if self.has_references && !reach::is_within(&self.tree, spec) {
            return vec!["(root): takes too many steps to hold against the schema".into()];
        }
        let mut all: Vec<(String, String)> = self
            .validator
            .iter_errors(spec)
            .take(MISTAKES_MAX)
            .map(|error| words::placed(spec, &error))
            .collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all.into_iter().map(|(place, message)| format!("{place}: {message}")).collect()
    }

    /// A spec without what nobody but its author and its plugin should see.
    pub fn without_secrets(&self, spec: &mut Value) {
        secrets::remove(&self.tree, &self.patterns, spec);
    }
}

fn validator(tree: &Value) -> Result<Validator, String> {
    let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_MAX);
    jsonschema::options()
        .with_draft(Draft::Draft7)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .with_pattern_options(patterns)
        .build(tree)
        .map_err(|error| words::mistake(&error))
}

/// A value of which no schema is known, without what looks like a secret.
pub fn without_secrets(value: &mut Value) {
    secrets::remove(&Value::Null, &secrets::Patterns::default(), value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dns() -> Schema {
        Schema::compile(&json!({
            "type": "object", "required": ["domain", "type", "value"],
            "properties": {
                "domain": {"type": "string"},
                "type": {"type": "string", "enum": ["A", "AAAA", "CNAME", "TXT"]},
                "value": {"type": "string"},
                "ttl": {"type": "integer", "minimum": 60, "default": 300},
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_guides_type_says_what_is_missing() {
        let mistakes = dns().mistakes(&json!({"domain": "a"}));
        assert_eq!(
            mistakes,
            ["(root): 'type' is a required property", "(root): 'value' is a required property"]
        );
        let mut spec = json!({"domain": "a", "type": "A", "value": "1"});
        dns().complete(&mut spec);
        assert_eq!(spec["ttl"], 300);
        assert!(dns().mistakes(&spec).is_empty());
    }

    #[test]
    fn every_common_keyword_has_the_words_of_python() {
        for (schema, value, expected) in [
            (json!({"type": "string"}), json!(1), "1 is not of type 'string'"),
            (json!({"type": ["string", "null"]}), json!(true), "True is not of type 'null', 'string'"),
            (json!({"enum": ["A", 1, null]}), json!("X"), "'X' is not one of ['A', 1, None]"),
            (json!({"minimum": 60}), json!(5), "5 is less than the minimum of 60"),
            (json!({"maximum": 3}), json!(5.5), "5.5 is greater than the maximum of 3"),
            (json!({"exclusiveMinimum": 5}), json!(5), "5 is less than or equal to the minimum of 5"),
            (json!({"exclusiveMaximum": 5}), json!(5), "5 is greater than or equal to the maximum of 5"),
            (json!({"multipleOf": 2}), json!(7), "7 is not a multiple of 2"),
            (json!({"pattern": "^a\\d$"}), json!("x"), "'x' does not match '^a\\\\d$'"),
            (json!({"minLength": 2}), json!("x"), "'x' is too short"),
            (json!({"minLength": 1}), json!(""), "'' should be non-empty"),
            (json!({"maxLength": 2}), json!("xyz"), "'xyz' is too long"),
            (json!({"format": "email"}), json!("x"), "'x' is not a 'email'"),
            (json!({"format": "ipv4"}), json!("x"), "'x' is not a 'ipv4'"),
            (json!({"const": {"a": [1]}}), json!(2), "{'a': [1]} was expected"),
            (json!({"minItems": 2}), json!([1]), "[1] is too short"),
            (json!({"maxItems": 1}), json!([1, "it's"]), "[1, \"it's\"] is too long"),
            (json!({"uniqueItems": true}), json!([1, 1]), "[1, 1] has non-unique elements"),
            (
                json!({"additionalProperties": false}),
                json!({"b": 1}),
                "Additional properties are not allowed ('b' was unexpected)",
            ),
            (
                json!({"additionalProperties": false}),
                json!({"b": 1, "a": 2}),
                "Additional properties are not allowed ('a', 'b' were unexpected)",
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
                json!(1),
                "1 is not valid under any of the given schemas",
            ),
            (
                json!({"oneOf": [{"type": "string"}, {"type": "null"}]}),
                json!(1),
                "1 is not valid under any of the given schemas",
            ),
            (
                json!({"not": {"type": "string"}}),
                json!("a"),
                "'a' should not be valid under {'type': 'string'}",
            ),
            (json!({"minProperties": 2}), json!({"a": 1}), "{'a': 1} does not have enough properties"),
        ] {
            let mistakes = Schema::compile(&schema).unwrap().mistakes(&value);
            assert_eq!(mistakes, [format!("(root): {expected}")], "{schema}");
        }
    }

    #[test]
    fn places_are_dotted() {
        let schema = json!({"properties": {"a": {"items": {"properties": {"b/c": {"type": "string"}}}}}});
        let mistakes = Schema::compile(&schema).unwrap().mistakes(&json!({"a": [{}, {"b/c": 1}]}));
        assert_eq!(mistakes, ["a.1.b/c: 1 is not of type 'string'"]);
    }

    #[test]
    fn references_conditions_and_lists_of_types_work() {
        let schema = Schema::compile(&json!({
            "definitions": {"port": {"type": "integer", "maximum": 65535, "default": 80}},
            "properties": {"port": {"$ref": "#/definitions/port"}},
            "if": {"required": ["tls"]}, "then": {"required": ["certificate"]},
        }))
        .unwrap();
        assert_eq!(schema.mistakes(&json!({"tls": 1})), ["(root): 'certificate' is a required property"]);
        assert_eq!(
            schema.mistakes(&json!({"port": 70000})),
            ["port: 70000 is greater than the maximum of 65535"]
        );
        let mut spec = json!({});
        schema.complete(&mut spec);
        assert_eq!(spec, json!({"port": 80}));
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for schema in [
            json!({"type": "strin"}),
            json!({"type": 1}),
            json!({"required": "a"}),
            json!({"minimum": "a"}),
            json!({"pattern": "("}),
            json!({"properties": []}),
            json!({"$ref": "http://127.0.0.1/x.json"}),
            json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            json!({"$ref": "#/definitions/none"}),
            json!({"definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
                "$ref": "#/definitions/a"}),
        ] {
            assert!(Schema::compile(&schema).is_err(), "{schema}");
        }
        // A tree of trees is fine: every step needs a deeper value.
        let tree = json!({"properties": {"child": {"$ref": "#"}}});
        assert!(Schema::compile(&tree).unwrap().mistakes(&json!({"child": {"child": {}}})).is_empty());
        let modern = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"});
        assert!(Schema::compile(&modern).is_ok());
    }
}
