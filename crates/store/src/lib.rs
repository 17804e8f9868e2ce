//! Where objects live.
//!
//! [`Store`] is the contract. A local store keeps it over any `Backend` of bytes.
#![warn(missing_docs)]

pub mod backend;
pub mod card;
pub mod chance;
pub mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod contract;
pub mod error;
pub mod kind;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod local;
pub mod seal;
pub mod unknown;
pub mod work;

pub use bytes::Bytes;
pub use card::{Card, View};
pub use chance::Chance;
pub use clock::{Clock, SystemClock};
pub use contract::{
    By, Delete, Deleted, Event, Events, Fence, ItemKey, Page, PageRequest, Part, Propagation, Query, Result,
    Store,
};
pub use error::Error;
pub use kind::Kind;
pub use local::{Applied, Config, Local};
pub use unknown::{UnknownFields, Warnings};
pub use work::{Work, WorkRow};
