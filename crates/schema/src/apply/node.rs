//! How a value divides into places that have owners of their own.
//!
//! The schema says it where it speaks; elsewhere, as for every schemaless field in Kubernetes, objects
//! divide into their fields and lists do not divide. `metadata` has one shape for all kinds.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::fields::{field_step, key_step, value_step};
use crate::structural::{ListType, MapType, Schema, Type};

/// Deepest place that can have an owner; what is deeper belongs to it as a whole. The set of a manager
/// is nested as deep as the fields in it, and is stored inside the object, which may be 120 levels deep.
pub(super) const OWNED_DEPTH_MAX: usize = 100;

static METADATA: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "object", "additionalProperties": text });
    let source = json!({ "type": "object", "properties": { "of": { "type": "object", "properties": {
        "name": text,
        "generateName": text,
        "namespace": text,
        "selfLink": text,
        "uid": text,
        "resourceVersion": text,
        "generation": { "type": "integer" },
        "creationTimestamp": text,
        "deletionTimestamp": text,
        "deletionGracePeriodSeconds": { "type": "integer" },
        "labels": texts,
        "annotations": texts,
        "finalizers": { "type": "array", "x-kubernetes-list-type": "set", "items": text },
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["uid"],
                "properties": {
                    "apiVersion": text,
                    "kind": text,
                    "name": text,
                    "uid": text,
                    "controller": { "type": "boolean" },
                    "blockOwnerDeletion": { "type": "boolean" },
                },
            },
        },
        "managedFields": {
            "type": "array",
            "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        },
    }}}});
    let schema = Schema::compile(&source).expect("the schema of metadata is structural");
    schema.property("of").expect("it was just written").clone()
});

/// A place in the schema; without a schema, any value.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) schema: Option<&'a Schema>,
    /// A list around keeps unknown fields of its elements.
    is_open: bool,
    depth: usize,
}

/// What is at a place.
pub(super) enum Shape<'a, 'v> {
    /// Null: an empty one of whatever stands on the other side.
    Null,
    /// One thing with one owner.
    Leaf,
    /// Places below.
    Inner(Division, Vec<Child<'a, 'v>>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Division {
    Fields,
    Elements,
}

pub(super) struct Child<'a, 'v> {
    pub(super) step: String,
    pub(super) node: Node<'a>,
    pub(super) value: &'v Value,
    /// A field that the schema names. Elements and entries of maps exist by themselves, and so are owned
    /// themselves; a named field is owned by what is in it.
    pub(super) is_named: bool,
}

impl<'a> Node<'a> {
    pub(super) fn root(schema: &'a Schema) -> Self {
        Self { schema: Some(schema), is_open: false, depth: 0 }
    }

    pub(super) fn shape<'v>(self, value: &'v Value) -> Shape<'a, 'v> {
        let division = match value {
            Value::Null => return Shape::Null,
            Value::Object(fields) if self.divides_fields() => {
                Some((Division::Fields, self.fields_of(fields)))
            }
            Value::Array(list) => self.elements_of(list).map(|children| (Division::Elements, children)),
            _ => None,
        };
        match division {
            Some((division, children)) if self.depth < OWNED_DEPTH_MAX => Shape::Inner(division, children),
            _ => Shape::Leaf,
        }
    }

    /// The field `name`, and whether the schema names it.
    pub(super) fn field(self, name: &str) -> (Node<'a>, bool) {
        let (schema, is_named) = match self.schema {
            Some(schema) if schema.is_resource() => match name {
                "metadata" => (Some(&*METADATA), true),
                "apiVersion" | "kind" => (None, true),
                _ => (schema.property(name), schema.names(name)),
            },
            Some(schema) => (schema.property(name), schema.names(name)),
            None => (None, false),
        };
        (Node { schema, is_open: false, depth: self.depth + 1 }, is_named)
    }

    /// Any element of the list.
    pub(super) fn element(self) -> Node<'a> {
        Node {
            schema: self.schema.and_then(Schema::items),
            is_open: self.is_open || self.schema.is_some_and(Schema::preserves_unknown_fields),
            depth: self.depth + 1,
        }
    }

    /// The place that `step` leads to, and whether the schema names it.
    pub(super) fn step(self, step: &str) -> (Node<'a>, bool) {
        match step.strip_prefix("f:") {
            Some(name) => self.field(name),
            None => (self.element(), false),
        }
    }

    /// True where a field may be called anything.
    pub(super) fn allows_any_field(self) -> bool {
        self.is_open || self.schema.is_none_or(Schema::allows_any_field)
    }

    /// The step to `element`; none when it has nothing to be told by.
    pub(super) fn step_to(self, element: &Value) -> Option<String> {
        let schema = self.schema?;
        match schema.list_type() {
            ListType::Atomic => None,
            ListType::Set => Some(value_step(element)),
            ListType::Map => {
                let Value::Object(fields) = element else { return None };
                let default = |key: &String| schema.items()?.property(key)?.default_value();
                let key_of = |key: &'a String| {
                    let value = fields.get(key).filter(|value| !value.is_null()).or(default(key))?;
                    Some((key.as_str(), value))
                };
                let keys: BTreeMap<&str, &Value> = schema.list_map_keys().iter().filter_map(key_of).collect();
                if keys.is_empty() { None } else { Some(key_step(keys)) }
            }
        }
    }

    fn divides_fields(self) -> bool {
        self.schema.is_none_or(|schema| {
            schema.kind().is_none_or(|kind| kind == Type::Object) && schema.map_type() == MapType::Granular
        })
    }

    fn fields_of<'v>(self, fields: &'v Map<String, Value>) -> Vec<Child<'a, 'v>> {
        let child = |(name, value): (&String, &'v Value)| {
            let (node, is_named) = self.field(name);
            Child { step: field_step(name), node, value, is_named }
        };
        fields.iter().map(child).collect()
    }

    fn elements_of<'v>(self, list: &'v [Value]) -> Option<Vec<Child<'a, 'v>>> {
        if self.schema?.list_type() == ListType::Atomic {
            return None;
        }
        let child =
            |value| Some(Child { step: self.step_to(value)?, node: self.element(), value, is_named: false });
        list.iter().map(child).collect()
    }
}
