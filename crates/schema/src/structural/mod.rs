//! Structural schemas, the `openAPIV3Schema` of a CustomResourceDefinition.
//!
//! [`Schema::compile`] reads one and refuses what is not structural. The compiled tree then serves
//! every write: [`Schema::prune`] drops what is not specified, [`Schema::default`] fills in what is
//! missing, [`Schema::validate`] says what is wrong in the words of Kubernetes. Apply and patch walk
//! the same tree by [`Schema::property`] and [`Schema::items`].

mod checks;
mod compile;
mod default;
pub(crate) mod earlier;
mod format;
mod number;
pub(crate) mod order;
pub(crate) mod path;
pub(crate) mod pattern;
mod prune;
mod rule;
mod schema;
mod validate;

pub use compile::{SCHEMA_DEFAULTS_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX, SCHEMA_PATTERNS_MAX};
pub use prune::DROPPED_MAX;
pub use rule::{Reason, ValidationRule};
pub use schema::{ListType, MapType, Schema, Type};
pub use validate::ERRORS_MAX;
