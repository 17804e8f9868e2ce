//! The Helm chart, rendered by Helm's own engine and held against the programs, their reference and a real
//! kube-apiserver. What pods do on nodes is not shown here: there are none.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod chart;
mod kubernetes;
mod objects;
mod programs;
mod refusals;
