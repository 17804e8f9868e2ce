//! Pruning: dropping the fields a schema does not know.
//!
//! `x-kubernetes-preserve-unknown-fields` keeps what is not specified at its level, and pruning goes on
//! inside what is. apiVersion, kind and metadata of the object and of embedded resources always stay.

use concert_model::field::FieldPath;
use serde_json::Value;

use super::path::Path;
use super::schema::{Additional, Schema};

/// Most dropped fields that are named. The rest is dropped too; an answer need not name every one.
pub const DROPPED_MAX: usize = 1000;

impl Schema {
    /// Drops unknown fields and returns where they were, at most [`DROPPED_MAX`] of them.
    pub fn prune(&self, value: &mut Value) -> Vec<FieldPath> {
        let mut dropped = Vec::new();
        prune(Some(self), Unknown::Drop, value, &Path::Root(&FieldPath::root()), &mut dropped);
        dropped
    }
}

/// What happens to unknown fields right below the value at hand.
#[derive(Clone, Copy, PartialEq)]
enum Unknown {
    Drop,
    Keep,
}

/// `unknown` is what the list around the value says; the value's own schema may keep more.
fn prune(
    schema: Option<&Schema>,
    unknown: Unknown,
    value: &mut Value,
    path: &Path<'_>,
    dropped: &mut Vec<FieldPath>,
) {
    let unknown = if schema.is_some_and(|schema| schema.preserves_unknown) { Unknown::Keep } else { unknown };
    match value {
        Value::Object(object) => object.retain(|name, value| {
            let path = path.child(name);
            match schema.map_or(Fate::Unknown, |schema| fate(schema, name)) {
                Fate::Keep => true,
                Fate::Enter(schema) => {
                    prune(schema, Unknown::Drop, value, &path, dropped);
                    true
                }
                Fate::Unknown if unknown == Unknown::Keep => true,
                Fate::Unknown => {
                    if dropped.len() < DROPPED_MAX {
                        dropped.push(path.field());
                    }
                    false
                }
            }
        }),
        Value::Array(list) => {
            for (index, element) in list.iter_mut().enumerate() {
                prune(schema.and_then(Schema::items), unknown, element, &path.index(index), dropped);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What becomes of one field.
enum Fate<'a> {
    Keep,
    /// Keep, and prune inside; without a schema nothing inside is known.
    Enter(Option<&'a Schema>),
    Unknown,
}

fn fate<'a>(schema: &'a Schema, name: &str) -> Fate<'a> {
    if schema.is_resource() && matches!(name, "apiVersion" | "kind" | "metadata") {
        return Fate::Keep;
    }
    match (schema.property(name), &schema.additional) {
        (Some(property), _) => Fate::Enter(Some(property)),
        (None, Additional::Any) => Fate::Enter(None),
        (None, Additional::Each(_) | Additional::Unspecified) => Fate::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pruned(spec: Value, mut object: Value) -> (Value, Vec<String>) {
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let dropped = Schema::compile(&schema).unwrap().prune(&mut object);
        (object, dropped.iter().map(|path| path.as_str().to_owned()).collect())
    }

    #[test]
    fn drops_unknown_fields_and_says_which() {
        let spec = json!({ "type": "object", "properties": {
            "a": { "type": "string" },
            "list": { "type": "array", "items": {
                "type": "object", "properties": { "a": { "type": "string" } },
            }},
            "map": { "type": "object", "additionalProperties": {
                "type": "object", "properties": { "a": { "type": "string" } },
            }},
        }});
        let (object, dropped) = pruned(
            spec,
            json!({ "x": 1, "spec": {
                "a": "1", "b": 2, "list": [{ "a": "1", "c": 3 }], "map": { "k": { "a": "1", "d": 4 } },
            }}),
        );
        assert_eq!(
            object,
            json!({ "spec": { "a": "1", "list": [{ "a": "1" }], "map": { "k": { "a": "1" } } } })
        );
        assert_eq!(dropped, ["spec.b", "spec.list[0].c", "spec.map.k.d", "x"]);
    }

    #[test]
    fn keeps_what_every_object_has() {
        let object = json!({ "apiVersion": "v1", "kind": "A", "metadata": { "labels": { "a": "b" } } });
        let (kept, dropped) = pruned(json!({ "type": "object" }), object.clone());
        assert_eq!(kept, object);
        assert!(dropped.is_empty());
        let (kept, _) = pruned(json!({ "type": "object" }), json!({ "spec": { "kind": "A" } }));
        assert_eq!(kept, json!({ "spec": {} }));
    }

    #[test]
    fn keeps_unknown_fields_where_told_and_prunes_again_inside_known_ones() {
        let spec = json!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": { "known": { "type": "object", "properties": { "a": { "type": "string" } } } },
        });
        let (object, dropped) =
            pruned(spec, json!({ "spec": { "free": { "x": 1 }, "known": { "a": "1", "x": 1 } } }));
        assert_eq!(object, json!({ "spec": { "free": { "x": 1 }, "known": { "a": "1" } } }));
        assert_eq!(dropped, ["spec.known.x"]);
    }

    #[test]
    fn a_field_of_any_shape_is_kept_whole() {
        let spec = json!({ "x-kubernetes-preserve-unknown-fields": true });
        let object = json!({ "spec": [{ "a": [{ "b": 1 }] }] });
        assert_eq!(pruned(spec, object.clone()), (object, vec![]));
    }

    #[test]
    fn an_embedded_resource_keeps_its_own_metadata() {
        let spec = json!({
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "properties": { "spec": { "type": "object" } },
        });
        let (object, dropped) = pruned(
            spec,
            json!({ "spec": { "apiVersion": "v1", "kind": "A", "metadata": { "name": "a" }, "data": 1 } }),
        );
        assert_eq!(
            object,
            json!({ "spec": { "apiVersion": "v1", "kind": "A", "metadata": { "name": "a" } } })
        );
        assert_eq!(dropped, ["spec.data"]);
    }

    #[test]
    fn additional_properties_of_any_kind_keep_scalars_only() {
        let spec = json!({ "type": "object", "additionalProperties": true });
        let (object, dropped) = pruned(spec, json!({ "spec": { "a": 1, "b": { "c": 1 } } }));
        assert_eq!(object, json!({ "spec": { "a": 1, "b": {} } }));
        assert_eq!(dropped, ["spec.b.c"]);
    }

    #[test]
    fn names_a_bounded_number_of_fields() {
        let many: serde_json::Map<String, Value> =
            (0..5000).map(|number| (format!("f{number}"), Value::Null)).collect();
        let (object, dropped) = pruned(json!({ "type": "object" }), json!({ "spec": many }));
        assert_eq!(object, json!({ "spec": {} }));
        assert_eq!(dropped.len(), DROPPED_MAX);
    }
}
