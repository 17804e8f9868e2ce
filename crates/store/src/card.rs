//! How a kind presents itself to people and their tools.

use std::sync::Arc;

use concert_model::Uid;
use concert_schema::columns::Column;
use serde_json::Value;

use crate::kind::Kind;

/// A kind as clients are told about it: what discovery, printers and documentation need.
#[derive(Clone, Debug)]
pub struct Card {
    /// How it is served.
    pub kind: Arc<Kind>,
    /// Singular, lower case: `widget`.
    pub singular: Arc<str>,
    /// The kind of a list of its objects: `WidgetList`.
    pub list_kind: Arc<str>,
    /// Abbreviations: `wd`.
    pub short_names: Vec<Arc<str>>,
    /// Groups of kinds that it is listed with: `all`.
    pub categories: Vec<Arc<str>>,
    /// One for each version, in the order of its definition; some may not be served.
    pub views: Vec<View>,
    /// True for kinds that are there without a definition.
    pub is_built_in: bool,
    /// Which state of which definition it comes from: uid and generation; none for built-in kinds.
    pub origin: Option<(Uid, i64)>,
}

impl Card {
    /// One version, served or not.
    pub fn view(&self, version: &str) -> Option<&View> {
        self.views.iter().find(|view| &*view.version == version)
    }
}

/// One version of a kind.
#[derive(Clone, Debug)]
pub struct View {
    /// `v1`, `v1beta1`, …
    pub version: Arc<str>,
    /// Whether clients may use it.
    pub is_served: bool,
    /// Whether status is a subresource of it.
    pub has_status: bool,
    /// Its `openAPIV3Schema`, as it was written.
    pub schema: Arc<Value>,
    /// What tables show after the name; the age where the definition says nothing.
    pub columns: Vec<Column>,
    /// What clients of a deprecated version are to be warned with.
    pub deprecation: Option<String>,
}
