//! What `x-kubernetes-list-type` asks of a list and its items.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Compiler;
use super::keywords::Keywords;
use crate::structural::path::Path;
use crate::structural::schema::{ListType, MapType, Schema, Type};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";

impl Compiler {
    pub(super) fn read_list_type(&mut self, keywords: &Keywords<'_>, schema: &mut Schema) {
        let names = [("atomic", ListType::Atomic), ("set", ListType::Set), ("map", ListType::Map)];
        schema.list_type = keywords.one_of(LIST_TYPE, &names, self).unwrap_or_default();
        schema.list_map_keys = keywords.texts(MAP_KEYS, self);
        if keywords.has(LIST_TYPE) {
            self.expect_type(keywords, schema, Type::Array, "if x-kubernetes-list-type is specified");
        }
        if !schema.list_map_keys.is_empty() && schema.list_type != ListType::Map {
            let place = keywords.path().child(LIST_TYPE);
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            match keywords.get(LIST_TYPE) {
                None => self.require(&place, why),
                Some(value) => self.invalid(&place, value, why),
            }
        }
    }
}

/// Checks the items of a set or map against what makes its elements comparable.
pub(super) fn check(keywords: &Keywords<'_>, schema: &Schema, compiler: &mut Compiler) {
    let path = keywords.path();
    if schema.list_type == ListType::Map && schema.list_map_keys.is_empty() {
        compiler.require(&path.child(MAP_KEYS), "must not be empty if x-kubernetes-list-type is map");
    }
    let Some(items) = schema.items() else { return };
    let place = path.child("items");
    let name = match schema.list_type {
        ListType::Atomic => return,
        ListType::Set => "set",
        ListType::Map => "map",
    };
    if items.nullable {
        compiler.forbid(
            &place.child("nullable"),
            format!("cannot be nullable when x-kubernetes-list-type is {name}"),
        );
    }
    if schema.list_type == ListType::Set {
        check_set_items(items, &place, compiler);
    } else {
        check_map_items(schema, items, path, &place, compiler);
    }
}

/// Elements of a set are compared whole, so nobody may own a part of one.
fn check_set_items(items: &Schema, place: &Path<'_>, compiler: &mut Compiler) {
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    match items.kind {
        Some(Type::Array) if items.list_type != ListType::Atomic => {
            let found = if items.list_type == ListType::Set { "set" } else { "map" };
            compiler.invalid(&place.child(LIST_TYPE), &Value::from(found), why);
        }
        Some(Type::Object) if items.map_type != MapType::Atomic => {
            compiler.invalid(&place.child("x-kubernetes-map-type"), &Value::from("granular"), why);
        }
        _ => {}
    }
}

fn check_map_items(
    schema: &Schema,
    items: &Schema,
    path: &Path<'_>,
    place: &Path<'_>,
    compiler: &mut Compiler,
) {
    if items.kind != Some(Type::Object) {
        let found = Value::from(items.kind.map_or("", Type::name));
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        compiler.invalid(&place.child("type"), &found, why);
        return;
    }
    let keys = Value::from(schema.list_map_keys.clone());
    let mut seen = BTreeSet::new();
    for key in &schema.list_map_keys {
        if !seen.insert(key) {
            compiler.invalid(&path.child(MAP_KEYS), &keys, "must not contain duplicate entries");
        }
        match items.properties.get(key) {
            None => {
                let why = "entries must all be names of item properties";
                compiler.invalid(&path.child(MAP_KEYS), &keys, why);
            }
            Some(property) => {
                check_key(key, property, items, &place.child("properties").key(key), compiler);
            }
        }
    }
}

fn check_key(key: &String, property: &Schema, items: &Schema, place: &Path<'_>, compiler: &mut Compiler) {
    let is_scalar = property.int_or_string
        || matches!(property.kind, Some(Type::Boolean | Type::Integer | Type::Number | Type::String));
    if !is_scalar {
        let found = Value::from(property.kind.map_or("", Type::name));
        let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        compiler.invalid(&place.child("type"), &found, why);
    }
    let in_keys = "this property is in x-kubernetes-list-map-keys";
    if property.default.is_none() && !items.checks.required.contains(key) {
        let why = format!("{in_keys}, so it must have a default or be a required property");
        compiler.require(&place.child("default"), why);
    }
    if property.nullable {
        compiler.forbid(&place.child("nullable"), format!("{in_keys}, so it cannot be nullable"));
    }
}
