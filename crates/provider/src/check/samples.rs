//! Objects to run the checks with: from a file, or made from a schema.

use concert_model::Object;
use serde_json::{Map, Value, json};

use crate::error::{Class, Error};
use crate::handshake::Served;

/// One object, and what it is to be changed into.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What is created.
    pub object: Object,
    /// The same object as it is to be after an update, where the sample has one.
    pub changed: Option<Object>,
}

/// Reads YAML or JSON documents. A second document with the same kind and name is the change of the first.
///
/// # Errors
/// [`Class::Terminal`], with the place that cannot be read.
pub fn read(text: &str) -> Result<Vec<Sample>, Error> {
    let terminal =
        |e: &dyn std::fmt::Display| Error::new(Class::Terminal, format!("cannot read the samples: {e}"));
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|e| terminal(&e))?;
    let mut samples: Vec<Sample> = Vec::new();
    for document in documents.into_iter().filter(|it| !it.is_null()) {
        let object = Object::from_value(document).map_err(|e| terminal(&e))?;
        let same = |it: &&mut Sample| it.object.key().ok() == object.key().ok();
        match samples.iter_mut().find(same) {
            Some(sample) => sample.changed = Some(object),
            None => samples.push(Sample { object, changed: None }),
        }
    }
    Ok(samples)
}

/// The sample of a kind, or one made from its schema.
pub(super) fn find(samples: &[Sample], served: &Served) -> Option<Sample> {
    let given = samples.iter().find(|it| it.object.gvk().is_ok_and(|kind| kind == served.kind));
    if let Some(sample) = given {
        return Some(sample.clone());
    }
    let schema = served.schema.as_ref()?;
    let mut object = Object::new(&served.kind, "", "concert-check");
    let spec = schema.pointer("/properties/spec").map_or(json!({}), value);
    object.set("spec", spec);
    Some(Sample { object, changed: None })
}

/// The smallest value that a schema asks for: required fields only, defaults and first choices.
fn value(schema: &Value) -> Value {
    if let Some(given) = schema.get("default").or_else(|| schema.pointer("/enum/0")) {
        return given.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => Value::Object(fields(schema)),
        Some("array") => {
            let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            let item = schema.get("items").map_or(Value::Null, value);
            (0..count).map(|_| item.clone()).collect()
        }
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(false),
        _ => json!("sample"),
    }
}

fn fields(schema: &Value) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let names = required.filter_map(Value::as_str);
    names.filter_map(|name| Some((name.to_owned(), value(schema.get("properties")?.get(name)?)))).collect()
}
