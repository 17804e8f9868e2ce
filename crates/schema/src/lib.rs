//! Schemas of objects: what a kind's fields may hold, and what happens to those that do not fit.
//!
//! [`structural`] has the schemas of CustomResourceDefinitions, with validation, CEL rules, defaulting
//! and pruning as Kubernetes does them. [`apply`] and [`strategic`] merge what several writers want;
//! [`columns`] says what tables show; an [`Expression`] computes values. Nothing here reads files or the network.
//!
//! ```
//! use concert_schema::Schema;
//! use serde_json::json;
//!
//! let schema = Schema::compile(&json!({
//!     "type": "object",
//!     "properties": { "spec": {
//!         "type": "object",
//!         "required": ["size"],
//!         "properties": {
//!             "size": { "type": "integer", "minimum": 1 },
//!             "tier": { "type": "string", "enum": ["small", "large"], "default": "small" },
//!         },
//!     }},
//! }))
//! .expect("the schema is structural");
//!
//! let mut object = json!({ "kind": "Bucket", "spec": { "size": 0, "colour": "pink" } });
//! let dropped = schema.prune(&mut object);
//! schema.default(&mut object);
//! let errors = schema.validate(&object);
//!
//! assert_eq!(dropped[0].as_str(), "spec.colour");
//! assert_eq!(object["spec"]["tier"], "small");
//! assert_eq!(
//!     errors[0].to_string(),
//!     "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
//! );
//! ```

#![warn(missing_docs)]

pub mod apply;
mod cel;
pub mod columns;
pub mod strategic;
pub mod structural;

pub use cel::Expression;
pub use columns::Column;
pub use structural::Schema;
