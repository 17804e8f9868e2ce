//! What the suites of both doors have in common: a client, and requests that are broken.

pub mod client;
pub mod fuzz;
