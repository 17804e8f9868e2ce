//! All that reconciles. Knows no HTTP server.
#![warn(missing_docs)]

pub mod claims;
#[cfg(test)]
mod fixtures;
pub mod gc;
pub mod managed;
pub mod mothership;
pub mod plugins;
