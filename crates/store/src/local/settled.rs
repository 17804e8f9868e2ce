//! Writing what a dry run came up with, after somebody has had a word on it.

use concert_model::{Encoded, Object};
use serde_json::Value;

use super::Local;
use super::admit::describe;
use super::ownership::Ownership;
use crate::contract::{By, Part, Result};
use crate::error::Error;

impl Local {
    /// Writes everything but the status of `object`, in the place of `current` or as a new object. It is
    /// what a dry run of a write over `current` gave, changed or not: whose its fields are has been worked
    /// out there and stays, and what was changed since is nobody's.
    ///
    /// # Guarantees
    /// As [`crate::Store::create`] or [`crate::Store::update`].
    ///
    /// # Errors
    /// As [`crate::Store::create`]; [`Error::Conflict`] when `current` is no longer what is stored.
    pub async fn write_settled(
        &self,
        mut object: Object,
        current: Option<&Encoded>,
        by: &By,
    ) -> Result<Encoded> {
        let key = object.key().map_err(|error| Error::invalid(describe(&object), error))?;
        let served = self.inner().find_kind(&key.kind).await?;
        let outcome = match current {
            None => {
                object.set_metadata("resourceVersion", Value::Null);
                self.inner().try_create(&served, &mut object, by, Ownership::Settled).await
            }
            Some(current) => {
                self.inner().replace(&served, current, object, Part::Main, by, Ownership::Settled).await
            }
        };
        outcome.map_err(|attempt| attempt.into_error(&key))
    }
}
