//! The keywords of one schema node: which there are, and reading their values.
//!
//! Null counts as absent, as it does for Kubernetes.

use concert_model::field::{FieldError, Rule};
use serde_json::{Map, Value};

use super::Compiler;
use crate::structural::path::Path;

/// Keywords that mean something to a structural schema, or nothing to anybody.
const KNOWN: [&str; 37] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Keywords of OpenAPI and JSON Schema that a structural schema cannot have.
const UNSUPPORTED: [&str; 18] = [
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalItems",
    "const",
    "contains",
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "if",
    "patternProperties",
    "propertyNames",
    "readOnly",
    "writeOnly",
    "xml",
];

/// One node's keywords.
#[derive(Clone, Copy)]
pub(super) struct Keywords<'a> {
    map: &'a Map<String, Value>,
    path: &'a Path<'a>,
}

impl<'a> Keywords<'a> {
    /// The keywords of `source`, which must be an object; those nobody knows are reported.
    pub(super) fn read(source: &'a Value, path: &'a Path<'a>, compiler: &mut Compiler) -> Option<Self> {
        let Value::Object(map) = source else {
            compiler.add(wrong_type(path, source, "object"));
            return None;
        };
        for keyword in map.keys() {
            let place = path.child(keyword);
            if UNSUPPORTED.contains(&keyword.as_str()) {
                compiler.forbid(&place, format!("{keyword} is not supported"));
            } else if !KNOWN.contains(&keyword.as_str()) {
                compiler.forbid(&place, "is not a keyword of a structural schema");
            }
        }
        Some(Self { map, path })
    }

    /// The keywords of a CEL rule, which has its own few.
    pub(super) fn of_rule(
        source: &'a Value,
        path: &'a Path<'a>,
        known: &[&str],
        compiler: &mut Compiler,
    ) -> Option<Self> {
        let Value::Object(map) = source else {
            compiler.add(wrong_type(path, source, "object"));
            return None;
        };
        for keyword in map.keys().filter(|keyword| !known.contains(&keyword.as_str())) {
            compiler.forbid(&path.child(keyword), "is not a keyword of a validation rule");
        }
        Some(Self { map, path })
    }

    /// Where the node is.
    pub(super) fn path(&self) -> &'a Path<'a> {
        self.path
    }

    pub(super) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.map.get(keyword).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, keyword: &str) -> bool {
        self.get(keyword).is_some()
    }

    pub(super) fn text(&self, keyword: &str, compiler: &mut Compiler) -> Option<&'a str> {
        self.typed(keyword, "string", Value::as_str, compiler)
    }

    /// False when absent.
    pub(super) fn flag(&self, keyword: &str, compiler: &mut Compiler) -> bool {
        self.typed(keyword, "boolean", Value::as_bool, compiler).unwrap_or(false)
    }

    /// A count of something: zero or more. `2.0` is one, as for Kubernetes.
    pub(super) fn count(&self, keyword: &str, compiler: &mut Compiler) -> Option<u64> {
        let whole = |value: &Value| {
            let float = value.as_f64().filter(|float| float.fract() == 0.0 && (0.0..9e15).contains(float));
            value.as_u64().or(float.map(|float| float as u64))
        };
        self.typed(keyword, "integer of at least 0", whole, compiler)
    }

    pub(super) fn list(&self, keyword: &str, compiler: &mut Compiler) -> &'a [Value] {
        self.typed(keyword, "array", Value::as_array, compiler).map_or(&[], Vec::as_slice)
    }

    pub(super) fn object(&self, keyword: &str, compiler: &mut Compiler) -> Option<&'a Map<String, Value>> {
        self.typed(keyword, "object", Value::as_object, compiler)
    }

    pub(super) fn texts(&self, keyword: &str, compiler: &mut Compiler) -> Vec<String> {
        let list = self.list(keyword, compiler);
        let place = self.path.child(keyword);
        let mut texts = Vec::with_capacity(list.len());
        for (index, value) in list.iter().enumerate() {
            match value {
                Value::String(text) => texts.push(text.clone()),
                other => compiler.add(wrong_type(&place.index(index), other, "string")),
            }
        }
        texts
    }

    /// One of a fixed set of names.
    pub(super) fn one_of<T: Copy>(
        &self,
        keyword: &str,
        names: &[(&str, T)],
        compiler: &mut Compiler,
    ) -> Option<T> {
        let text = self.text(keyword, compiler)?;
        let found = names.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let quoted: Vec<String> = names.iter().map(|(name, _)| format!("{name:?}")).collect();
            let detail = format!("supported values: {}", quoted.join(", "));
            let place = self.path.child(keyword).field();
            compiler.add(FieldError::new(place, Rule::NotSupported, &Value::from(text), detail));
        }
        found.map(|(_, value)| *value)
    }

    pub(super) fn typed<T>(
        &self,
        keyword: &str,
        expected: &str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
        compiler: &mut Compiler,
    ) -> Option<T> {
        let value = self.get(keyword)?;
        let converted = convert(value);
        if converted.is_none() {
            compiler.add(wrong_type(&self.path.child(keyword), value, expected));
        }
        converted
    }
}

pub(super) fn wrong_type(path: &Path<'_>, value: &Value, expected: &str) -> FieldError {
    FieldError::new(path.field(), Rule::Type, value, format!("must be of type {expected}"))
}
