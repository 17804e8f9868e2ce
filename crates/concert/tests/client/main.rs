//! The client commands of `concert` against a real kube-apiserver: what they print, say and exit with.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod alone;
mod applying;
mod connecting;
mod deleting;
mod planning;
mod showing;
mod watching;
mod world;
