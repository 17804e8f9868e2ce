//! Defaulting: what a user left out and the schema knows.
//!
//! Top down, so that the defaults inside a default apply too. A null where null is no value counts as
//! left out: it is replaced by the default, or dropped where there is none.

use serde_json::{Map, Value};

use super::schema::Schema;

impl Schema {
    /// Fills in the defaults of missing fields. Doing it twice changes nothing more.
    pub fn default(&self, value: &mut Value) {
        match value {
            Value::Object(object) => self.default_object(object),
            Value::Array(list) => {
                let Some(items) = &self.items else { return };
                for element in list {
                    items.replace_null(element);
                    items.default(element);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn default_object(&self, object: &mut Map<String, Value>) {
        for (name, property) in &self.properties {
            if let Some(default) = &property.default
                && !object.contains_key(name)
            {
                object.insert(name.clone(), default.clone());
            }
        }
        object.retain(|name, value| {
            let Some(property) = self.property(name) else { return true };
            property.replace_null(value);
            property.default(value);
            property.nullable || !value.is_null()
        });
    }

    fn replace_null(&self, value: &mut Value) {
        if value.is_null()
            && !self.nullable
            && let Some(default) = &self.default
        {
            *value = default.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn defaulted(spec: Value, mut object: Value) -> Value {
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        Schema::compile(&schema).unwrap().default(&mut object);
        object
    }

    #[test]
    fn fills_in_a_missing_field_and_leaves_a_present_one() {
        let spec = json!({ "type": "object", "properties": {
            "a": { "type": "integer", "default": 1 },
            "b": { "type": "integer", "default": 2 },
            "c": { "type": "integer" },
        }});
        assert_eq!(defaulted(spec, json!({ "spec": { "b": 0 } })), json!({ "spec": { "a": 1, "b": 0 } }));
    }

    #[test]
    fn does_not_invent_the_object_around_a_default() {
        let spec = json!({ "type": "object", "properties": { "a": { "type": "integer", "default": 1 } } });
        assert_eq!(defaulted(spec, json!({})), json!({}));
    }

    #[test]
    fn defaults_inside_a_default_apply() {
        let spec = json!({
            "type": "object",
            "default": {},
            "properties": { "a": { "type": "integer", "default": 1 } },
        });
        assert_eq!(defaulted(spec, json!({})), json!({ "spec": { "a": 1 } }));
    }

    #[test]
    fn reaches_into_lists_and_maps() {
        let entry = json!({ "type": "object", "properties": { "a": { "type": "integer", "default": 1 } } });
        let spec = json!({ "type": "object", "properties": {
            "list": { "type": "array", "items": entry },
            "map": { "type": "object", "additionalProperties": entry },
        }});
        assert_eq!(
            defaulted(spec, json!({ "spec": { "list": [{}, { "a": 2 }], "map": { "k": {} } } })),
            json!({ "spec": { "list": [{ "a": 1 }, { "a": 2 }], "map": { "k": { "a": 1 } } } }),
        );
    }

    #[test]
    fn null_counts_as_missing_unless_it_is_a_value() {
        let spec = json!({ "type": "object", "properties": {
            "with": { "type": "string", "default": "x" },
            "without": { "type": "string" },
            "nullable": { "type": "string", "nullable": true, "default": "x" },
            "list": { "type": "array", "items": { "type": "string", "default": "x" } },
            "map": { "type": "object", "additionalProperties": { "type": "string", "default": "x" } },
            "plain": { "type": "object", "additionalProperties": { "type": "string" } },
        }});
        let object = json!({ "spec": {
            "with": null, "without": null, "nullable": null, "unknown": null,
            "list": [null], "map": { "k": null }, "plain": { "k": null },
        }});
        assert_eq!(
            defaulted(spec, object),
            json!({ "spec": {
                "with": "x", "nullable": null, "unknown": null,
                "list": ["x"], "map": { "k": "x" }, "plain": {},
            }}),
        );
    }
}
