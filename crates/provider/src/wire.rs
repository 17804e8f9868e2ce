//! The messages and services that `build.rs` generates from `proto/`.
//!
//! Nothing outside this crate sees them: what crosses the seams are the types of the contract.

/// `external.proto.v1alpha1`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub(crate) mod v1alpha1 {
    tonic::include_proto!("external.proto.v1alpha1");
}

/// `concert.provider.v1`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub(crate) mod v1 {
    tonic::include_proto!("concert.provider.v1");
}
