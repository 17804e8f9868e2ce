//! One test per rule, with the words a user reads.

use serde_json::{Value, json};

use super::*;

/// What is wrong with `value` at `spec.x` under the schema `x`.
fn errors(x: Value, value: Value) -> Vec<String> {
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": { "x": x } },
    }});
    let schema = Schema::compile(&schema).unwrap();
    let errors = schema.validate(&json!({ "spec": { "x": value } }));
    errors.iter().map(ToString::to_string).collect()
}

fn assert_valid(x: &Value, values: impl IntoIterator<Item = Value>) {
    for value in values {
        assert_eq!(errors(x.clone(), value.clone()), [""; 0], "{value}");
    }
}

#[test]
fn a_value_has_the_type_asked_for() {
    assert_eq!(
        errors(json!({ "type": "integer" }), json!("1")),
        [r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#]
    );
    assert_eq!(
        errors(json!({ "type": "string" }), json!(1)),
        [r#"spec.x: Invalid value: "integer": spec.x in body must be of type string: "integer""#]
    );
    assert_eq!(
        errors(json!({ "type": "integer" }), json!(1.5)),
        [r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#]
    );
    for (kind, good, bad) in [
        ("object", json!({}), json!([])),
        ("array", json!([]), json!({})),
        ("boolean", json!(true), json!("true")),
        ("number", json!(1), json!("1")),
        ("number", json!(1.5), json!(true)),
        ("integer", json!(1.0), json!(1e300)),
        ("string", json!(""), json!(false)),
    ] {
        let x = json!({ "type": kind, "items": { "type": "string" } });
        assert_valid(&x, [good]);
        assert_eq!(errors(x, bad).len(), 1, "{kind}");
    }
}

#[test]
fn the_rule_of_a_type_error_is_type() {
    let schema = Schema::compile(&json!({ "type": "object" })).unwrap();
    let errors = schema.validate(&json!([]));
    assert_eq!(errors[0].rule, concert_model::field::Rule::Type);
    assert_eq!(
        errors[0].to_string(),
        r#"<nil>: Invalid value: "array": in body must be of type object: "array""#
    );
}

#[test]
fn null_is_a_value_only_where_it_is_nullable() {
    assert_eq!(
        errors(json!({ "type": "string" }), json!(null)),
        [r#"spec.x: Invalid value: "null": spec.x in body must be of type string: "null""#]
    );
    assert_valid(&json!({ "type": "string", "nullable": true, "minLength": 1 }), [json!(null)]);
    assert_valid(&json!({ "x-kubernetes-preserve-unknown-fields": true }), [json!(null)]);
    assert_eq!(errors(json!({ "x-kubernetes-int-or-string": true }), json!(null)).len(), 1);
    assert_eq!(
        errors(json!({ "type": "string", "nullable": true, "enum": ["a"] }), json!(null)),
        [r#"spec.x: Unsupported value: null: supported values: "a""#]
    );
}

#[test]
fn an_enumeration_lists_what_is_supported() {
    let x = json!({ "type": "string", "enum": ["red", "green"] });
    assert_valid(&x, [json!("red")]);
    assert_eq!(
        errors(x, json!("pink")),
        [r#"spec.x: Unsupported value: "pink": supported values: "red", "green""#]
    );
    let x = json!({ "type": "integer", "enum": [1, 2] });
    assert_valid(&x, [json!(1), json!(2.0)]);
    assert_eq!(errors(x, json!(3)), [r#"spec.x: Unsupported value: 3: supported values: "1", "2""#]);
}

#[test]
fn numbers_stay_within_their_bounds() {
    let x = json!({ "type": "integer", "minimum": 1, "maximum": 10 });
    assert_valid(&x, [json!(1), json!(10), json!(5.0)]);
    assert_eq!(
        errors(x.clone(), json!(0)),
        ["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"]
    );
    assert_eq!(
        errors(x, json!(11)),
        ["spec.x: Invalid value: 11: spec.x in body should be less than or equal to 10"]
    );
    let x = json!({
        "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1.5, "exclusiveMaximum": true,
    });
    assert_valid(&x, [json!(0.1), json!(1)]);
    assert_eq!(
        errors(x.clone(), json!(0)),
        ["spec.x: Invalid value: 0: spec.x in body should be greater than 0"]
    );
    assert_eq!(errors(x, json!(1.5)), ["spec.x: Invalid value: 1.5: spec.x in body should be less than 1.5"]);
}

#[test]
fn large_integers_are_compared_exactly() {
    let x = json!({ "type": "integer", "maximum": 9_223_372_036_854_775_806_i64 });
    assert_valid(&x, [json!(9_223_372_036_854_775_806_i64)]);
    assert_eq!(errors(x, json!(i64::MAX)).len(), 1);
    let x = json!({ "type": "integer", "maximum": u64::MAX - 1 });
    assert_valid(&x, [json!(u64::MAX - 1)]);
    assert_eq!(errors(x, json!(u64::MAX)).len(), 1);
}

#[test]
fn a_multiple_is_a_multiple() {
    let x = json!({ "type": "integer", "multipleOf": 3 });
    assert_valid(&x, [json!(0), json!(-9)]);
    assert_eq!(errors(x, json!(4)), ["spec.x: Invalid value: 4: spec.x in body should be a multiple of 3"]);
}

#[test]
fn lengths_are_counted_in_characters() {
    let x = json!({ "type": "string", "minLength": 2, "maxLength": 3 });
    assert_valid(&x, [json!("äöü"), json!("日本")]);
    assert_eq!(errors(x.clone(), json!("abcd")), ["spec.x: Too long: may not be more than 3 bytes"]);
    assert_eq!(
        errors(x, json!("ä")),
        [r#"spec.x: Invalid value: "ä": spec.x in body should be at least 2 chars long"#]
    );
}

#[test]
fn a_pattern_matches() {
    let x = json!({ "type": "string", "pattern": "^[a-z]+$" });
    assert_valid(&x, [json!("abc")]);
    assert_eq!(
        errors(x, json!("A")),
        [r#"spec.x: Invalid value: "A": spec.x in body should match '^[a-z]+$'"#]
    );
}

#[test]
fn a_format_is_kept() {
    let x = json!({ "type": "string", "format": "date-time" });
    assert_valid(&x, [json!("2024-02-29T12:00:00Z")]);
    assert_eq!(
        errors(x, json!("today")),
        [r#"spec.x: Invalid value: "today": spec.x in body must be of type date-time: "today""#]
    );
    assert_eq!(
        errors(json!({ "type": "integer", "format": "int32" }), json!(3_000_000_000_u32)),
        [
            "spec.x: Invalid value: 3000000000: Checked value must be of type integer with format int32 in spec.x"
        ]
    );
    assert_valid(&json!({ "type": "string", "format": "barcode" }), [json!("|||")]);
}

#[test]
fn lists_and_maps_keep_their_size() {
    let x = json!({ "type": "array", "items": { "type": "integer" }, "minItems": 1, "maxItems": 2 });
    assert_valid(&x, [json!([1]), json!([1, 2])]);
    assert_eq!(errors(x.clone(), json!([1, 2, 3])), ["spec.x: Too many: 3: must have at most 2 items"]);
    assert_eq!(
        errors(x, json!([])),
        ["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"]
    );
    let x = json!({
        "type": "object", "additionalProperties": { "type": "integer" }, "minProperties": 1, "maxProperties": 1,
    });
    assert_valid(&x, [json!({ "a": 1 })]);
    assert_eq!(
        errors(x.clone(), json!({ "a": 1, "b": 1 })),
        ["spec.x: Too many: 2: must have at most 1 items"]
    );
    assert_eq!(
        errors(x, json!({})),
        ["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"]
    );
}

#[test]
fn a_required_field_is_there() {
    let x =
        json!({ "type": "object", "required": ["size"], "properties": { "size": { "type": "integer" } } });
    assert_valid(&x, [json!({ "size": 1 })]);
    assert_eq!(errors(x, json!({})), ["spec.x.size: Required value"]);
    let root = Schema::compile(&json!({ "type": "object", "required": ["spec"] })).unwrap();
    assert_eq!(root.validate(&json!({}))[0].to_string(), "spec: Required value");
}

#[test]
fn int_or_string_is_either() {
    let x = json!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": "^[0-9]+%?$",
        "maximum": 100,
    });
    assert_valid(&x, [json!(50), json!("50%")]);
    assert_eq!(
        errors(x.clone(), json!(true)),
        [r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean""#]
    );
    assert_eq!(errors(x.clone(), json!("all")).len(), 1);
    assert_eq!(errors(x.clone(), json!(101)).len(), 1);
    assert_eq!(errors(x, json!(1.5)).len(), 1);
}

#[test]
fn a_set_has_no_value_twice() {
    let x = json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } });
    assert_valid(&x, [json!([]), json!(["a", "b"])]);
    assert_eq!(errors(x, json!(["a", "b", "a", "a"])), [r#"spec.x[2]: Duplicate value: "a""#]);
}

#[test]
fn a_map_has_no_key_twice() {
    let item = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "type": "string" },
            "port": { "type": "integer", "default": 80 },
            "note": { "type": "string" },
        },
    });
    let x = json!({
        "type": "array", "items": item,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    });
    assert_eq!(
        errors(x, json!([{ "name": "a" }, { "name": "a", "note": "b" }])),
        [r#"spec.x[1]: Duplicate value: {"name":"a"}"#]
    );
    let x = json!({
        "type": "array", "items": item,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
    });
    assert_valid(&x, [json!([{ "name": "a", "port": 1 }, { "name": "a", "port": 2 }, { "name": "a" }])]);
    assert_eq!(
        errors(x.clone(), json!([{ "name": "a", "port": 1 }, { "name": "a", "port": 1 }])),
        [r#"spec.x[1]: Duplicate value: {"name":"a","port":1}"#]
    );
    assert_eq!(errors(x, json!([{ "name": "a" }, 1])).len(), 1);
}

#[test]
fn any_of_wants_one_and_explains_the_closest() {
    let x = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "anyOf": [{ "required": ["a", "b"] }, { "properties": { "a": { "enum": ["z"] } } }],
    });
    assert_valid(&x, [json!({ "a": "z" }), json!({ "a": "y", "b": "y" })]);
    assert_eq!(
        errors(x, json!({ "a": "y" })),
        [
            r#"spec.x: Invalid value: "": "spec.x" must validate at least one schema (anyOf)"#,
            "spec.x.b: Required value",
        ]
    );
}

#[test]
fn one_of_wants_exactly_one() {
    let x = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "oneOf": [{ "required": ["a"] }, { "required": ["b"] }],
    });
    assert_valid(&x, [json!({ "a": "" }), json!({ "b": "" })]);
    let one = "must validate one and only one schema (oneOf).";
    assert_eq!(
        errors(x.clone(), json!({})),
        [
            format!(r#"spec.x: Invalid value: "": "spec.x" {one} Found none valid"#),
            "spec.x.a: Required value".to_owned(),
        ]
    );
    assert_eq!(
        errors(x, json!({ "a": "", "b": "" })),
        [format!(r#"spec.x: Invalid value: "": "spec.x" {one} Found 2 valid alternatives"#)]
    );
}

#[test]
fn all_of_wants_every_one() {
    let x = json!({ "type": "string", "allOf": [{ "minLength": 2 }, { "pattern": "^a" }] });
    assert_valid(&x, [json!("ab")]);
    assert_eq!(
        errors(x.clone(), json!("a")),
        [
            r#"spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long"#,
            r#"spec.x: Invalid value: "": "spec.x" must validate all the schemas (allOf)"#,
        ]
    );
    assert!(errors(x, json!("b"))[2].ends_with("(allOf). None validated"));
}

#[test]
fn not_wants_none() {
    let x = json!({ "type": "array", "items": { "type": "integer" }, "not": { "items": { "minimum": 5 } } });
    assert_valid(&x, [json!([1, 9])]);
    assert_eq!(
        errors(x, json!([5, 9])),
        [r#"spec.x: Invalid value: "": "spec.x" must not validate the schema (not)"#]
    );
}

#[test]
fn an_embedded_resource_says_what_it_is() {
    let x = json!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    });
    assert_valid(&x, [json!({ "apiVersion": "v1", "kind": "A" })]);
    assert_eq!(
        errors(x.clone(), json!({ "kind": "" })),
        [
            "spec.x.apiVersion: Required value: must not be empty",
            "spec.x.kind: Required value: must not be empty"
        ]
    );
    assert_eq!(errors(x, json!({ "apiVersion": "v1", "kind": 1 })).len(), 1);
}

#[test]
fn errors_name_elements_and_entries() {
    let x = json!({ "type": "object", "additionalProperties": {
        "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } },
    }});
    let errors = errors(x, json!({ "key": [{}, { "n": "" }] }));
    assert!(errors[0].starts_with("spec.x.key[1].n: Invalid value"), "{errors:?}");
}

#[test]
fn a_value_found_elsewhere_is_named_there() {
    let schema = Schema::compile(&json!({ "type": "object", "required": ["a"] })).unwrap();
    let errors = schema.validate_at(&FieldPath::new("items[3]"), &json!({}));
    assert_eq!(errors[0].field.as_str(), "items[3].a");
}

#[test]
fn the_number_of_errors_is_bounded() {
    let x = json!({ "type": "array", "items": { "type": "integer" } });
    assert_eq!(errors(x, Value::from(vec!["a"; 10_000])).len(), ERRORS_MAX);
}

#[test]
fn deeply_nested_junctors_are_not_walked_again_and_again() {
    // Two walks per level would be 2^50 of them.
    let mut x = json!({ "minLength": 1 });
    for _ in 0..50 {
        x = json!({ "anyOf": [x, { "maxLength": 0, "minLength": 1 }] });
    }
    assert_eq!(errors(json!({ "type": "string", "anyOf": [x] }), json!("")).len(), 52);
}

#[test]
fn what_stays_as_it_was_is_not_held_against_a_change() {
    let named = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" }, "size": { "type": "integer", "maximum": 5 } } });
    let schema = Schema::compile(&json!({ "type": "object", "required": ["spec"], "properties": {
        "spec": { "type": "object", "required": ["colour"], "properties": {
            "colour": { "type": "string", "enum": ["red"] },
            "n": { "type": "integer", "maximum": 5 },
            "list": { "type": "array", "items": { "type": "integer", "maximum": 5 } },
            "map": { "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"], "items": named },
        } },
    } }))
    .unwrap();
    let broken = |old: &Value, new: &Value| -> Vec<String> {
        let errors = schema.validate_change(&FieldPath::root(), new, old);
        errors.iter().map(|error| error.field.to_string()).collect()
    };
    let object = |label: &str, spec: Value| json!({ "metadata": { "labels": { "a": label } }, "spec": spec });
    let old = object("x", json!({ "n": 9 }));
    assert_eq!(broken(&old, &object("y", json!({ "n": 9 }))), [""; 0]);
    assert_eq!(broken(&old, &object("y", json!({ "n": 8 }))), ["spec.colour", "spec.n"]);
    assert_eq!(broken(&old, &object("y", json!({ "n": 9, "colour": "red" }))), [""; 0]);
    assert_eq!(broken(&old, &object("y", json!({ "n": 9, "colour": "blue" }))), ["spec.colour"]);
    assert_eq!(broken(&json!({ "metadata": {} }), &json!({ "metadata": { "labels": {} } })), [""; 0]);

    let spec = |list: Value, map: Value| object("x", json!({ "colour": "red", "list": list, "map": map }));
    let old = spec(json!([9, 1]), json!([{ "name": "a", "size": 9 }]));
    let moved = json!([{ "name": "b", "size": 1 }, { "name": "a", "size": 9 }]);
    assert_eq!(broken(&old, &spec(json!([9, 2]), moved)), [""; 0]);
    let more = json!([{ "name": "a", "size": 8 }]);
    assert_eq!(broken(&old, &spec(json!([1, 9]), more)), ["spec.list[1]", "spec.map[0].size"]);
}

#[test]
fn what_was_wrong_in_many_places_hides_nothing_new() {
    let schema = Schema::compile(&json!({ "type": "object", "properties": {
        "spec": { "type": "array", "items": { "type": "integer" } },
    } }))
    .unwrap();
    let old = vec![json!("a"); 2 * ERRORS_MAX];
    let mut new = old.clone();
    new.push(json!("b"));
    let errors = schema.validate_change(&FieldPath::root(), &json!({ "spec": new }), &json!({ "spec": old }));
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].field.as_str(), format!("spec[{}]", 2 * ERRORS_MAX));
}
