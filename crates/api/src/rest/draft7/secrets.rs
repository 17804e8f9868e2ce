//! What must not leave with an event: fields that a schema marks, and those that look like secrets.

use serde_json::Value;

use super::defaults::behind;

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

/// Takes secrets out of `value`, as deep as it goes.
pub(super) fn remove(schema: Option<&Value>, value: &mut Value) {
    remove_inside(schema, schema, value);
}

fn remove_inside(root: Option<&Value>, schema: Option<&Value>, value: &mut Value) {
    let schema = schema.zip(root).map(|(schema, root)| behind(root, schema));
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !is_secret_name(name) && !is_marked(root, property(schema, name)));
            for (name, value) in fields.iter_mut() {
                remove_inside(root, property(schema, name), value);
            }
        }
        Value::Array(items) => {
            let schema = schema.and_then(|it| it.get("items"));
            items.iter_mut().for_each(|item| remove_inside(root, schema, item));
        }
        _ => {}
    }
}

/// What a schema, or a part of it that always counts, says of a field.
fn property<'a>(schema: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    let schema = schema?;
    let own = schema.get("properties").and_then(|it| it.get(name));
    let parts = || ["allOf", "anyOf", "oneOf"].iter().filter_map(|it| schema.get(it)?.as_array()).flatten();
    own.or_else(|| parts().find_map(|part| part.get("properties")?.get(name)))
        .or_else(|| schema.get("additionalProperties").filter(|it| it.is_object()))
}

fn is_marked(root: Option<&Value>, schema: Option<&Value>) -> bool {
    let (Some(root), Some(schema)) = (root, schema) else { return false };
    let is = |schema: &Value| {
        schema.get("writeOnly") == Some(&Value::Bool(true))
            || schema.get("format").is_some_and(|it| it == "password")
    };
    is(schema) || is(behind(root, schema))
}

fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    WORDS.iter().any(|word| plain.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        remove(Some(&schema), &mut value);
        assert_eq!(value, json!({"users": [{"name": "a"}], "host": {"port": 1}}));
    }
}
