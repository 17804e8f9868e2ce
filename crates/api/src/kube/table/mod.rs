//! Tables: objects as rows for people.
//!
//! What the columns of a kind are is said by its definition; the kinds that are built in have those that
//! kubectl's users know.

mod builtin;

use concert_model::{Encoded, Timestamp};
use serde_json::{Value, json};

use super::answer::text;
use super::catalogue::Resource;
use super::params::Params;
use super::splice;
use crate::error::Error;

/// What of an object goes along with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Whole,
}

impl Include {
    pub(crate) fn read(params: &Params<'_>) -> Result<Self, Error> {
        match params.text("includeObject") {
            None | Some("Metadata") => Ok(Include::Metadata),
            Some("None") => Ok(Include::Nothing),
            Some("Object") => Ok(Include::Whole),
            Some(other) => {
                Err(Error::bad_request(format!("includeObject={other:?} must be Metadata, Object or None")))
            }
        }
    }
}

/// How tables of one resource are written.
pub(crate) struct Tables<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) include: Include,
    pub(crate) now: Timestamp,
}

impl Tables<'_> {
    /// The headings.
    pub(crate) fn definitions(&self) -> Vec<Value> {
        if let Some(columns) = builtin::columns(self.resource.group_kind()) {
            let heading = |column: &builtin::Column| {
                let format = if column.name == "Name" { "name" } else { "" };
                definition(column.name, column.kind, format, "", column.priority)
            };
            return columns.iter().map(heading).collect();
        }
        let name = definition("Name", "string", "name", "Unique within kind and namespace.", 0);
        let more = self.resource.view().columns.iter().map(|column| {
            let format = column.format.as_deref().unwrap_or_default();
            let description = column.description.as_deref().unwrap_or_default();
            definition(&column.name, column.kind.name(), format, description, column.priority)
        });
        std::iter::once(name).chain(more).collect()
    }

    /// One row.
    pub(crate) fn row(&self, object: &Encoded) -> Vec<u8> {
        let mut out = br#"{"cells":"#.to_vec();
        out.extend_from_slice(&text(&Value::Array(self.cells(object))));
        match self.include {
            Include::Nothing => {}
            Include::Metadata => {
                out.extend_from_slice(br#","object":"#);
                out.extend_from_slice(&splice::partial(object));
            }
            Include::Whole => {
                out.extend_from_slice(br#","object":"#);
                out.extend_from_slice(&object.to_json_as(self.resource.version()));
            }
        }
        out.push(b'}');
        out
    }

    fn cells(&self, encoded: &Encoded) -> Vec<Value> {
        let object = encoded.decode();
        if let Some(columns) = builtin::columns(self.resource.group_kind()) {
            return columns.iter().map(|column| (column.cell)(&object, self.now)).collect();
        }
        let name = json!(object.name());
        let whole = object.into_value();
        let more = self.resource.view().columns.iter().map(|column| column.cell_at(&whole, self.now));
        std::iter::once(name).chain(more).collect()
    }

    /// A table of one object: what a watch sends, with headings only the first time.
    pub(crate) fn single(&self, object: &Encoded, has_headings: bool) -> Vec<u8> {
        let headings = if has_headings { self.definitions() } else { Vec::new() };
        let mut out =
            br#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"#.to_vec();
        splice::quote(&mut out, &object.resource_version().0);
        out.extend_from_slice(br#"},"columnDefinitions":"#);
        out.extend_from_slice(&text(&Value::Array(headings)));
        out.extend_from_slice(br#","rows":["#);
        out.extend_from_slice(&self.row(object));
        splice::close(out)
    }
}

fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}
