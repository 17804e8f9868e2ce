//! Who owns which field: `metadata.managedFields`.
//!
//! An object carries it from its first server-side apply on; until then nobody asks, and its writes pay
//! nothing for it. From then on every write keeps it up to date, and clients may move fields from one
//! manager to another by writing the list themselves.

use concert_model::{Body, Encoded, Object, Timestamp};
use concert_schema::apply::{self, Manager, Operation};
use serde_json::Value;

use super::kinds::{Served, Version};
use crate::contract::{By, Part};

pub(super) const FIELD: &str = "managedFields";

/// Whether it is known already who owns what in an object that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// It follows from what the write changes.
    Open,
    /// The object says so: an apply has worked it out.
    Settled,
}

/// True if somebody owns fields of the object. May be wrong for odd labels, which costs only time.
pub(super) fn is_kept(body: &Body) -> bool {
    let needle = br#""managedFields":"#;
    // Asked at every update: the second byte settles nearly all places.
    body.metadata().windows(needle.len()).any(|window| window[1] == needle[1] && window == needle)
}

/// As whom `by` writes a part of an object.
pub(super) fn manager<'a>(
    by: &'a By,
    operation: Operation,
    api_version: &'a str,
    part: Part,
    now: Timestamp,
) -> Manager<'a> {
    let name = [&by.manager, &by.actor].into_iter().find(|name| !name.is_empty());
    let subresource = if part == Part::Status { "status" } else { "" };
    Manager { name: name.map_or("unknown", |name| name), operation, api_version, subresource, time: now }
}

/// Settles who owns what after `new` has replaced everything but the status of `current`, by somebody who
/// did not apply it.
pub(super) fn track(
    served: &Served,
    version: &Version,
    current: &Encoded,
    new: &mut Object,
    by: &By,
    now: Timestamp,
) {
    if !is_kept(current.body()) {
        new.set_metadata(FIELD, Value::Null);
        return;
    }
    let old = seen_as(current, new.api_version());
    // The status is not this write's to speak of: it stays whose it was.
    if served.kind.has_status {
        new.set("status", old.status().clone());
    }
    settle(version, old, new, Part::Main, by, now);
    if served.kind.has_status {
        new.set("status", Value::Null);
    }
}

/// The current object with the metadata it has after a write of `status`; `sent` is what it came with.
pub(super) fn of_status(
    version: &Version,
    current: &Encoded,
    sent: &Object,
    status: Value,
    by: &By,
    now: Timestamp,
    ownership: Ownership,
) -> Object {
    let old = seen_as(current, sent.api_version());
    let mut new = old.clone();
    new.set("status", status);
    match ownership {
        Ownership::Settled => new.set_metadata(FIELD, sent.metadata(FIELD).clone()),
        Ownership::Open => settle(version, old, &mut new, Part::Status, by, now),
    }
    new
}

fn seen_as(current: &Encoded, api_version: &str) -> Object {
    let mut object = current.decode();
    object.set("apiVersion", api_version.into());
    object
}

fn settle(version: &Version, old: Object, new: &mut Object, part: Part, by: &By, now: Timestamp) {
    let api_version = new.api_version().to_owned();
    let manager = manager(by, Operation::Update, &api_version, part, now);
    let old = old.into_value();
    new.change(|whole| apply::track(&version.schema, Some(&old), whole, &manager));
}
