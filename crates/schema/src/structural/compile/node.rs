//! One structural node: its type, its shape and its extensions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::keywords::{Keywords, wrong_type};
use super::{Compiler, branch, defaults, lists, resource};
use crate::structural::path::Path;
use crate::structural::schema::{Additional, MapType, Schema, Type};

/// Where in the tree a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Item,
    Field,
}

impl Compiler {
    /// Reads the schema `source`. None, with errors, when there is nothing to go on with.
    pub(super) fn node(&mut self, source: &Value, level: Level, path: &Path<'_>) -> Option<Schema> {
        self.enter(path, |compiler| {
            let keywords = Keywords::read(source, path, compiler)?;
            let mut schema = Schema { root: level == Level::Root, ..Schema::empty() };
            compiler.read_type(&keywords, &mut schema);
            compiler.read_extensions(&keywords, &mut schema);
            compiler.read_list_type(&keywords, &mut schema);
            compiler.check_type(&keywords, &schema, level);
            compiler.read_shape(&keywords, &mut schema);
            schema.checks = compiler.checks(&keywords, schema.kind, branch::Junctors::Structural(&schema));
            schema.default = keywords.get("default").cloned();
            defaults::measure(&mut schema, path, compiler);
            schema.rules = compiler.rules(&keywords);
            lists::check(&keywords, &schema, compiler);
            resource::check(&keywords, &schema, compiler);
            if schema.root {
                branch::check_complete(&schema, path, compiler);
            }
            Some(schema)
        })
    }

    fn read_type(&mut self, keywords: &Keywords<'_>, schema: &mut Schema) {
        if keywords.get("type").is_some_and(|kind| kind == "null") {
            let place = keywords.path().child("type");
            self.forbid(&place, "type cannot be set to null, use nullable as an alternative");
            return;
        }
        schema.kind = keywords.one_of("type", &Type::ALL.map(|kind| (kind.name(), kind)), self);
        schema.nullable = keywords.flag("nullable", self);
        // These say nothing about values, but a malformed one is a mistake all the same.
        keywords.text("title", self);
        keywords.text("description", self);
        keywords.object("externalDocs", self);
        if keywords.flag("uniqueItems", self) {
            let place = keywords.path().child("uniqueItems");
            self.forbid(
                &place,
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
    }

    fn read_extensions(&mut self, keywords: &Keywords<'_>, schema: &mut Schema) {
        const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
        const EMBEDDED: &str = "x-kubernetes-embedded-resource";
        schema.int_or_string = keywords.flag("x-kubernetes-int-or-string", self);
        schema.preserves_unknown = keywords.flag(PRESERVE, self);
        schema.embedded = keywords.flag(EMBEDDED, self);
        let map_types = [("atomic", MapType::Atomic), ("granular", MapType::Granular)];
        schema.map_type = keywords.one_of("x-kubernetes-map-type", &map_types, self).unwrap_or_default();

        if keywords.get(PRESERVE) == Some(&Value::Bool(false)) {
            self.invalid(&keywords.path().child(PRESERVE), &Value::Bool(false), "must be true or undefined");
        }
        for (set, keyword) in [(schema.preserves_unknown, PRESERVE), (schema.embedded, EMBEDDED)] {
            if set && schema.int_or_string {
                let why = "must be false if x-kubernetes-int-or-string is true";
                self.invalid(&keywords.path().child(keyword), &Value::Bool(true), why);
            }
        }
        if keywords.has("x-kubernetes-map-type") {
            self.expect_type(keywords, schema, Type::Object, "if x-kubernetes-map-type is specified");
        }
        if schema.embedded {
            self.expect_type(keywords, schema, Type::Object, "if x-kubernetes-embedded-resource is true");
        }
    }

    /// Reports a type that is missing or not the one that `reason` asks for.
    pub(super) fn expect_type(&mut self, keywords: &Keywords<'_>, schema: &Schema, kind: Type, reason: &str) {
        let place = keywords.path().child("type");
        let why = format!("must be {} {reason}", kind.name());
        match schema.kind {
            Some(found) if found == kind => {}
            Some(found) => self.invalid(&place, &Value::from(found.name()), why),
            None => self.require(&place, why),
        }
    }

    fn check_type(&mut self, keywords: &Keywords<'_>, schema: &Schema, level: Level) {
        let is_open = schema.int_or_string || schema.preserves_unknown || schema.embedded;
        let is_missing = !keywords.has("type");
        let place = keywords.path().child("type");
        match level {
            Level::Root if is_missing => self.require(&place, "must not be empty at the root"),
            Level::Root if schema.kind.is_some() => {
                self.expect_type(keywords, schema, Type::Object, "at the root");
            }
            Level::Item if is_missing && !is_open => {
                self.require(&place, "must not be empty for specified array items");
            }
            Level::Field if is_missing && !is_open => {
                self.require(&place, "must not be empty for specified object fields");
            }
            Level::Root | Level::Item | Level::Field => {}
        }
    }

    fn read_shape(&mut self, keywords: &Keywords<'_>, schema: &mut Schema) {
        schema.properties = self.read_properties(keywords);
        schema.additional = self.read_additional(keywords, schema);
        let path = keywords.path().child("items");
        match keywords.get("items") {
            Some(Value::Array(_)) => self.forbid(&path, "items must be a schema object and not an array"),
            Some(source) => schema.items = self.node(source, Level::Item, &path).map(Box::new),
            None if schema.kind == Some(Type::Array) => self.require(&path, "must be specified"),
            None => {}
        }
    }

    fn read_properties(&mut self, keywords: &Keywords<'_>) -> BTreeMap<String, Schema> {
        let path = keywords.path().child("properties");
        let mut properties = BTreeMap::new();
        for (name, source) in keywords.object("properties", self).into_iter().flatten() {
            if let Some(property) = self.node(source, Level::Field, &path.key(name)) {
                properties.insert(name.clone(), property);
            }
        }
        properties
    }

    fn read_additional(&mut self, keywords: &Keywords<'_>, schema: &Schema) -> Additional {
        let path = keywords.path().child("additionalProperties");
        let Some(source) = keywords.get("additionalProperties") else { return Additional::Unspecified };
        if schema.root {
            self.forbid(&path, "must not be used at the root");
        } else if schema.embedded {
            self.forbid(&path, "must not be used if x-kubernetes-embedded-resource is set");
        }
        match source {
            Value::Bool(true) => Additional::Any,
            Value::Bool(false) => {
                self.forbid(&path, "additionalProperties cannot be set to false");
                Additional::Unspecified
            }
            Value::Object(_) => {
                if !schema.properties.is_empty() {
                    self.forbid(&path, "additionalProperties and properties are mutual exclusive");
                }
                let each = self.node(source, Level::Field, &path);
                each.map_or(Additional::Unspecified, |each| Additional::Each(Box::new(each)))
            }
            other => {
                self.add(wrong_type(&path, other, "object or boolean"));
                Additional::Unspecified
            }
        }
    }
}
