//! Things that have a number and nothing else to be asked.

use concert_model::no8s::names;
use concert_model::{GroupKind, Object};
use serde_json::Value;

use crate::rest::ids::Ids;
use crate::write::Denied;

/// The counter of a kind whose objects are numbered.
pub(super) fn counter(kind: &GroupKind) -> Option<&'static str> {
    match (&*kind.group, &*kind.kind) {
        ("concert.dev", "User") => Some("users"),
        ("concert.dev", "CustomRole") => Some("custom-roles"),
        ("concert.dev", "AdmissionWebhook") => Some("admission-webhooks"),
        ("concert.dev", "Worker") => Some("workers"),
        _ => None,
    }
}

pub(super) async fn admit(
    ids: &Ids,
    counter: &str,
    old: Option<&Object>,
    new: Option<&mut Object>,
    is_dry_run: bool,
) -> Result<(), Denied> {
    let Some(new) = new else { return Ok(()) };
    match old {
        Some(old) => keep_label(old, new, names::ID),
        None if is_dry_run => Ok(()),
        None => {
            new.set_label(names::ID, &ids.draw(counter).await?.to_string());
            Ok(())
        }
    }
}

/// What is given once: left out it stays, anything else is refused.
pub(super) fn keep_label(old: &Object, new: &mut Object, label: &str) -> Result<(), Denied> {
    let value =
        |object: &Object| object.metadata("labels").get(label).and_then(Value::as_str).map(str::to_owned);
    match (value(old), value(new)) {
        (was, is) if was == is => Ok(()),
        (Some(was), None) => {
            new.set_label(label, &was);
            Ok(())
        }
        (was, Some(_)) => {
            let detail = match was {
                Some(was) => format!("label {label} cannot be changed: it is {was}"),
                None => format!("label {label} cannot be given to what was made without it"),
            };
            Err(Denied::Invalid { field: "metadata.labels", detail })
        }
        (None, None) => Ok(()),
    }
}
