//! Where the parts of a resource are in its object.
//!
//! Whoever changes a spec, through whichever door, writes nothing but the spec. That its phase is
//! pending again, its back-off over and its next run due therefore follows from the generation.

use serde_json::{Map, Value};

use crate::condition::{self, Condition};
use crate::object::Object;
use crate::time::{self, Timestamp};

use super::conditions::READY;
use super::due::asked;
use super::names;
use super::phase::Phase;

/// An object read as a resource.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a>(pub &'a Object);

impl<'a> Resource<'a> {
    /// The number by which REST knows it.
    pub fn id(self) -> Option<u64> {
        self.0.metadata("labels").get(names::ID)?.as_str()?.parse().ok()
    }

    /// The name of its type.
    pub fn type_name(self) -> &'a str {
        self.0.kind()
    }

    /// The version of its type.
    pub fn type_version(self) -> &'a str {
        let api_version = self.0.api_version();
        api_version.rsplit_once('/').map_or(api_version, |(_, version)| version)
    }

    /// The phase as it was last reported.
    pub fn phase(self) -> Phase {
        self.0.status()["phase"].as_str().and_then(|text| text.parse().ok()).unwrap_or(Phase::Pending)
    }

    /// The phase to show: deleting once deletion was asked for, pending when the spec has changed since
    /// the last report.
    pub fn shown_phase(self) -> Phase {
        if self.is_deleting() {
            return Phase::Deleting;
        }
        match self.phase() {
            // Also while a worker is at the spec before it: nobody has begun with this one.
            Phase::Ready | Phase::Failed | Phase::Reconciling if self.is_changed() => Phase::Pending,
            // Only its metadata says that something is to go.
            Phase::Deleting => Phase::Pending,
            phase => phase,
        }
    }

    /// Whether deletion was asked for.
    pub fn is_deleting(self) -> bool {
        self.0.deleted_at().is_some()
    }

    /// Whether no worker has reported on the generation as it is now.
    pub fn is_changed(self) -> bool {
        self.0.generation() > self.reported_generation()
    }

    /// The generation that the standard conditions are about.
    pub fn reported_generation(self) -> i64 {
        condition::find(self.0.status(), READY).and_then(|it| it.observed_generation).unwrap_or_default()
    }

    /// What the last report said, in words.
    pub fn message(self) -> Option<&'a str> {
        self.0.status()["message"].as_str()
    }

    /// The newest generation that a worker acknowledged.
    pub fn observed_generation(self) -> i64 {
        self.0.status()["observedGeneration"].as_i64().unwrap_or_default()
    }

    /// Its conditions: Ready, Reconciling, Degraded, then those of its own.
    pub fn conditions(self) -> Vec<Condition> {
        condition::all(self.0.status())
    }

    /// What reconciling it has brought forth.
    pub fn outputs(self) -> &'a Value {
        &self.0.status()["outputs"]
    }

    /// Failures in a row on the spec as it is now.
    pub fn retry_count(self) -> u64 {
        if self.is_changed() { 0 } else { self.stored_retry_count() }
    }

    /// When it is due; none for at once, or for never before something changes. A run that was asked for
    /// comes when it was asked for, whatever was to be next; but what is to go is not put off by one.
    pub fn next(self) -> Option<Timestamp> {
        if self.is_changed() {
            return None;
        }
        let next = self.time("nextReconcileTime");
        match asked(self.0).map(time::parse) {
            // At once, which is none, is before any time.
            Some(at) if self.is_deleting() => at.min(next),
            Some(at) => at,
            None => next,
        }
    }

    /// Whether it failed in a way that trying again does not mend, and nothing has changed since: of every
    /// other failure the status says when the next try is.
    pub fn is_given_up(self) -> bool {
        let is_failed = self.phase() == Phase::Failed && self.time("nextReconcileTime").is_none();
        is_failed && !self.is_changed() && !self.is_deleting() && asked(self.0).is_none()
    }

    /// When it last became ready.
    pub fn last(self) -> Option<Timestamp> {
        self.time("lastReconcileTime")
    }

    /// The action plugin that it is for; empty if its type has an owner.
    pub fn action(self) -> &'a str {
        self.0.get("plugin")["action"].as_str().unwrap_or_default()
    }

    /// What its plugin is told beside the spec.
    pub fn config(self) -> &'a Value {
        &self.0.get("plugin")["config"]
    }

    /// What REST calls `metadata`: means nothing to us.
    pub fn details(self) -> &'a Value {
        &self.0.get("plugin")["metadata"]
    }

    pub(super) fn stored_retry_count(self) -> u64 {
        self.0.status()["retryCount"].as_u64().unwrap_or_default()
    }

    /// The status to change; empty if there is none yet.
    pub(super) fn status_map(self) -> Map<String, Value> {
        self.0.status().as_object().cloned().unwrap_or_default()
    }

    fn time(self, field: &str) -> Option<Timestamp> {
        self.0.status()[field].as_str().and_then(time::parse)
    }
}
