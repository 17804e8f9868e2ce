//! One test per reason to refuse a schema, with the words its author reads.

use serde_json::{Value, json};

use super::*;
use crate::structural::{Reason, ValidationRule};

fn refusals(source: &Value) -> Vec<String> {
    let errors = Schema::compile(source).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

/// Why `x` is refused as the schema of `spec`.
fn refused(x: Value) -> Vec<String> {
    refusals(&json!({ "type": "object", "properties": { "spec": x } }))
        .into_iter()
        .map(|text| text.replacen("properties[spec]", "x", 1))
        .collect()
}

fn accepted(x: Value) {
    assert_eq!(refused(x.clone()), [""; 0], "{x}");
}

#[test]
fn every_field_and_item_has_a_type() {
    assert_eq!(refused(json!({})), ["x.type: Required value: must not be empty for specified object fields"]);
    assert_eq!(
        refused(json!({ "type": "array", "items": {} })),
        ["x.items.type: Required value: must not be empty for specified array items"]
    );
    assert_eq!(refusals(&json!({})), ["type: Required value: must not be empty at the root"]);
    accepted(json!({ "x-kubernetes-int-or-string": true }));
    accepted(json!({ "x-kubernetes-preserve-unknown-fields": true }));
}

#[test]
fn the_root_is_an_object() {
    assert_eq!(
        refusals(&json!({ "type": "string" })),
        [r#"type: Invalid value: "string": must be object at the root"#]
    );
    assert_eq!(
        refusals(&json!({ "type": "object", "additionalProperties": { "type": "string" } })),
        ["additionalProperties: Forbidden: must not be used at the root"]
    );
    assert_eq!(refusals(&json!(true)), ["<nil>: Invalid value: true: must be of type object"]);
}

#[test]
fn a_type_is_one_of_six() {
    let names = r#""array", "boolean", "integer", "number", "object", "string""#;
    assert_eq!(
        refused(json!({ "type": "text" })),
        [format!(r#"x.type: Unsupported value: "text": supported values: {names}"#)]
    );
    assert_eq!(
        refused(json!({ "type": "null" })),
        ["x.type: Forbidden: type cannot be set to null, use nullable as an alternative"]
    );
    assert_eq!(
        refused(json!({ "type": ["string"] })),
        ["x.type: Invalid value: [list]: must be of type string"]
    );
}

#[test]
fn unsupported_and_unknown_keywords_are_named() {
    for keyword in ["$ref", "definitions", "id", "patternProperties", "dependencies", "additionalItems"] {
        assert_eq!(
            refused(json!({ "type": "object", keyword: {} })),
            [format!("x.{keyword}: Forbidden: {keyword} is not supported")]
        );
    }
    for keyword in ["deprecated", "discriminator", "$schema", "readOnly", "xml"] {
        assert_eq!(refused(json!({ "type": "object", keyword: true })).len(), 1, "{keyword}");
    }
    assert_eq!(
        refused(json!({ "type": "string", "maxLenght": 3 })),
        ["x.maxLenght: Forbidden: is not a keyword of a structural schema"]
    );
    assert_eq!(
        refused(json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true })),
        ["x.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity \
          becomes quadratic"]
    );
    accepted(json!({ "type": "string", "title": "t", "description": "d", "example": 1, "format": null }));
}

#[test]
fn keywords_have_values_of_their_type() {
    for x in [
        json!({ "type": "string", "maxLength": -1 }),
        json!({ "type": "string", "maxLength": 1.5 }),
        json!({ "type": "string", "pattern": 1 }),
        json!({ "type": "string", "nullable": "yes" }),
        json!({ "type": "integer", "minimum": "1" }),
        json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": 1 }),
        json!({ "type": "object", "required": [1] }),
        json!({ "type": "object", "properties": [] }),
        json!({ "type": "object", "properties": { "a": 1 } }),
        json!({ "type": "object", "additionalProperties": 1 }),
        json!({ "type": "string", "enum": "a" }),
        json!({ "type": "string", "anyOf": {} }),
        json!({ "type": "string", "not": [] }),
        json!({ "type": "integer", "multipleOf": 0 }),
    ] {
        assert_eq!(refused(x.clone()).len(), 1, "{x}: {:?}", refused(x.clone()));
    }
    accepted(json!({ "type": "string", "maxLength": 2.0 }));
}

#[test]
fn properties_and_additional_properties_exclude_each_other() {
    assert_eq!(
        refused(json!({
            "type": "object",
            "properties": { "a": { "type": "string" } },
            "additionalProperties": { "type": "string" },
        })),
        ["x.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"]
    );
    assert_eq!(
        refused(json!({ "type": "object", "additionalProperties": false })),
        ["x.additionalProperties: Forbidden: additionalProperties cannot be set to false"]
    );
    accepted(json!({ "type": "object", "additionalProperties": true }));
}

#[test]
fn a_list_says_what_is_in_it() {
    assert_eq!(refused(json!({ "type": "array" })), ["x.items: Required value: must be specified"]);
    assert_eq!(
        refused(json!({ "type": "array", "items": [{ "type": "string" }] })),
        ["x.items: Forbidden: items must be a schema object and not an array"]
    );
}

#[test]
fn branches_only_validate_values() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        assert_eq!(
            refused(json!({ "type": "string", keyword: [{ "type": "string" }] })),
            [format!("x.{keyword}[0].type: Forbidden: must be empty to be structural")]
        );
    }
    let full = json!({
        "title": "t", "description": "d", "default": 1, "nullable": true, "additionalProperties": true,
        "x-kubernetes-int-or-string": true, "x-kubernetes-list-type": "set",
        "x-kubernetes-validations": [{ "rule": "true" }],
    });
    assert_eq!(refused(json!({ "type": "string", "not": full })).len(), 8);
    let nested = json!({ "properties": { "a": { "items": { "nullable": true } } } });
    assert_eq!(
        refused(json!({ "type": "object", "anyOf": [{ "not": nested }] })),
        ["x.anyOf[0].not.properties[a].items.nullable: Forbidden: must be false to be structural"]
    );
    assert_eq!(
        refused(json!({ "type": "object", "anyOf": [{ "properties": { "metadata": {} } }] })),
        ["x.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context"]
    );
}

