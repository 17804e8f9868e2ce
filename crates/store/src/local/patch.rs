//! Patches that only our own stores know: in the words of one version, and by merge keys.

use concert_model::{Encoded, FieldError, FieldPath, ObjectKey, Patch};
use concert_schema::strategic;
use serde_json::Value;

use super::Local;
use crate::contract::{By, Part, Result};
use crate::error::Error;

impl Local {
    /// As [`crate::Store::patch`], with the object as `version` of its kind sees it: its schema decides
    /// what is known.
    ///
    /// # Errors
    /// As [`crate::Store::patch`]; [`Error::Invalid`] for a version that is not served.
    pub async fn patch_as(
        &self,
        key: &ObjectKey,
        version: &str,
        part: Part,
        patch: &Patch,
        by: &By,
    ) -> Result<Encoded> {
        self.inner().patch(key, Some(version), part, &|before| patch.apply(before), by).await
    }

    /// As [`crate::Store::patch`], with a strategic merge patch: lists of built-in kinds are merged by
    /// their keys.
    ///
    /// # Errors
    /// As [`crate::Store::patch`]; [`Error::Invalid`] for kinds that are not built in, whose lists have no
    /// merge keys.
    pub async fn patch_strategic(
        &self,
        key: &ObjectKey,
        part: Part,
        patch: &Value,
        by: &By,
    ) -> Result<Encoded> {
        if !self.card(&key.kind)?.is_built_in {
            let detail = format!("{} has no strategic merge patches", key.kind);
            let error = FieldError::forbidden(FieldPath::new("patch"), detail);
            return Err(Error::invalid(key.to_string(), error));
        }
        let merge = |before: &Value| strategic::merge(&key.kind, before, patch);
        self.inner().patch(key, None, part, &merge, by).await
    }
}
