//! The compiled tree.
//!
//! One [`Schema`] is one node: the root, a property, the items of a list or the values of a map. Each
//! can be used on its own, so a caller that walked to `spec` can validate just that.

use std::collections::BTreeMap;

use serde_json::Value;

use super::checks::Checks;
use super::format::Format;
use super::rule::ValidationRule;
use crate::cel::Facts;

/// A compiled structural schema, or one node of it.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(super) kind: Option<Type>,
    pub(super) nullable: bool,
    pub(super) int_or_string: bool,
    pub(super) preserves_unknown: bool,
    pub(super) embedded: bool,
    pub(super) root: bool,
    pub(super) list_type: ListType,
    pub(super) map_type: MapType,
    pub(super) list_map_keys: Vec<String>,
    pub(super) default: Option<Value>,
    /// How many values the default comes to with the defaults inside it; 0 without one.
    pub(super) default_values: usize,
    pub(super) properties: BTreeMap<String, Schema>,
    pub(super) additional: Additional,
    pub(super) items: Option<Box<Schema>>,
    pub(super) checks: Checks,
    pub(super) rules: Vec<ValidationRule>,
    pub(crate) facts: Facts,
}

/// What `additionalProperties` says.
#[derive(Clone, Debug, Default)]
pub(super) enum Additional {
    /// Nothing: other fields are unknown.
    #[default]
    Unspecified,
    /// `true`: any field, of no particular shape.
    Any,
    /// The schema of every value of the map.
    Each(Box<Schema>),
}

/// The JSON type a node asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// An object or a map.
    Object,
    /// A list.
    Array,
    /// Text.
    String,
    /// A number without fraction; `1.0` counts.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
}

impl Type {
    pub(super) const ALL: [Type; 6] =
        [Type::Array, Type::Boolean, Type::Integer, Type::Number, Type::Object, Type::String];

    /// The name in schemas and messages.
    pub fn name(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
        }
    }
}

/// How the elements of a list are told apart: `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ListType {
    /// Not at all: the list is replaced as a whole. Also when the schema says nothing.
    #[default]
    Atomic,
    /// By their value; no value comes twice.
    Set,
    /// By the fields that [`Schema::list_map_keys`] names; no combination comes twice.
    Map,
}

/// How an object is merged: `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MapType {
    /// Field by field. Also when the schema says nothing.
    #[default]
    Granular,
    /// As a whole.
    Atomic,
}

impl Schema {
    /// The schema of the field or map entry `name`, if it is specified.
    pub fn property(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(match &self.additional {
            Additional::Each(schema) => Some(schema),
            Additional::Any | Additional::Unspecified => None,
        })
    }

