//! Events: what people see under `kubectl describe`.
//!
//! [`Recorder`] is the seam. [`StoreRecorder`] writes Kubernetes' own Event objects, few of them;
//! [`Notes`] keeps what it is told; [`Silent`] does not.

mod correlate;
mod recent;
mod recorder;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use concert_model::{ObjectKey, ResourceVersion, Uid};

pub use recorder::StoreRecorder;

/// Longest message of an event: Kubernetes' bound.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// Something worth telling the owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// About which object.
    pub object: ObjectKey,
    /// Its `apiVersion`.
    pub api_version: String,
    /// Which incarnation.
    pub uid: Uid,
    /// In which state, where that is known.
    pub resource_version: Option<ResourceVersion>,
    /// `Warning` rather than `Normal`.
    pub is_warning: bool,
    /// One word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// Goes onto the Event object, as `external-name` does.
    pub annotations: BTreeMap<String, String>,
}

/// Takes events.
///
/// # Guarantees
/// Never waits: what cannot be taken is counted and dropped. An event is a courtesy, and no reconcile
/// is slower or fails for one.
///
/// # Assumptions
/// The same event may be told on every pass; the recorder keeps repetition from people and store.
pub trait Recorder: Send + Sync + 'static {
    /// Takes one event of `component`, the controller that speaks.
    fn record(&self, component: &Arc<str>, event: Event);
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Recorder for Silent {
    fn record(&self, _component: &Arc<str>, _event: Event) {}
}

/// Keeps all events: for tests and simulation.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Vec<(Arc<str>, Event)>>);

impl Notes {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// All so far, in order, with who told them.
    pub fn taken(&self) -> Vec<(Arc<str>, Event)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Recorder for Notes {
    fn record(&self, component: &Arc<str>, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((component.clone(), event));
    }
}
