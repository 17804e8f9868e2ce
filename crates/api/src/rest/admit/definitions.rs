//! Definitions of kinds that are resource types.

use concert_model::Object;
use concert_model::no8s::{is_ours, names};
use serde_json::Value;

use crate::rest::draft7::Schema;
use crate::rest::ids::{self, Ids};
use crate::write::Denied;

/// A definition in one of our groups that says of which type it is gets a number, and must have a schema
/// that is one. Any other definition is none of our business.
pub(super) async fn admit(
    ids: &Ids,
    old: Option<&Object>,
    new: Option<&mut Object>,
    is_dry_run: bool,
) -> Result<(), Denied> {
    let Some(new) = new.filter(|new| is_type(new)) else { return Ok(()) };
    check(new)?;
    let known = old.and_then(|old| old.annotation(names::ID));
    match known {
        Some(known) if new.annotation(names::ID) != Some(known) => new.set_annotation(names::ID, known),
        Some(_) => {}
        None if is_dry_run => {}
        None => new.set_annotation(names::ID, &ids.draw(ids::TYPES).await?.to_string()),
    }
    Ok(())
}

fn is_type(definition: &Object) -> bool {
    definition.spec()["group"].as_str().is_some_and(is_ours) && definition.annotation(names::TYPE).is_some()
}

fn check(definition: &Object) -> Result<(), Denied> {
    let wrong = |detail: String| Denied::Invalid { field: "metadata.annotations", detail };
    let text = |name: &str| definition.annotation(name).unwrap_or_default();
    if definition.spec()["names"]["kind"] != text(names::TYPE) {
        return Err(wrong(format!("{} must be the kind", names::TYPE)));
    }
    let versions = definition.spec()["versions"].as_array().map_or(&[][..], Vec::as_slice);
    if versions.len() != 1 || versions[0]["name"] != text(names::VERSION) {
        return Err(wrong(format!("{} must be the one version of the kind", names::VERSION)));
    }
    if definition.spec()["scope"] != "Cluster" {
        return Err(Denied::Invalid {
            field: "spec.scope",
            detail: "resource types are cluster-scoped".into(),
        });
    }
    let schema: Value = serde_json::from_str(text(names::SCHEMA))
        .map_err(|error| wrong(format!("{} is not JSON: {error}", names::SCHEMA)))?;
    Schema::compile(&schema).map(drop).map_err(|why| wrong(format!("{}: {why}", names::SCHEMA)))
}
