//! Definitions without what only people read in them: most of their text. All of a cluster are kept, and one
//! with large providers has very many.

use serde_json::{Map, Value};

/// The whole definition once more, as text.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Drops it from a definition. Who changes one on the server must patch it: an update would drop it there.
pub(super) fn drop_prose(definition: &mut Map<String, Value>) {
    let annotations = definition.get_mut("metadata").and_then(|it| it.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.remove(APPLIED);
    }
    let versions = definition.get_mut("spec").and_then(|it| it.get_mut("versions"));
    for version in versions.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            drop_descriptions(schema);
        }
    }
}

/// From a schema and those inside it: a property may be called `description`, and a default may have one.
fn drop_descriptions(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.remove("description");
    for (field, value) in fields {
        match field.as_str() {
            "properties" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, it)| drop_descriptions(it));
            }
            "allOf" | "anyOf" | "oneOf" => {
                value.as_array_mut().into_iter().flatten().for_each(drop_descriptions);
            }
            "items" | "additionalProperties" | "not" => drop_descriptions(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_describes_is_dropped_from_a_schema() {
        let mut definition = json!({
            "metadata": {"name": "a", "annotations": {(APPLIED): "{}", "other": "stays"}},
            "spec": {"names": {"kind": "A"}, "versions": [{"name": "v1",
                "additionalPrinterColumns": [{"description": "How many."}],
                "schema": {"openAPIV3Schema": {"type": "object", "description": "Long.", "properties": {
                    "description": {"type": "string", "description": "Long.", "default": "none"},
                    "list": {"type": "array", "items": {"type": "object", "description": "Long.",
                        "default": {"description": "data"}}},
                    "map": {"additionalProperties": {"description": "Long.", "type": "string"}},
                    "open": {"additionalProperties": true, "anyOf": [{"description": "Long.", "type": "string"}]},
                }}}}, {"name": "v2"}]},
        });
        drop_prose(definition.as_object_mut().unwrap());
        let expected = json!({
            "metadata": {"name": "a", "annotations": {"other": "stays"}},
            "spec": {"names": {"kind": "A"}, "versions": [{"name": "v1",
                "additionalPrinterColumns": [{"description": "How many."}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "description": {"type": "string", "default": "none"},
                    "list": {"type": "array", "items": {"type": "object", "default": {"description": "data"}}},
                    "map": {"additionalProperties": {"type": "string"}},
                    "open": {"additionalProperties": true, "anyOf": [{"type": "string"}]},
                }}}}, {"name": "v2"}]},
        });
        assert_eq!(definition, expected);
    }
}
