//! What may stand in a section, and what it hashes to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use concert_model::inventory::SectionType;
use concert_model::{FieldError, FieldPath, Object, ResourceVersion, Uid};
use concert_schema::Schema;
use http::StatusCode;
use serde_json::Value;

use crate::auth::Keys;
use crate::rest::Error;

/// Largest contents, as JSON: what a Secret may hold.
pub(super) const BYTES_MAX: usize = 1024 * 1024;
/// Deepest nesting: an object may have 120 levels, of which those around the contents take a few.
const DEPTH_MAX: usize = 110;

/// Contents that may be written.
pub(super) struct Contents<'a> {
    pub data: &'a Value,
    /// As JSON with its keys in order.
    pub bytes: Vec<u8>,
    pub is_secret: bool,
    pub hash: String,
}

/// Which section of which entry contents are for.
pub(super) struct Place<'a> {
    pub entry: &'a Uid,
    pub section: &'a str,
}

impl<'a> Contents<'a> {
    /// Checks contents, and hashes them. What is wrong with secret ones is said without repeating them.
    pub fn check(
        place: &Place<'_>,
        data: &'a Value,
        kind: Option<&Object>,
        schemas: &Schemas,
        keys: &Keys,
    ) -> Result<Self, Error> {
        if !data.is_object() {
            return Err(Error::unprocessable("data must be a JSON object"));
        }
        if concert_model::object::is_deeper(data, DEPTH_MAX) {
            return Err(Error::unprocessable(format!(
                "data must not be nested deeper than {DEPTH_MAX} levels"
            )));
        }
        let bytes = serde_json::to_vec(data).unwrap_or_default();
        if bytes.len() > BYTES_MAX {
            let detail = format!("a section holds at most {BYTES_MAX} bytes");
            return Err(Error::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        let is_secret = kind.is_some_and(|it| SectionType(it).is_secret());
        if let Some(kind) = kind {
            schemas.check(kind, data, is_secret)?;
        }
        let hash = if is_secret { secret_hash(keys, place, &bytes) } else { plain_hash(&bytes) };
        Ok(Self { data, bytes, is_secret, hash })
    }
}

fn plain_hash(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref()))
}

/// Under a key, and different for each section of each entry: equal secrets cannot be told by it.
fn secret_hash(keys: &Keys, place: &Place<'_>, bytes: &[u8]) -> String {
    let text = [place.entry.0.as_bytes(), b"\0", place.section.as_bytes(), b"\0", bytes].concat();
    format!("hmac:{}", hex(&keys.tag("inventory-section", &text)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Schemas of sections, compiled once for each time they are written.
#[derive(Default)]
pub(super) struct Schemas {
    compiled: Mutex<HashMap<String, (ResourceVersion, Arc<Schema>)>>,
}

impl Schemas {
    /// Checks contents against their type.
    fn check(&self, kind: &Object, data: &Value, is_secret: bool) -> Result<(), Error> {
        let Some(schema) = self.of(kind).map_err(|errors| unprocessable(&errors))? else {
            return Ok(());
        };
        let errors = schema.validate(data);
        match (errors.is_empty(), is_secret) {
            (true, _) => Ok(()),
            (false, true) => Err(unshown(&errors, &schema)),
            (false, false) => Err(unprocessable(&errors)),
        }
    }

    fn of(&self, kind: &Object) -> Result<Option<Arc<Schema>>, Vec<FieldError>> {
        let kind_view = SectionType(kind);
        let (Some(source), Some(version)) = (kind_view.schema(), kind.resource_version()) else {
            return Ok(None);
        };
        let kept = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, schema)) = kept().get(kind_view.section())
            && *then == version
        {
            return Ok(Some(schema.clone()));
        }
        let schema = Arc::new(compile(source)?);
        kept().insert(kind_view.section().to_owned(), (version, schema.clone()));
        Ok(Some(schema))
    }
}

/// The schema of a type of sections.
pub(super) fn compile(source: &Value) -> Result<Schema, Vec<FieldError>> {
    Schema::compile_at(&FieldPath::new("spec.schema"), source)
}

fn unprocessable(errors: &[FieldError]) -> Error {
    Error::unprocessable(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// What is wrong with contents that must not be repeated: the fields, as far as the schema names them. A key
/// that it does not name may be a part of the secret.
fn unshown(errors: &[FieldError], schema: &Schema) -> Error {
    let first = |error: &FieldError| error.field.as_str().split(['.', '[']).next().map(str::to_owned);
    let mut fields: Vec<String> = errors.iter().filter_map(first).collect();
    fields.retain(|field| schema.property(field).is_some());
    fields.sort_unstable();
    fields.dedup();
    let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
    Error::unprocessable(format!("data does not satisfy the schema of the section{fields}"))
}
