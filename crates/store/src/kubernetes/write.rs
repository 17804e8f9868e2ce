//! Making and changing objects.

use std::sync::Arc;

use bytes::Bytes;
use concert_model::{Address, Encoded, FieldError, FieldPath, GroupKind, Object, ObjectKey, Patch, Rule};
use serde_json::Value;

use super::codec;
use super::kinds::Resource;
use super::read::check_key;
use super::requests::Verb;
use super::server::Server;
use super::status::About;
use super::transport::{Answer, Content};
use crate::contract::{By, Part, Result};
use crate::error::Error;
use crate::unknown::UnknownFields;

/// Whose fields they are where the caller does not say.
const MANAGER: &str = "concert";

/// Longest name of a field manager that a server takes.
const MANAGER_BYTES_MAX: usize = 128;
/// The server itself tries a patch five times; with many writers that is not enough.
const PATCH_TRIES: usize = 16;

impl Server {
    pub(super) async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        let invalid = |error| Error::invalid(describe(&object), error);
        let gvk = object.gvk().map_err(invalid)?;
        if object.resource_version().is_some() {
            let field = FieldPath::new("metadata.resourceVersion");
            return Err(invalid(FieldError::forbidden(field, "must not be set on objects to be created")));
        }
        let key = ObjectKey::namespaced(gvk.group_kind.clone(), object.namespace(), object.name());
        let content = content_of(&object);
        let request = |resource: &Resource| {
            check_scope(resource, &object)?;
            check_version(resource, &object, &gvk.version)?;
            let address = resource.address_in(&gvk.version, Some(&key.namespace));
            Ok((with_manner(address, by), content.clone()))
        };
        let answer = self.ask(&gvk.group_kind, Verb::Create, About::Object(&key), request).await;
        self.written(&key, answer, by).await
    }

    pub(super) async fn update(&self, object: Object, part: Part, by: &By) -> Result<Encoded> {
        let invalid = |error| Error::invalid(describe(&object), error);
        let key = object.key().map_err(invalid)?;
        let version = object.gvk().map_err(invalid)?.version;
        let content = content_of(&object);
        let request = |resource: &Resource| {
            check_scope(resource, &object)?;
            check_version(resource, &object, &version)?;
            check_part(resource, &key, part)?;
            // The server would take it for some kinds, and overwrite whatever is there.
            if object.resource_version().is_none() {
                let field = FieldPath::new("metadata.resourceVersion");
                return Err(invalid(FieldError::required(field, "must be specified for an update")));
            }
            check_key(resource, &key)?;
            let address = resource.address_in(&version, Some(&key.namespace)).step(&key.name);
            Ok((with_manner(of_part(address, part), by), content.clone()))
        };
        let answer = self.ask(&key.kind, Verb::Update, About::Object(&key), request).await;
        self.written(&key, answer, by).await
    }

    pub(super) async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        let bytes = |document: serde_json::Result<Vec<u8>>| {
            document.map(Bytes::from).map_err(|e| Error::Unavailable(e.into()))
        };
        let content = match patch {
            Patch::Json(operations) => Content::JsonPatch(bytes(serde_json::to_vec(operations))?),
            Patch::Merge(document) => Content::MergePatch(bytes(serde_json::to_vec(document))?),
        };
        let request = |resource: &Resource| {
            check_key(resource, key)?;
            check_part(resource, key, part)?;
            Ok((with_manner(of_part(resource.address_of(key), part), by), content.clone()))
        };
        let mut tries = if names_a_version(patch) { 1 } else { PATCH_TRIES };
        loop {
            let answer = self.ask(&key.kind, Verb::Patch, About::Object(key), &request).await;
            tries -= 1;
            match answer {
                Err(Error::Conflict { .. }) if tries > 0 => {}
                answer => return self.written(key, answer, by).await,
            }
        }
    }

    /// What a write leaves behind: the object it answered with, or doubt.
    async fn written(
        &self,
        key: &ObjectKey,
        answer: Result<(Arc<Resource>, Answer)>,
        by: &By,
    ) -> Result<Encoded> {
        let (resource, answer) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.refused(key, &error);
                return Err(error);
            }
        };
        answer.warnings.iter().for_each(|warning| by.warnings.add(warning.as_str()));
        if by.is_dry_run {
            return codec::dry_object(&resource, &answer.bytes);
        }
        let written = codec::object(&resource, &answer.bytes)?;
        self.kinds.doubt_definition(written.key());
        // The last finalizer was taken: this was the end of it.
        if is_removed(&written) {
            self.forget(&written);
            return Ok(written);
        }
        self.answered(&written);
        // The answer comes in the version that it was written in. Ours may be another view.
        if written.head().version == resource.kind.storage_version {
            return Ok(written);
        }
        match self.get_live(written.key()).await {
            Err(Error::NotFound { .. }) => Ok(written),
            other => other,
        }
    }

    /// A refused write shows that what is known of `key` may be old; one without an answer may have
    /// been done.
    pub(super) fn refused(&self, key: &ObjectKey, error: &Error) {
        let is_telling = matches!(
            error,
            Error::Conflict { .. }
                | Error::AlreadyExists { .. }
                | Error::NotFound { .. }
                | Error::Unavailable(_)
        );
        if let Some(reflector) = self.registry.find(&key.kind).filter(|_| is_telling) {
            reflector.stale(key);
        }
    }

    /// Everybody who asks from now on is told that `last` is gone.
    pub(super) fn forget(&self, last: &Encoded) {
        self.see(last.resource_version());
        if let Some(reflector) = self.registry.find(&last.key().kind) {
            reflector.gone(last);
        }
    }
}

