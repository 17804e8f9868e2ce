//! The kinds that are always there.

mod access;
mod basic;
mod content;
mod definitions;
mod token;

use std::sync::Arc;

use concert_model::metadata::NameRule;
use concert_model::{FieldError, GroupKind, Object};
use concert_schema::Schema;
use serde_json::{Value, json};

use super::kinds::{Served, Version};
use super::{present, rules};
use crate::card::{Card, View};
use crate::kind::Kind;

pub(super) use basic::{NAMESPACE_FINALIZER, keep_finalizers, namespace_kind};

pub(super) fn all() -> Vec<Served> {
    let told = basic::all().into_iter().chain(access::all()).chain([definitions::told(), token::told()]);
    told.map(Told::serve).collect()
}

/// A built-in kind, as it is written down here.
struct Told {
    kind: Kind,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    /// As `additionalPrinterColumns`: (name, type, path, priority).
    columns: &'static [(&'static str, &'static str, &'static str, i64)],
    /// Schemas of the top-level fields.
    properties: Value,
}

impl Told {
    fn new(kind: Kind, properties: Value) -> Self {
        Self { kind, short_names: &[], categories: &[], columns: &[], properties }
    }

    fn serve(self) -> Served {
        let source = json!({"type": "object", "properties": self.properties});
        let schema = Schema::compile(&source).expect("built-in schemas are structural");
        let column = |(name, kind, path, priority): &(&str, &str, &str, i64)| json!({"name": name, "type": kind, "jsonPath": path, "priority": priority});
        let view = View {
            version: self.kind.storage_version.clone(),
            is_served: true,
            has_status: self.kind.has_status,
            schema: Arc::new(source),
            columns: present::columns(&self.columns.iter().map(column).collect()),
            deprecation: None,
        };
        let has_rules = rules::are_in(&view.schema);
        let versions = vec![Version { name: view.version.clone(), schema, has_rules }];
        let kind = Arc::new(self.kind);
        let card = Card {
            kind: kind.clone(),
            singular: kind.group_kind.kind.to_lowercase().into(),
            list_kind: format!("{}List", kind.group_kind.kind).into(),
            short_names: self.short_names.iter().map(|name| Arc::from(*name)).collect(),
            categories: self.categories.iter().map(|name| Arc::from(*name)).collect(),
            views: vec![view],
            is_built_in: true,
            origin: None,
        };
        Served { kind, card: card.into(), versions, definition: None, is_terminating: false }
    }
}

fn plain(group: &str, version: &str, kind: &str, plural: &str) -> Kind {
    Kind {
        group_kind: GroupKind::new(group, kind),
        storage_version: version.into(),
        versions: vec![version.into()],
        plural: plural.into(),
        is_namespaced: true,
        has_status: false,
        has_generation: false,
        name_rule: NameRule::Subdomain,
        selectable_fields: Vec::new(),
    }
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn moment() -> Value {
    json!({"type": "string", "format": "date-time", "nullable": true})
}

/// Conditions of the kinds that Kubernetes has too: one of each type.
fn conditions() -> Value {
    let text = json!({"type": "string"});
    let condition = json!({"type": "object", "required": ["type"], "properties": {
        "type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": moment(),
    }});
    json!({"type": "array", "nullable": true, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"], "items": condition})
}

/// What a built-in kind does to an object before its schema sees it.
pub(super) fn normalise(kind: &GroupKind, object: &mut Object) -> Vec<FieldError> {
    match (&*kind.group, &*kind.kind) {
        ("", "Secret") => content::secret(object),
        ("", "ConfigMap") => content::config_map(object),
        (access::GROUP, _) => {
            access::fill_in(object);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// What a built-in kind asks of an object that its schema cannot say.
pub(super) fn validate(kind: &GroupKind, object: &Object) -> Vec<FieldError> {
    match &*kind.group {
        access::GROUP => access::validate(object),
        token::GROUP if &*kind.kind == token::KIND => token::validate(object),
        _ => Vec::new(),
    }
}

/// What of an object of a built-in kind may not change.
pub(super) fn validate_change(kind: &GroupKind, old: &Object, new: &Object) -> Vec<FieldError> {
    match &*kind.group {
        "" => content::validate_change(old, new),
        access::GROUP => access::validate_change(old, new),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_has_a_schema_and_a_card() {
        for served in all() {
            let kind = &served.kind;
            assert!(served.version(&kind.storage_version).is_some(), "{}", kind.group_kind);
            assert!(served.card.view(&kind.storage_version).is_some_and(|view| view.is_served));
            assert!(!served.card.views[0].columns.is_empty(), "{}", kind.group_kind);
        }
    }
}
