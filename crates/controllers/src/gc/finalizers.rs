//! The finalizers of an object at rest, without opening the rest of it.

use concert_model::Encoded;
use serde::Deserialize;

use super::vocabulary::finalizer::FOREGROUND;

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    finalizers: Vec<String>,
}

/// What an object waits for before it goes.
pub(super) fn of(object: &Encoded) -> Vec<String> {
    serde_json::from_slice::<Metadata>(object.body().metadata()).unwrap_or_default().finalizers
}

/// Whether an object is to go after its dependents.
pub(super) fn is_foreground(object: &Encoded) -> bool {
    object.head().deleted_at.is_some() && of(object).iter().any(|it| it == FOREGROUND)
}
