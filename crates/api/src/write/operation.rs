//! What is to be written, and what was.

use concert_model::{Encoded, Object, ObjectKey, Patch};
use concert_store::{Delete, Deleted, Error, Part};
use serde_json::Value;

/// One write.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A new object.
    Create(Object),
    /// This in the place of what is stored. Without a resource version it overwrites whatever is there.
    Update(Object, Part),
    /// A change to what is stored.
    Patch(ObjectKey, Part, Change),
    /// Server-side apply.
    Apply {
        /// What the manager wants.
        object: Object,
        /// Of which part.
        part: Part,
        /// Take fields over from other managers.
        is_forced: bool,
    },
    /// An end.
    Delete(ObjectKey, Delete),
}

impl Operation {
    /// Which object it is for.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an object that does not say of which type it is.
    pub fn key(&self) -> Result<ObjectKey, Error> {
        match self {
            Operation::Create(object) | Operation::Update(object, _) | Operation::Apply { object, .. } => {
                object.key().map_err(|error| Error::invalid(object.kind(), error))
            }
            Operation::Patch(key, ..) | Operation::Delete(key, _) => Ok(key.clone()),
        }
    }
}

/// A change that is computed against what is stored.
#[derive(Clone, Debug)]
pub enum Change {
    /// JSON patch or merge patch.
    Plain {
        /// The version of the kind that it is written in: what that knows may be changed.
        version: String,
        /// What to do.
        patch: Patch,
    },
    /// Strategic merge patch, for built-in kinds.
    Strategic(Value),
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Written {
    /// There was none before.
    Created(Encoded),
    /// As it is stored now.
    Updated(Encoded),
    /// On its way out, or gone.
    Deleted(Deleted),
}

impl Written {
    /// The object, whatever became of it.
    pub fn object(&self) -> &Encoded {
        match self {
            Written::Created(object)
            | Written::Updated(object)
            | Written::Deleted(Deleted::Gone(object) | Deleted::Waiting(object)) => object,
        }
    }

    /// The object, whatever became of it.
    pub fn into_object(self) -> Encoded {
        match self {
            Written::Created(object) | Written::Updated(object) => object,
            Written::Deleted(deleted) => deleted.into_object(),
        }
    }
}
