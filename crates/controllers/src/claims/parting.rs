//! How a managed resource is let go of, whoever does it: released, deleted if its policy says so, and only
//! then forgotten. Until the last step it says whose it was, so each can be taken up where it was left.

use concert_model::Object;
use serde_json::{Value, json};

use super::bind::decide::phase_of;
use super::vocabulary::phase;

/// One step on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// Say of it that it is released.
    Release,
    /// Delete it.
    Delete,
    /// Write into it that it is nobody's.
    Forget,
}

/// The next step with a managed resource that is to be let go of.
pub fn next(managed: &Object) -> Parting {
    let deletes = managed.spec().get("reclaimPolicy").and_then(Value::as_str) == Some("Delete");
    match phase_of(managed) {
        phase::RELEASED if deletes && managed.deleted_at().is_none() => Parting::Delete,
        phase::RELEASED => Parting::Forget,
        _ => Parting::Release,
    }
}

/// Writes down where it stands.
pub fn mark(managed: &mut Object, phase: &str) {
    let status = managed.get_mut("status");
    if !status.is_object() {
        *status = json!({});
    }
    status["bindingPhase"] = json!(phase);
}

/// Takes out whose it is.
pub fn forget(managed: &mut Object) {
    if let Value::Object(spec) = managed.get_mut("spec") {
        spec.remove("claimRef");
    }
}