#[test]
fn int_or_string_may_spell_out_its_types() {
    let types = json!([{ "type": "integer" }, { "type": "string" }]);
    accepted(json!({ "x-kubernetes-int-or-string": true, "anyOf": types }));
    accepted(
        json!({ "x-kubernetes-int-or-string": true, "allOf": [{ "anyOf": types }, { "minLength": 1 }] }),
    );
    assert_eq!(
        refused(json!({ "x-kubernetes-int-or-string": true, "allOf": [{}, { "anyOf": types }] })).len(),
        2
    );
    assert_eq!(refused(json!({ "x-kubernetes-int-or-string": true, "oneOf": types })).len(), 2);
    assert_eq!(
        refused(json!({
            "x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true,
        })),
        ["x.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if \
          x-kubernetes-int-or-string is true"]
    );
}

#[test]
fn what_the_branches_of_the_root_speak_of_is_specified() {
    assert_eq!(
        refusals(&json!({
            "type": "object",
            "properties": { "a": { "type": "object" } },
            "anyOf": [{ "properties": { "a": { "properties": { "b": {} } }, "c": {} } }],
        })),
        [
            "properties[a].properties[b]: Required value: because it is defined in \
             anyOf[0].properties[a].properties[b]",
            "properties[c]: Required value: because it is defined in anyOf[0].properties[c]",
        ]
    );
}

