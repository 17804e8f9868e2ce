//! Server-side apply: objects written by several managers, each owning the fields it cares about.
//!
//! [`apply`] lays what one manager wants over the live object: fields of others are left alone, or
//! contested; fields that it applied before and no longer does are removed, unless somebody else owns
//! them too. [`track`] notes who owns what after any other write. Both keep `metadata.managedFields` in
//! the format of Kubernetes, which clients read and write.
//!
//! The work is linear in the size of the objects (and n log n in their lists), whatever is in them.

mod claim;
mod compare;
mod entries;
mod fields;
mod merge;
mod node;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use concert_model::field::{FieldError, FieldPath};
use concert_model::time::Timestamp;
use serde_json::{Map, Value};

use crate::structural::Schema;
use compare::Changes;
use entries::{Entries, Entry};
use fields::Fields;
use node::Node;

/// Who owns what was there before anything was applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Fields of metadata that identify an object or belong to the server: nobody owns them.
const IDENTITY: [&str; 11] = [
    "name",
    "namespace",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "clusterName",
];

/// Those of them that an applied object cannot change.
const SERVERS_OWN: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Who writes, how and when.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// The field manager.
    pub name: &'a str,
    /// Whether it applies.
    pub operation: Operation,
    /// The version that it writes in.
    pub api_version: &'a str,
    /// `status` and the like; empty for the object itself.
    pub subresource: &'a str,
    /// When.
    pub time: Timestamp,
}

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply: it owns exactly what it applied last.
    Apply,
    /// In any other way: it owns what it changed.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// A field that would be changed and that somebody else owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner as users know it: `"kubectl-client-side-apply" using example.com/v1`.
    pub manager: String,
    /// The field: `.spec.ports[name="http"].port`.
    pub field: String,
}

/// Why an object cannot be applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// Others own what it would change. Without such fields, or with force, it can be applied.
    #[error("{}", contested(.0))]
    Conflicts(Vec<Conflict>),
    /// It does not have the shape that the schema asks for.
    #[error("{}", joined(.0))]
    Invalid(Vec<FieldError>),
}

/// Applies `applied` to the object as it is, `live`; without one it is created.
///
/// # Guarantees
/// When nothing changes, neither values nor owners, the result is `live`, byte for byte.
/// Server-set metadata stays as it is in `live`. Whoever calls compares `applied`'s uid and resource
/// version with those of `live` if they are there, and drops what `manager.subresource` does not cover.
///
/// # Errors
/// [`ApplyError::Conflicts`] unless `force`; [`ApplyError::Invalid`] when `applied` has fields that the
/// schema does not know, or lists without keys or with an element twice.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    applied: &Value,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    let root = Node::root(schema);
    let applied = admitted(root, applied)?;
    let (old, managed) = live.map_or((empty(), Value::Null), apart);
    let before = Entries::read(&managed).unwrap_or_default();
    let mut entries = before.clone();
    if live.is_some() && before.is_empty() {
        entries.add(before_first_apply(root, &old, manager));
    }

    let claim = claim::claimed(root, &applied);
    let mut own = Entry::new(&Manager { operation: Operation::Apply, ..*manager }, claim);
    let last = entries.take(&own).map(|entry| entry.fields).unwrap_or_default();
    let mut new = merge::merge(root, &old, &applied);
    merge::remove(root, &mut new, &abandoned(root, last, &own.fields, &entries));

    let changes = compared(root, &old, &new);
    let written = changes.written();
    let conflicts = entries.conflicts(&written);
    if !force && !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    entries.release(&written);
    entries.release(&changes.removed);
    strip_identity(&mut own.fields);
    if !own.fields.is_empty() {
        entries.add(own);
    }
    if let Some(live) = live
        && old == new
        && entries.is_same(&before)
    {
        return Ok(live.clone());
    }
    put_managed(&mut new, entries.into_value());
    Ok(new)
}

/// Notes in `new` who owns what after `manager` wrote it in place of `old`, other than by apply.
///
/// Managed fields that `new` brings along are taken instead of those of `old`, so that clients can move
/// ownership; malformed or missing ones are not, and a single empty entry means a fresh start. Through a
/// subresource they cannot be changed.
pub fn track(schema: &Schema, old: Option<&Value>, new: &mut Value, manager: &Manager<'_>) {
    if !new.is_object() {
        return;
    }
    let root = Node::root(schema);
    let given = take_managed(new).filter(|_| manager.subresource.is_empty());
    let (old, managed) = old.map_or((empty(), Value::Null), apart);
    let changes = compared(root, &old, new);
    if changes.is_empty() && given.as_ref().is_none_or(|given| *given == managed) {
        put_managed(new, Some(managed).filter(|managed| !managed.is_null()));
        return;
    }
    let mut entries = given_or_kept(given.as_ref(), &managed);
    let written = changes.written();
    entries.release(&written);
    entries.release(&changes.removed);
    if !written.is_empty() {
        entries.add(Entry::new(&Manager { operation: Operation::Update, ..*manager }, written));
    }
    put_managed(new, entries.into_value());
}

