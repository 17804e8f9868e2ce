//! Objects as values.
//!
//! Kinds, keys, metadata, conditions, finalizers, owners, selectors and patches; nothing here waits,
//! reads a clock or touches a disk.
#![warn(missing_docs)]

pub mod address;
pub mod base64;
pub mod condition;
pub mod duration;
pub mod encoded;
pub mod field;
pub mod inventory;
pub mod key;
pub mod metadata;
pub mod name;
pub mod no8s;
pub mod object;
pub mod owner;
pub mod patch;
pub mod reach;
pub mod selector;
pub mod time;

pub use address::Address;
pub use condition::Condition;
pub use encoded::{Body, Encoded, Head};
pub use field::{FieldError, FieldPath, Rule};
pub use key::{GroupKind, GroupVersionKind, ObjectKey, ResourceVersion, Revision, Uid};
pub use object::Object;
pub use owner::OwnerReference;
pub use patch::{Patch, PatchError};
pub use selector::{FieldSelector, LabelSelector, Labels};
pub use time::Timestamp;