    /// The named properties, in the order of their names.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.properties.iter().map(|(name, schema)| (name.as_str(), schema))
    }

    /// The schema of every element, where this is a list.
    pub fn items(&self) -> Option<&Schema> {
        self.items.as_deref()
    }

    /// The type asked for; none for int-or-string and for free-form fields.
    pub fn kind(&self) -> Option<Type> {
        self.kind
    }

    /// How the elements of this list are told apart.
    pub fn list_type(&self) -> ListType {
        self.list_type
    }

    /// The fields that identify an element of a list of type [`ListType::Map`].
    pub fn list_map_keys(&self) -> &[String] {
        &self.list_map_keys
    }

    /// How this object is merged.
    pub fn map_type(&self) -> MapType {
        self.map_type
    }

    /// The value a missing field gets.
    pub fn default_value(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// The CEL rules of this node. [`Schema::check_rules`] evaluates them, [`Schema::validate`] does not.
    pub fn rules(&self) -> &[ValidationRule] {
        &self.rules
    }

    /// True where null is a value of its own.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// True where both integers and text are welcome.
    pub fn is_int_or_string(&self) -> bool {
        self.int_or_string
    }

    /// True where fields that are not specified are kept.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.preserves_unknown
    }

    /// True for an object inside the object, with apiVersion, kind and metadata of its own.
    pub fn is_embedded_resource(&self) -> bool {
        self.embedded
    }

    /// A node that says nothing yet.
    pub(super) fn empty() -> Self {
        Self {
            kind: None,
            nullable: false,
            int_or_string: false,
            preserves_unknown: false,
            embedded: false,
            root: false,
            list_type: ListType::default(),
            map_type: MapType::default(),
            list_map_keys: Vec::new(),
            default: None,
            default_values: 0,
            properties: BTreeMap::new(),
            additional: Additional::default(),
            items: None,
            checks: Checks::default(),
            rules: Vec::new(),
            facts: Facts::default(),
        }
    }

    /// Every schema right below, for changing them.
    pub(crate) fn parts_mut(
        &mut self,
    ) -> (&mut BTreeMap<String, Schema>, Option<&mut Schema>, Option<&mut Schema>) {
        let each = match &mut self.additional {
            Additional::Each(schema) => Some(&mut **schema),
            Additional::Any | Additional::Unspecified => None,
        };
        (&mut self.properties, each, self.items.as_deref_mut())
    }

    /// The schema of every value of the map, where this is one.
    pub(crate) fn each(&self) -> Option<&Schema> {
        match &self.additional {
            Additional::Each(schema) => Some(schema),
            Additional::Any | Additional::Unspecified => None,
        }
    }

    /// True where the values of the map may be anything.
    pub(crate) fn has_any_values(&self) -> bool {
        matches!(self.additional, Additional::Any)
    }

    /// The format that texts must have, as written.
    pub(crate) fn text_format(&self) -> Option<&str> {
        self.checks.text.as_ref()?.format.as_ref().map(Format::name)
    }

    /// The longest text, in characters, if that is bounded.
    pub(crate) fn text_max(&self) -> Option<u64> {
        let length = self.checks.text.as_ref().and_then(|text| text.length.max);
        let longest = |values: &[Value]| {
            values.iter().map(|value| value.as_str().map_or(0, str::len) as u64).max().unwrap_or(0)
        };
        length.or(self.checks.values.as_deref().map(longest))
    }

    /// The most elements of the list, if that is bounded.
    pub(crate) fn items_max(&self) -> Option<u64> {
        self.checks.items.max
    }

    /// The most entries of the map, if that is bounded.
    pub(crate) fn properties_max(&self) -> Option<u64> {
        self.checks.properties.max
    }

    /// The fields that must be there.
    pub(crate) fn required(&self) -> &[String] {
        &self.checks.required
    }

    /// True for a field that is specified by its own name, not as an entry of a map.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.properties.contains_key(name)
    }

    /// True where fields that are not specified may be, whatever their name.
    pub(crate) fn allows_any_field(&self) -> bool {
        self.preserves_unknown || !matches!(self.additional, Additional::Unspecified)
    }

    /// True where apiVersion, kind and metadata belong to the node without being specified.
    pub(crate) fn is_resource(&self) -> bool {
        self.root || self.embedded
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn apply_can_walk_to_what_it_needs() {
        let schema = Schema::compile(&json!({ "type": "object", "properties": { "spec": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": { "name": { "type": "string" } },
                    },
                },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            },
        }}}))
        .unwrap();
        let spec = schema.property("spec").unwrap();
        assert_eq!(spec.map_type(), MapType::Atomic);
        assert_eq!(spec.list_type(), ListType::Atomic);
        let ports = spec.property("ports").unwrap();
        assert_eq!(ports.list_type(), ListType::Map);
        assert_eq!(ports.list_map_keys(), ["name"]);
        assert_eq!(ports.items().unwrap().property("name").unwrap().kind(), Some(Type::String));
        assert_eq!(spec.property("labels").unwrap().property("any").unwrap().kind(), Some(Type::String));
        assert!(spec.property("other").is_none());
        assert_eq!(spec.properties().map(|(name, _)| name).collect::<Vec<_>>(), ["labels", "ports"]);
    }
}
