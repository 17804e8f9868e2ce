//! What both sides of v1alpha1 share: objects as `google.protobuf.Struct`, and what may be taken from
//! a whole object that comes back.

pub(crate) mod delta;
pub(crate) mod structs;

/// The annotation that holds the identity of the external thing.
pub(crate) const EXTERNAL_NAME: &str = "crossplane.io/external-name";

/// The annotation that is written before a create.
pub(crate) const CREATE_PENDING: &str = "crossplane.io/external-create-pending";
