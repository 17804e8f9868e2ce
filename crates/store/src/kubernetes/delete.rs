//! Deleting objects.
//!
//! The server answers with an object as long as one remains, and with a mere success when it is gone.
//! So the last state is read first, and the deletion is meant for that state only: that is how its
//! final state is known.

use concert_model::{Address, Encoded, ObjectKey, ResourceVersion, Uid};
use serde_json::json;

use super::codec;
use super::kinds::Resource;
use super::read::check_key;
use super::requests::Verb;
use super::server::Server;
use super::status::About;
use super::transport::Content;
use super::write::is_removed;
use crate::contract::{By, Delete, Deleted, Propagation, Result};
use crate::error::Error;

/// How often others may write between our read and the deletion. After that it is meant for whatever
/// state of the same incarnation there is.
const TRIES: usize = 8;

impl Server {
    pub(super) async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        let mut tries = TRIES;
        let mut last = self.get(key).await?;
        loop {
            tries -= 1;
            let uid = options.uid.clone().unwrap_or_else(|| last.head().uid.clone());
            let guess = (tries > 0).then(|| last.resource_version().clone());
            let version = options.resource_version.clone().or(guess);
            match self.delete_once(key, &uid, version.as_ref(), options, by).await {
                // Either the caller's precondition does not hold, or only our guess.
                Err(Error::Conflict { .. }) if is_guess(options, &uid) && tries > 0 => {
                    last = self.get_live(key).await?;
                }
                Err(error) => {
                    self.refused(key, &error);
                    return Err(error);
                }
                Ok(None) => {
                    if !by.is_dry_run {
                        self.forget(&last);
                        self.kinds.doubt_definition(key);
                    }
                    return Ok(Deleted::Gone(last));
                }
                Ok(Some(object)) if is_removed(&object) => {
                    if !by.is_dry_run {
                        self.forget(&object);
                    }
                    return Ok(Deleted::Gone(object));
                }
                Ok(Some(object)) => {
                    if !by.is_dry_run {
                        self.answered(&object);
                        self.kinds.doubt_definition(key);
                    }
                    return Ok(Deleted::Waiting(object));
                }
            }
        }
    }

    /// One deletion: the object that remains, or none.
    async fn delete_once(
        &self,
        key: &ObjectKey,
        uid: &Uid,
        version: Option<&ResourceVersion>,
        options: &Delete,
        by: &By,
    ) -> Result<Option<Encoded>> {
        let mut preconditions = json!({"uid": &*uid.0});
        if let Some(version) = version {
            preconditions["resourceVersion"] = json!(&*version.0);
        }
        let policy = match options.propagation {
            Propagation::Unsaid => None,
            Propagation::Background => Some("Background"),
            Propagation::Foreground => Some("Foreground"),
            Propagation::Orphan => Some("Orphan"),
        };
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        if let Some(policy) = policy {
            body["propagationPolicy"] = json!(policy);
        }
        if by.is_dry_run {
            body["dryRun"] = json!(["All"]);
        }
        let content = Content::Json(body.to_string().into());
        let request = |resource: &Resource| -> Result<(Address, Content)> {
            check_key(resource, key)?;
            Ok((resource.address_of(key), content.clone()))
        };
        let (resource, answer) = self.ask(&key.kind, Verb::Delete, About::Object(key), request).await?;
        let tree: serde_json::Value =
            serde_json::from_slice(&answer.bytes).map_err(|e| Error::Unavailable(e.into()))?;
        if tree["kind"] == "Status" && tree["apiVersion"] == "v1" {
            return Ok(None);
        }
        codec::object(&resource, &answer.bytes).map(Some)
    }
}

/// True if the caller asked for no state and the right incarnation: a conflict is our own doing.
fn is_guess(options: &Delete, uid: &Uid) -> bool {
    options.resource_version.is_none() && options.uid.as_ref().is_none_or(|wanted| wanted == uid)
}
