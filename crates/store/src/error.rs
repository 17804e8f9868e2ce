//! What can go wrong at the store, by what the caller can do about it.

use concert_model::{FieldError, FieldPath, GroupKind, ObjectKey, PatchError};
use concert_schema::apply::{ApplyError, Conflict};

use crate::contract::Fence;
use crate::unknown::unknown_field;

/// Why a call to a store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such object.
    #[error("{key} does not exist")]
    NotFound {
        /// What was looked for; may be the namespace of the object asked for.
        key: ObjectKey,
    },
    /// The name is taken.
    #[error("{key} already exists")]
    AlreadyExists {
        /// Whose name.
        key: ObjectKey,
    },
    /// Somebody else wrote first: read again and decide again.
    #[error("{key} changed since it was read")]
    Conflict {
        /// Which object.
        key: ObjectKey,
    },
    /// The request breaks rules; it will never succeed as it is.
    #[error("{what} is invalid: {}", listed(.errors))]
    Invalid {
        /// The object or the part of the request.
        what: String,
        /// Each field and its rule; never empty.
        errors: Vec<FieldError>,
    },
    /// The request has fields that nobody knows, and asked to be refused for that.
    #[error("strict decoding error: {}", unknown(.fields))]
    Unknown {
        /// The object.
        what: String,
        /// The fields; never empty.
        fields: Vec<FieldPath>,
    },
    /// Others own fields that an apply wants to change: leave them out, or force it.
    #[error("{}", ApplyError::Conflicts(.conflicts.clone()))]
    Contested {
        /// Which object.
        key: ObjectKey,
        /// Each field and who owns it; never empty.
        conflicts: Vec<Conflict>,
    },
    /// The object may not be written now, whoever asks.
    #[error("{key} is refused: {why}")]
    Forbidden {
        /// Which object.
        key: ObjectKey,
        /// The reason.
        why: String,
    },
    /// No such kind is served.
    #[error("there is no kind {kind}")]
    UnknownKind {
        /// The kind asked for.
        kind: GroupKind,
    },
    /// The position of a watch or list is compacted away: list again.
    #[error("the position is too old")]
    Expired,
    /// A newer claim on the item exists: stop working on it.
    #[error("claim {number} on {item} is no longer the newest")]
    Fenced {
        /// Which item.
        item: String,
        /// The claim that is too old.
        number: u64,
    },
    /// There is no room for the write; reads still work.
    #[error("the disk is full")]
    Full,
    /// The store cannot be reached or has failed; whether the write happened is unknown.
    #[error("the store is unavailable")]
    Unavailable(#[source] BoxError),
}

/// Any error, as a source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Error {
    /// A malformed part of a request.
    pub fn invalid(what: impl Into<String>, error: FieldError) -> Self {
        Self::Invalid { what: what.into(), errors: vec![error] }
    }

    /// A store that failed, in words.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable(why.into().into())
    }

    /// A claim that is no longer the newest.
    pub fn fenced(fence: &Fence) -> Self {
        Self::Fenced {
            item: format!("{} of {}", fence.item.item, fence.item.controller),
            number: fence.number,
        }
    }

    /// A patch that cannot be applied to `key`.
    pub fn patch(key: &ObjectKey, error: PatchError) -> Self {
        let error = match error {
            PatchError::Malformed(error) => error,
            PatchError::Unfit(why) => FieldError::forbidden(FieldPath::new("patch"), why),
        };
        Self::invalid(key.to_string(), error)
    }

    /// True if the same call may succeed later without any change to it.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Conflict { .. } | Error::Expired | Error::Full | Error::Unavailable(_))
    }
}

fn listed(errors: &[FieldError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) }
}

fn unknown(fields: &[FieldPath]) -> String {
    fields.iter().map(unknown_field).collect::<Vec<_>>().join(", ")
}
