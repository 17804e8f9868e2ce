//! What holds for every schema and every value.

use concert_schema::Schema;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

const NAMES: [&str; 6] = ["a", "b", "c", "spec", "metadata", "kind"];

const FORMATS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-short-name",
    "k8s-long-name",
    "mac",
    "quantity",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-10i64..10).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zé0-9-]{0,6}".prop_map(Value::from),
        select(vec![
            "object",
            "array",
            "string",
            "integer",
            "map",
            "set",
            "atomic",
            "date",
            "^a[b-c]*$",
            "("
        ])
        .prop_map(Value::from),
    ]
}

fn object(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Object(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Any JSON, with names that schemas know.
fn any_json() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(select(NAMES.to_vec()), inner, 0..5).prop_map(object),
        ]
    })
}

/// Objects with the keywords of schemas and anything for a value. Few are schemas; none may do harm.
fn any_keywords() -> impl Strategy<Value = Value> {
    const KEYWORDS: [&str; 26] = [
        "type",
        "properties",
        "additionalProperties",
        "items",
        "required",
        "enum",
        "default",
        "nullable",
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxItems",
        "pattern",
        "format",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-validations",
    ];
    any_json().prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(select(NAMES.to_vec()), inner.clone(), 0..4).prop_map(object),
            btree_map(select(KEYWORDS.to_vec()), inner, 0..6).prop_map(object),
        ]
    })
}

/// A value validation, as a node or a branch may have it.
fn any_check() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-5i64..5, any::<bool>()).prop_map(|(min, open)| json!({ "minimum": min, "exclusiveMinimum": open })),
        (0u64..5).prop_map(|max| json!({ "maxLength": max, "maxItems": max, "maxProperties": max })),
        (1u64..5).prop_map(|factor| json!({ "multipleOf": factor })),
        vec(scalar(), 1..4).prop_map(|values| json!({ "enum": values })),
        vec(select(vec!["a", "b", "c"]), 0..3).prop_map(|names| json!({ "required": names })),
        select(vec!["date", "ipv4", "uri", "email", "duration", "byte", "uuid", "quantity", "hostname"])
            .prop_map(|format| json!({ "format": format })),
        select(vec!["^a", "[0-9]+", r"\d{2}", "é"]).prop_map(|pattern| json!({ "pattern": pattern })),
    ]
}

fn any_branch() -> impl Strategy<Value = Value> {
    any_check().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (select(vec!["allOf", "anyOf", "oneOf"]), vec(inner.clone(), 1..3))
                .prop_map(|(junctor, branches)| json!({ junctor: branches })),
            inner.clone().prop_map(|branch| json!({ "not": branch })),
            inner.clone().prop_map(|branch| json!({ "items": branch })),
            inner.prop_map(|branch| json!({ "properties": { "a": branch } })),
        ]
    })
}

/// A structural schema for a field.
fn any_schema() -> impl Strategy<Value = Value> {
    let kinds = select(vec!["string", "integer", "number", "boolean"]);
    let leaf = prop_oneof![
        kinds.prop_map(|kind| json!({ "type": kind })),
        Just(json!({ "x-kubernetes-int-or-string": true })),
        Just(json!({ "x-kubernetes-preserve-unknown-fields": true })),
    ];
    let node = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), select(vec!["atomic", "set"])).prop_map(|(items, list)| {
                let is_plain = !matches!(items["type"].as_str(), Some("object" | "array"));
                let list = if is_plain && items["nullable"].is_null() { list } else { "atomic" };
                json!({ "type": "array", "items": items, "x-kubernetes-list-type": list })
            }),
            inner.clone().prop_map(|each| json!({ "type": "object", "additionalProperties": each })),
            (btree_map(select(vec!["a", "b", "c"]), inner, 0..4), any::<bool>()).prop_map(
                |(fields, keeps)| {
                    let mut schema = json!({ "type": "object", "properties": object(fields) });
                    if keeps {
                        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
                    }
                    schema
                }
            ),
        ]
    });
    (node, proptest::option::of(any_branch()), any::<bool>()).prop_map(|(mut node, branch, nullable)| {
        if let Some(branch) = branch {
            node["allOf"] = json!([branch]);
        }
        if nullable {
            node["nullable"] = json!(true);
        }
        node
    })
}

fn compiled(spec: &Value) -> Schema {
    let source = json!({ "type": "object", "properties": { "spec": spec } });
    Schema::compile(&source).unwrap_or_else(|errors| panic!("{source}: {errors:?}"))
}

/// A schema, a value that is valid under it, and the value with unknown fields strewn in.
#[derive(Clone, Debug)]
struct Fitting {
    schema: Value,
    value: Value,
    noisy: Value,
}

fn plain(schema: Value, value: impl Into<Value>) -> Fitting {
    let value = value.into();
    Fitting { schema, noisy: value.clone(), value }
}

/// How a field of [`fitting`] is there: it may be left out where it is optional or has a default.
#[derive(Clone, Copy, Debug)]
struct Presence {
    given: bool,
    required: bool,
    defaulted: bool,
}

