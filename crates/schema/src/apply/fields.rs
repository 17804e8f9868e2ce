//! A set of fields, in memory and as `FieldsV1`.
//!
//! A tree of steps: `f:name` for a field, `k:{…}` for the element of a list with these keys, `v:…` for
//! the element of a set, `i:0` for an index. Steps are kept as written, in one canonical form, so that
//! equal places are equal texts. A place is in the set when its own mark is there, whatever lies below.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

/// A set of places, seen from one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// The place itself is in the set.
    pub(super) is_owned: bool,
    /// What is in the set below, by step. None of them is empty.
    below: BTreeMap<String, Fields>,
}

impl Fields {
    /// Just the place itself.
    pub(super) fn leaf() -> Self {
        Self { is_owned: true, below: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_owned && self.below.is_empty()
    }

    pub(super) fn below(&self) -> impl Iterator<Item = (&str, &Fields)> {
        self.below.iter().map(|(step, fields)| (step.as_str(), fields))
    }

    pub(super) fn get(&self, step: &str) -> Option<&Fields> {
        self.below.get(step)
    }

    /// Puts `fields` below `step`, replacing what was there.
    pub(super) fn put(&mut self, step: impl Into<String>, fields: Fields) {
        let step = step.into();
        if fields.is_empty() {
            self.below.remove(&step);
        } else {
            self.below.insert(step, fields);
        }
    }

    /// Changes what is below `step`, if there is anything.
    pub(super) fn edit(&mut self, step: &str, change: impl FnOnce(&mut Fields)) {
        if let Some(mut fields) = self.below.remove(step) {
            change(&mut fields);
            self.put(step, fields);
        }
    }

    pub(super) fn union(&mut self, other: &Fields) {
        self.is_owned |= other.is_owned;
        for (step, theirs) in &other.below {
            match self.below.get_mut(step) {
                Some(ours) => ours.union(theirs),
                None => {
                    self.below.insert(step.clone(), theirs.clone());
                }
            }
        }
    }

    /// Takes the places of `other` out; those below them stay.
    pub(super) fn subtract(&mut self, other: &Fields) {
        self.is_owned &= !other.is_owned;
        for (step, theirs) in &other.below {
            self.edit(step, |ours| ours.subtract(theirs));
        }
    }

    pub(super) fn intersection(&self, other: &Fields) -> Fields {
        let mut both = Fields { is_owned: self.is_owned && other.is_owned, below: BTreeMap::new() };
        for (step, ours) in &self.below {
            if let Some(theirs) = other.below.get(step) {
                both.put(step.as_str(), ours.intersection(theirs));
            }
        }
        both
    }

    /// The places as Kubernetes prints them: `.spec.ports[name="http"].port`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, place: &str, paths: &mut Vec<String>) {
        if self.is_owned {
            paths.push(place.to_owned());
        }
        for (step, fields) in &self.below {
            fields.collect_paths(&format!("{place}{}", shown(step)), paths);
        }
    }

    /// As `FieldsV1`.
    pub(super) fn to_value(&self) -> Value {
        let mut map = Map::new();
        if self.is_owned && !self.below.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (step, fields) in &self.below {
            map.insert(step.clone(), fields.to_value());
        }
        Value::Object(map)
    }

    /// From `FieldsV1`; none when it is malformed.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        let mut fields = Fields::default();
        for (step, inner) in value.as_object()? {
            if step == "." {
                fields.is_owned = true;
                continue;
            }
            let mut inner = Fields::from_value(inner)?;
            inner.is_owned |= inner.below.is_empty();
            fields.below.entry(canonical_step(step)?).or_default().union(&inner);
        }
        Some(fields)
    }
}

/// The step to a field.
pub(super) fn field_step(name: &str) -> String {
    format!("f:{name}")
}

/// The step to the element of a set.
pub(super) fn value_step(value: &Value) -> String {
    format!("v:{}", canonical(value))
}