/// True if nothing holds an object whose deletion was asked for.
pub(super) fn is_removed(object: &Encoded) -> bool {
    if object.head().deleted_at.is_none() {
        return false;
    }
    let object = object.decode();
    let is_waiting =
        object.metadata("deletionGracePeriodSeconds").as_i64().is_some_and(|seconds| seconds > 0);
    let is_held = |finalizers: &Value| finalizers.as_array().is_some_and(|list| !list.is_empty());
    // Namespaces have finalizers of a second sort.
    let is_namespace = object.kind() == "Namespace" && object.api_version() == "v1";
    !(is_waiting
        || is_held(object.metadata("finalizers"))
        || is_namespace && is_held(&object.spec()["finalizers"]))
}

fn content_of(object: &Object) -> Content {
    // Writing a tree into memory cannot fail: its keys are strings and its numbers finite.
    Content::Json(serde_json::to_vec(object.as_map()).unwrap_or_default().into())
}

/// As whom, and with which fate for unknown fields.
pub(super) fn with_manner(address: Address, by: &By) -> Address {
    let manager = if by.manager.is_empty() { MANAGER } else { shortened(&by.manager) };
    let validation = match by.unknown_fields {
        UnknownFields::Drop => "Ignore",
        UnknownFields::Warn => "Warn",
        UnknownFields::Refuse => "Strict",
    };
    let address = address.with("fieldManager", manager).with("fieldValidation", validation);
    if by.is_dry_run { address.with("dryRun", "All") } else { address }
}

/// A name that the server takes; kinds have longer ones. The end, which tells kinds of a group apart least, goes.
fn shortened(manager: &str) -> &str {
    let end = (0..=MANAGER_BYTES_MAX.min(manager.len())).rev().find(|it| manager.is_char_boundary(*it));
    &manager[..end.unwrap_or_default()]
}

fn of_part(address: Address, part: Part) -> Address {
    match part {
        Part::Main => address,
        Part::Status => address.step("status"),
    }
}

fn describe(object: &Object) -> String {
    let kind = GroupKind::new("", object.kind());
    if object.name().is_empty() { kind.to_string() } else { format!("{kind} {}", object.name()) }
}

fn check_scope(resource: &Resource, object: &Object) -> Result<()> {
    let field = FieldPath::new("metadata.namespace");
    let error = match (resource.kind.is_namespaced, object.namespace()) {
        (true, "") => FieldError::required(field, "objects of this kind live in namespaces"),
        (false, namespace) if !namespace.is_empty() => {
            FieldError::forbidden(field, "objects of this kind have no namespace")
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(describe(object), error))
}

fn check_version(resource: &Resource, object: &Object, version: &str) -> Result<()> {
    if resource.kind.versions.iter().any(|served| **served == *version) {
        return Ok(());
    }
    let versions: Vec<String> = resource.kind.versions.iter().map(|served| format!("{served:?}")).collect();
    let detail = format!("served versions: {}", versions.join(", "));
    let error = FieldError::new(FieldPath::new("apiVersion"), Rule::NotSupported, &version.into(), detail);
    Err(Error::invalid(describe(object), error))
}

fn check_part(resource: &Resource, key: &ObjectKey, part: Part) -> Result<()> {
    if part == Part::Main || resource.kind.has_status {
        return Ok(());
    }
    let error = FieldError::forbidden(FieldPath::new("status"), "this kind has no status subresource");
    Err(Error::invalid(key.to_string(), error))
}

/// True if a patch is meant for one state only.
fn names_a_version(patch: &Patch) -> bool {
    match patch {
        Patch::Merge(document) => !document["metadata"]["resourceVersion"].is_null(),
        Patch::Json(operations) => {
            operations.0.iter().any(|operation| *operation.path() == "/metadata/resourceVersion")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_called_by_what_fits() {
        assert_eq!(shortened("managed/thing.example.com"), "managed/thing.example.com");
        assert_eq!(shortened(&"a".repeat(300)).len(), MANAGER_BYTES_MAX);
        // Between characters.
        assert_eq!(shortened(&format!("{}é", "a".repeat(127))).len(), 127);
    }
}