fn fitting() -> impl Strategy<Value = Fitting> {
    let leaf = prop_oneof![
        (-5i64..5, 0i64..5).prop_map(|(low, over)| {
            plain(json!({ "type": "integer", "minimum": low, "maximum": low + 5 }), low + over)
        }),
        "[a-z]{1,4}".prop_map(|text| {
            plain(json!({ "type": "string", "maxLength": 4, "pattern": "^[a-z]+$" }), text)
        }),
        any::<bool>().prop_map(|flag| plain(json!({ "type": "boolean" }), flag)),
        Just(plain(json!({ "type": "string", "nullable": true }), Value::Null)),
        Just(plain(json!({ "x-kubernetes-int-or-string": true }), "50%")),
        any_json().prop_map(|value| {
            plain(json!({ "x-kubernetes-preserve-unknown-fields": true, "nullable": true }), value)
        }),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        let presence = (any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(given, required, defaulted)| Presence { given, required, defaulted });
        let fields = btree_map(select(NAMES.to_vec()), (inner.clone(), presence), 0..4);
        prop_oneof![
            (inner.clone(), 0usize..3).prop_map(|(entry, count)| Fitting {
                schema: json!({ "type": "array", "items": entry.schema, "maxItems": count }),
                value: vec![entry.value; count].into(),
                noisy: vec![entry.noisy; count].into(),
            }),
            inner.prop_map(|entry| Fitting {
                schema: json!({ "type": "object", "additionalProperties": entry.schema }),
                value: json!({ "k": entry.value }),
                noisy: json!({ "k": entry.noisy }),
            }),
            (fields, proptest::option::of(any_json())).prop_map(|(fields, noise)| with_fields(fields, noise)),
        ]
    })
}

fn with_fields(
    fields: std::collections::BTreeMap<&'static str, (Fitting, Presence)>,
    noise: Option<Value>,
) -> Fitting {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let (mut value, mut noisy) = (Map::new(), Map::new());
    for (name, (mut field, presence)) in fields {
        if presence.defaulted {
            field.schema["default"] = field.value.clone();
        }
        // A null default is no default.
        let defaulted = presence.defaulted && !field.value.is_null();
        if presence.required && (presence.given || defaulted) {
            required.push(name);
        }
        if presence.given {
            value.insert(name.to_owned(), field.value);
            noisy.insert(name.to_owned(), field.noisy);
        }
        properties.insert(name.to_owned(), field.schema);
    }
    noisy.extend(noise.map(|noise| ("unknown".to_owned(), noise)));
    Fitting {
        schema: json!({ "type": "object", "properties": properties, "required": required }),
        value: value.into(),
        noisy: noisy.into(),
    }
}

proptest! {
    #[test]
    fn compiling_anything_ends_in_an_answer(source in any_keywords(), value in any_json()) {
        for source in [source.clone(), json!({ "type": "object", "properties": { "spec": source } })] {
            if let Ok(schema) = Schema::compile(&source) {
                schema.validate(&value);
                schema.prune(&mut value.clone());
                schema.default(&mut value.clone());
            }
        }
    }

    #[test]
    fn validating_anything_ends_in_an_answer(spec in any_schema(), value in any_json()) {
        let schema = compiled(&spec);
        schema.validate(&value);
        for error in schema.validate(&json!({ "spec": value })) {
            prop_assert!(error.to_string().starts_with("spec"), "{}", error);
        }
    }

    #[test]
    fn any_pattern_and_any_text_end_in_an_answer(
        pattern in "([\\[\\]\\\\{}()|*+?^$&~:pPxdwbé0-9a,-]){0,12}|.{0,12}",
        text in any::<String>(),
    ) {
        let spec = json!({ "type": "string", "pattern": pattern });
        let source = json!({ "type": "object", "properties": { "spec": spec } });
        if let Ok(schema) = Schema::compile(&source) {
            schema.validate(&json!({ "spec": text }));
        }
    }

    #[test]
    fn any_format_and_any_text_end_in_an_answer(
        format in select(FORMATS.to_vec()),
        text in "[0-9a-zé:/.@\"\\\\%+<>\\[\\]TZ -]{0,30}|.{0,12}",
    ) {
        compiled(&json!({ "type": "string", "format": format })).validate(&json!({ "spec": text }));
    }

    #[test]
    fn pruning_twice_is_pruning_once(spec in any_schema(), value in any_json()) {
        let schema = compiled(&spec);
        let mut once = json!({ "spec": value });
        let untouched = once.clone();
        let dropped = schema.prune(&mut once);
        prop_assert_eq!(dropped.is_empty(), once == untouched);
        let mut twice = once.clone();
        prop_assert!(schema.prune(&mut twice).is_empty());
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(fitting in fitting(), value in any_json()) {
        let schema = compiled(&fitting.schema);
        for value in [value, fitting.noisy] {
            let mut once = json!({ "spec": value });
            schema.default(&mut once);
            let mut twice = once.clone();
            schema.default(&mut twice);
            prop_assert_eq!(once, twice);
        }
    }

    #[test]
    fn a_valid_value_is_valid_after_pruning_and_defaulting(fitting in fitting()) {
        let schema = compiled(&fitting.schema);
        let mut object = json!({ "spec": fitting.noisy });
        schema.prune(&mut object);
        prop_assert_eq!(&object["spec"], &fitting.value);
        schema.default(&mut object);
        prop_assert_eq!(schema.validate(&object), vec![]);
        prop_assert!(schema.prune(&mut object).is_empty());
    }
}
