//! What a definition says about how its kind presents itself.

use std::sync::Arc;

use concert_model::Object;
use concert_schema::columns::{Column, ColumnType};
use serde_json::{Value, json};

use super::names;
use crate::card::{Card, View};
use crate::kind::Kind;

/// The card of the kind that an established definition is for.
pub(super) fn card(definition: &Object, kind: Arc<Kind>) -> Card {
    let (spec, accepted) = (definition.spec(), &definition.status()["acceptedNames"]);
    // Stored by a program that did not write them yet: then they are what was asked for.
    let given = if accepted.is_object() { accepted } else { &spec["names"] };
    let list = |value: &Value| names::texts(value).map(Arc::from).collect();
    let versions = spec["versions"].as_array().into_iter().flatten();
    Card {
        singular: text_or(&given["singular"], || kind.group_kind.kind.to_lowercase()),
        list_kind: text_or(&given["listKind"], || format!("{}List", kind.group_kind.kind)),
        short_names: list(&given["shortNames"]),
        categories: list(&given["categories"]),
        views: versions.map(|version| view(&kind, version)).collect(),
        is_built_in: false,
        origin: definition.uid().map(|uid| (uid, definition.generation())),
        kind,
    }
}

fn text_or(value: &Value, otherwise: impl FnOnce() -> String) -> Arc<str> {
    value.as_str().map_or_else(|| otherwise().into(), Arc::from)
}

fn view(kind: &Kind, version: &Value) -> View {
    let name = version["name"].as_str().unwrap_or_default();
    let is_deprecated = version["deprecated"] == json!(true);
    let told = version["deprecationWarning"].as_str().map(str::to_owned);
    let usual = || {
        let gvk = kind.group_kind.at_version(name);
        format!("{} {} is deprecated", gvk.api_version(), kind.group_kind.kind)
    };
    View {
        version: name.into(),
        is_served: version["served"] == json!(true),
        has_status: has_status(version),
        schema: Arc::new(version["schema"]["openAPIV3Schema"].clone()),
        columns: columns(&version["additionalPrinterColumns"]),
        deprecation: is_deprecated.then(|| told.unwrap_or_else(usual)),
    }
}

/// Whether a version of a definition has a status subresource.
pub(super) fn has_status(version: &Value) -> bool {
    version["subresources"].get("status").is_some_and(|status| !status.is_null())
}

/// The columns of a table, by `additionalPrinterColumns`; where it says nothing, the age.
pub(super) fn columns(told: &Value) -> Vec<Column> {
    let told = Column::read(told).unwrap_or_default();
    if !told.is_empty() {
        return told;
    }
    Column::new("Age", ColumnType::Date, ".metadata.creationTimestamp").into_iter().collect()
}