#[test]
fn metadata_may_only_restrict_names() {
    let with =
        |metadata: Value| refusals(&json!({ "type": "object", "properties": { "metadata": metadata } }));
    assert!(with(json!({ "type": "object" })).is_empty());
    let name = json!({ "type": "string", "maxLength": 10 });
    assert!(
        with(json!({ "type": "object", "properties": { "name": name, "generateName": name } })).is_empty()
    );
    let why = "properties[metadata]: Forbidden: must not specify anything other than name and generateName, \
               but metadata is implicitly specified";
    assert_eq!(with(json!({ "type": "object", "properties": { "labels": { "type": "object" } } })), [why]);
    assert_eq!(with(json!({ "type": "object", "required": ["name"] })), [why]);
    let defaulted =
        json!({ "type": "object", "properties": { "name": { "type": "string", "default": "a" } } });
    assert_eq!(
        with(defaulted),
        ["properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata"]
    );
    assert_eq!(
        refusals(&json!({ "type": "object", "properties": { "kind": { "type": "integer" } } })),
        [r#"properties[kind].type: Invalid value: "integer": must be string"#]
    );
}

#[test]
fn an_embedded_resource_is_an_object() {
    const EMBEDDED: &str = "x-kubernetes-embedded-resource";
    accepted(json!({ "type": "object", EMBEDDED: true, "x-kubernetes-preserve-unknown-fields": true }));
    assert_eq!(
        refused(json!({ EMBEDDED: true, "x-kubernetes-preserve-unknown-fields": true })),
        ["x.type: Required value: must be object if x-kubernetes-embedded-resource is true"]
    );
    assert_eq!(
        refused(json!({ "type": "object", EMBEDDED: true })),
        [
            "x.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without \
          x-kubernetes-preserve-unknown-fields"
        ]
    );
    assert_eq!(
        refused(json!({ "x-kubernetes-preserve-unknown-fields": false, "type": "object" })),
        ["x.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"]
    );
}

#[test]
fn a_set_has_items_that_are_compared_whole() {
    let set = |items: Value| json!({ "type": "array", "x-kubernetes-list-type": "set", "items": items });
    accepted(set(json!({ "type": "string" })));
    accepted(set(json!({ "type": "object", "x-kubernetes-map-type": "atomic" })));
    assert_eq!(
        refused(set(json!({ "type": "object" }))),
        [
            "x.items.x-kubernetes-map-type: Invalid value: \"granular\": must be atomic as item of a list with \
          x-kubernetes-list-type=set"
        ]
    );
    assert_eq!(
        refused(set(json!({ "type": "string", "nullable": true }))),
        ["x.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"]
    );
    assert_eq!(
        refused(json!({ "type": "string", "x-kubernetes-list-type": "set" })),
        [r#"x.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified"#]
    );
    assert_eq!(
        refused(json!({ "type": "array", "x-kubernetes-list-type": "bag", "items": { "type": "string" } })),
        [r#"x.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map""#]
    );
}

#[test]
fn a_map_has_keys_that_are_always_there() {
    let map = |keys: Value, items: Value| {
        json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items,
        })
    };
    let items = |name: Value, required: Value| json!({ "type": "object", "properties": { "name": name }, "required": required });
    let text = json!({ "type": "string" });
    accepted(map(json!(["name"]), items(text.clone(), json!(["name"]))));
    accepted(map(json!(["name"]), items(json!({ "type": "string", "default": "" }), json!([]))));
    assert_eq!(
        refused(map(json!(["name"]), items(text.clone(), json!([])))),
        [
            "x.items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, \
          so it must have a default or be a required property"
        ]
    );
    assert_eq!(
        refused(map(json!([]), items(text.clone(), json!(["name"])))),
        ["x.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"]
    );
    assert_eq!(
        refused(map(json!(["id"]), items(text.clone(), json!(["name"])))),
        ["x.x-kubernetes-list-map-keys: Invalid value: [list]: entries must all be names of item properties"]
    );
    assert_eq!(refused(map(json!(["name", "name"]), items(text.clone(), json!(["name"])))).len(), 1);
    assert_eq!(
        refused(map(json!(["name"]), items(json!({ "type": "object" }), json!(["name"])))),
        [
            r#"x.items.properties[name].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map"#
        ]
    );
    assert_eq!(
        refused(map(json!(["name"]), text)),
        [
            r#"x.items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map"#
        ]
    );
    assert_eq!(
        refused(json!({
            "type": "array", "items": { "type": "string" }, "x-kubernetes-list-map-keys": ["name"],
        })),
        ["x.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty"]
    );
}

#[test]
fn a_map_type_is_for_objects() {
    accepted(json!({ "type": "object", "x-kubernetes-map-type": "granular" }));
    assert_eq!(refused(json!({ "type": "string", "x-kubernetes-map-type": "atomic" })).len(), 1);
    assert_eq!(refused(json!({ "type": "object", "x-kubernetes-map-type": "loose" })).len(), 1);
}

#[test]
fn defaults_are_valid_and_pruned() {
    assert_eq!(
        refused(json!({ "type": "integer", "default": "1" })),
        [r#"x.default: Invalid value: "string": x.default in body must be of type integer: "string""#
            .replacen("x.default in", "properties[spec].default in", 1)]
    );
    assert_eq!(
        refused(
            json!({ "type": "object", "default": { "b": 1 }, "properties": { "a": { "type": "string" } } })
        ),
        ["x.default: Invalid value: {map}: must not have unknown fields: b"]
    );
    accepted(json!({
        "type": "object", "default": {}, "required": ["a"],
        "properties": { "a": { "type": "string", "default": "x" } },
    }));
    let deep = json!({ "type": "array", "items": {
        "type": "object", "additionalProperties": { "type": "string", "default": 1 },
    }});
    assert_eq!(refused(deep).len(), 1);
    accepted(json!({ "type": "string", "default": null }));
}

#[test]
fn defaults_do_not_multiply_without_bound() {
    let mut x = json!({ "type": "string", "default": "x" });
    for _ in 0..20 {
        x = json!({
            "type": "array",
            "default": [{}, {}, {}, {}],
            "items": { "type": "object", "properties": { "x": x } },
        });
    }
    let refusals = refused(x);
    assert!(!refusals.is_empty());
    let why = "Forbidden: defaults may not come to more than 1000 values";
    assert!(refusals.iter().all(|text| text.ends_with(why)), "{refusals:?}");
}

#[test]
fn cel_rules_are_kept_as_written() {
    let schema = Schema::compile(&json!({ "type": "object", "properties": {
        "a": { "type": "string", "maxLength": 9 },
    }, "x-kubernetes-validations": [{
        "rule": "self.a == oldSelf.a", "message": "a cannot change", "messageExpression": "'a'",
        "reason": "FieldValueForbidden", "fieldPath": ".a", "optionalOldSelf": true,
    }]}))
    .unwrap();
    assert_eq!(
        schema.rules(),
        [ValidationRule {
            rule: "self.a == oldSelf.a".to_owned(),
            message: Some("a cannot change".to_owned()),
            message_expression: Some("'a'".to_owned()),
            reason: Reason::Forbidden,
            field_path: Some(".a".to_owned()),
            optional_old_self: Some(true),
        }]
    );
}

#[test]
fn cel_rules_have_a_form() {
    let with = |rule: Value| refused(json!({ "type": "object", "x-kubernetes-validations": [rule] }));
    let place = "x.x-kubernetes-validations[0]";
    assert_eq!(with(json!({})), [format!("{place}.rule: Required value: rule is not specified")]);
    assert_eq!(
        with(json!({ "rule": "a\n&& b" })),
        [format!("{place}.message: Required value: message must be specified if rule contains line breaks")]
    );
    assert_eq!(with(json!({ "rule": "a", "message": " " })).len(), 1);
    assert_eq!(with(json!({ "rule": "a", "message": "a\nb" })).len(), 1);
    assert_eq!(with(json!({ "rule": "a", "reason": "Because" })).len(), 1);
    assert_eq!(with(json!({ "rule": "a", "fieldPath": "" })).len(), 1);
    assert_eq!(
        with(json!({ "rule": "a", "rules": "b" })),
        [format!("{place}.rules: Forbidden: is not a keyword of a validation rule")]
    );
}

#[test]
fn patterns_compile_and_stay_small() {
    assert!(
        refused(json!({ "type": "string", "pattern": "(" }))[0]
            .starts_with(r#"x.pattern: Invalid value: "(": must be a valid regular expression, but isn't: "#)
    );
    assert_eq!(
        refused(json!({ "type": "string", "pattern": r"(\p{L}{1000}){1000}" })),
        [
            r#"x.pattern: Invalid value: "(\\p{L}{1000}){1000}": must be a regular expression that compiles to at most 1048576 bytes"#
        ]
    );
    let many: serde_json::Map<String, Value> = (0..=SCHEMA_PATTERNS_MAX)
        .map(|number| (format!("p{number}"), json!({ "type": "string", "pattern": format!("^{number}$") })))
        .collect();
    assert_eq!(refused(json!({ "type": "object", "properties": many })).len(), 1);
}

#[test]
fn depth_and_size_are_bounded() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..SCHEMA_DEPTH_MAX {
        deep = json!({ "type": "array", "items": deep });
    }
    let refusals = refused(deep);
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].ends_with("Forbidden: a schema may not be nested deeper than 64 levels"));

    let wide: serde_json::Map<String, Value> =
        (0..SCHEMA_NODES_MAX).map(|number| (format!("p{number}"), json!({ "type": "string" }))).collect();
    let refusals = refused(json!({ "type": "object", "properties": wide }));
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert!(refusals[0].ends_with("Forbidden: a schema may not have more than 50000 nodes"));
}

#[test]
fn a_schema_found_elsewhere_is_named_there() {
    let path = FieldPath::new("spec.versions[0].schema.openAPIV3Schema");
    let errors = Schema::compile_at(&path, &json!({})).unwrap_err();
    assert_eq!(errors[0].field.as_str(), "spec.versions[0].schema.openAPIV3Schema.type");
}
