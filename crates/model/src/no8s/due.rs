//! When a resource wants a worker.

use std::time::Duration;

use crate::object::Object;
use crate::time::Timestamp;

use super::names::RECONCILE_AT;
use super::resource::Resource;

/// How long until `object` is due; none if it is.
///
/// Nothing but the time of the next run holds a resource back, and that time ends with a change of the
/// spec, with deletion and when a run is asked for.
pub fn due_in(object: &Object, now: Timestamp) -> Option<Duration> {
    let next = Resource(object).next()?;
    Duration::try_from(next.duration_since(now)).ok().filter(|it| !it.is_zero())
}

/// The run that was asked for since the last one ended.
pub(super) fn asked(object: &Object) -> Option<&str> {
    object.annotation(RECONCILE_AT).filter(|it| Some(*it) != object.status()["handledReconcileAt"].as_str())
}