/// The step to the element of a list that has these keys.
pub(super) fn key_step(keys: BTreeMap<&str, &Value>) -> String {
    let keys = keys.into_iter().map(|(name, value)| (name.to_owned(), canonical(value)));
    format!("k:{}", Value::Object(keys.collect()))
}

/// One form for values that are equal: fields sorted, `1.0` as `1`.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(canonical_number(number)),
        Value::Array(list) => list.iter().map(canonical).collect(),
        Value::Object(object) => {
            let sorted: BTreeMap<&String, &Value> = object.iter().collect();
            Value::Object(sorted.into_iter().map(|(name, value)| (name.clone(), canonical(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

fn canonical_number(number: &Number) -> Number {
    /// Up to here every whole float is the integer it was written as.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT_MAX => {
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

fn canonical_step(step: &str) -> Option<String> {
    let (kind, rest) = step.split_at_checked(2)?;
    match kind {
        "f:" => Some(step.to_owned()),
        "v:" => serde_json::from_str(rest).ok().map(|value| value_step(&value)),
        "k:" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
            Some(key_step(keys.iter().map(|(name, value)| (name.as_str(), value)).collect()))
        }
        "i:" => rest.parse::<i64>().ok().map(|index| format!("i:{index}")),
        _ => None,
    }
}

fn shown(step: &str) -> String {
    let (kind, rest) = step.split_at_checked(2).unwrap_or((step, ""));
    match kind {
        "f:" => format!(".{rest}"),
        "v:" => format!("[={rest}]"),
        "k:" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).unwrap_or_default();
            let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        _ => format!("[{rest}]"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        Fields::from_value(&value).unwrap()
    }

    #[test]
    fn survives_the_trip_to_json_and_back() {
        let value = json!({
            "f:metadata": { "f:labels": { ".": {}, "f:a": {} } },
            "f:spec": { "f:ports": { "k:{\"name\":\"a\",\"port\":1}": { ".": {}, "f:port": {} } },
                        "f:set": { "v:\"x\"": {}, "v:1": {} }, "f:i": { "i:0": {} } },
        });
        assert_eq!(fields(value.clone()).to_value(), value);
    }

    #[test]
    fn one_place_has_one_form() {
        let written = fields(json!({ "f:a": { "k:{ \"b\": 1.0, \"a\": \"x\" }": {}, "v: 1.0": {} } }));
        assert_eq!(written.to_value(), json!({ "f:a": { "k:{\"a\":\"x\",\"b\":1}": {}, "v:1": {} } }));
    }

    #[test]
    fn malformed_sets_are_refused() {
        for value in
            [json!(1), json!({ "a": {} }), json!({ "f:a": 1 }), json!({ "k:[]": {} }), json!({ "é": {} })]
        {
            assert_eq!(Fields::from_value(&value), None, "{value}");
        }
    }

    #[test]
    fn places_are_added_and_taken_one_by_one() {
        let mut set = fields(json!({ "f:a": { ".": {}, "f:b": {}, "f:c": {} } }));
        set.subtract(&fields(json!({ "f:a": { "f:b": {} }, "f:x": {} })));
        assert_eq!(set, fields(json!({ "f:a": { ".": {}, "f:c": {} } })));
        set.subtract(&fields(json!({ "f:a": {} })));
        assert_eq!(set, fields(json!({ "f:a": { "f:c": {} } })));
        assert!(set.intersection(&fields(json!({ "f:a": {} }))).is_empty());
        set.subtract(&fields(json!({ "f:a": { "f:c": {} } })));
        assert!(set.is_empty());
        set.union(&fields(json!({ "f:z": {} })));
        assert_eq!(set, fields(json!({ "f:z": {} })));
    }

    #[test]
    fn paths_read_like_kubernetes() {
        let set = fields(json!({ "f:spec": {
            "f:ports": { "k:{\"name\":\"http\",\"port\":80}": { "f:target": {} } },
            "f:set": { "v:\"x\"": {} },
        }}));
        assert_eq!(set.paths(), [".spec.ports[name=\"http\",port=80].target", ".spec.set[=\"x\"]"]);
    }
}