fn given_or_kept(given: Option<&Value>, kept: &Value) -> Entries {
    let is_reset = |given: &Value| {
        let entries = given.as_array().map_or(&[][..], Vec::as_slice);
        matches!(entries, [Value::Object(entry)] if entry.is_empty())
    };
    match given {
        Some(given) if is_reset(given) => Entries::default(),
        given => given
            .and_then(Entries::read)
            .filter(|entries| !entries.is_empty())
            .or_else(|| Entries::read(kept))
            .unwrap_or_default(),
    }
}

/// `applied` without what it cannot say anything about, if it can be applied at all.
fn admitted(root: Node<'_>, applied: &Value) -> Result<Value, ApplyError> {
    let mut errors = claim::misfits(root, applied);
    if !applied.is_object() {
        errors.push(FieldError::invalid(FieldPath::root(), applied, "must be an object"));
    }
    let managed = applied.pointer("/metadata/managedFields");
    if managed
        .is_some_and(|managed| !managed.is_null() && managed.as_array().is_none_or(|list| !list.is_empty()))
    {
        errors.push(FieldError::forbidden(
            FieldPath::new("metadata.managedFields"),
            "must not be set in an object that is applied",
        ));
    }
    if !errors.is_empty() {
        return Err(ApplyError::Invalid(errors));
    }
    let mut applied = applied.clone();
    if let Some(metadata) = applied.get_mut("metadata").and_then(Value::as_object_mut) {
        SERVERS_OWN.iter().for_each(|name| drop(metadata.remove(*name)));
    }
    Ok(applied)
}

fn before_first_apply(root: Node<'_>, old: &Value, manager: &Manager<'_>) -> Entry {
    let api_version = old.get("apiVersion").and_then(Value::as_str).unwrap_or(manager.api_version);
    let owner = Manager {
        name: BEFORE_FIRST_APPLY,
        operation: Operation::Update,
        api_version,
        subresource: "",
        time: manager.time,
    };
    Entry::new(&owner, compared(root, &empty(), old).written())
}

/// What the manager had applied and no longer does, and nobody else owns.
fn abandoned(root: Node<'_>, last: Fields, claim: &Fields, others: &Entries) -> Fields {
    let mut owned = others.fields();
    owned.union(claim);
    let mut gone = merge::with_named(root, &last);
    gone.subtract(&merge::with_named(root, &owned));
    // Identity is nobody's, so an object is not taken apart for want of an owner of it.
    gone.edit("f:metadata", |metadata| metadata.is_owned = false);
    strip_identity(&mut gone);
    gone
}

fn compared(root: Node<'_>, old: &Value, new: &Value) -> Changes {
    let mut changes = compare::compare(root, old, new);
    strip_identity(&mut changes.added);
    strip_identity(&mut changes.modified);
    strip_identity(&mut changes.removed);
    changes
}

fn strip_identity(fields: &mut Fields) {
    fields.is_owned = false;
    fields.put("f:apiVersion", Fields::default());
    fields.put("f:kind", Fields::default());
    fields.edit("f:metadata", |metadata| {
        metadata.is_owned = false;
        for name in IDENTITY {
            metadata.put(fields::field_step(name), Fields::default());
        }
    });
}

/// An object and its managed fields.
fn apart(object: &Value) -> (Value, Value) {
    let mut object = if object.is_object() { object.clone() } else { empty() };
    let managed = take_managed(&mut object).unwrap_or_default();
    (object, managed)
}

fn take_managed(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

fn put_managed(object: &mut Value, managed: Option<Value>) {
    let (Some(managed), Some(fields)) = (managed, object.as_object_mut()) else { return };
    let metadata = fields.entry("metadata").or_insert_with(empty);
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".to_owned(), managed);
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

/// As kubectl shows it.
fn contested(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.manager, one.field);
    }
    let mut text = format!("Apply failed with {} conflicts:", conflicts.len());
    for (index, owned) in conflicts.chunk_by(|a, b| a.manager == b.manager).enumerate() {
        text.push(if index == 0 { ' ' } else { '\n' });
        // Writing to a string cannot fail.
        let _ = write!(text, "conflicts with {}:", owned[0].manager);
        for conflict in owned {
            let _ = write!(text, "\n- {}", conflict.field);
        }
    }
    text
}

fn joined(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
