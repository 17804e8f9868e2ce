//! All that reconciles. Knows no HTTP server.
#![warn(missing_docs)]

pub mod gc;
pub mod managed;
