//! Component reconcilers in Rust.
//!
//! A component reconciler is a program of its own. It registers with the mothership, asks for entries of
//! the fleet that are due, makes the world match what the inventory says of each, and answers: ready, not
//! ready and waiting for something, come back later, or failed. Queues, retries, back-off and status are
//! the mothership's; leases, heartbeats and batches are done here.
//!
//! ```no_run
//! use concert_worker::{Answer, Component, Entry, Inventory, Outcome, Registration, Server, Waits, Worker};
//!
//! struct Greeting;
//!
//! impl Component for Greeting {
//!     async fn reconcile(&self, _: &Entry, inventory: &Inventory) -> Outcome {
//!         let Some(network) = inventory.section("network").await? else {
//!             return Ok(Answer::not_ready("there is no network", [Waits::section("network")]));
//!         };
//!         let text = format!("hello, {}", network.data["vnet_name"]);
//!         inventory.write("greeting", &serde_json::json!({ "text": text })).await?;
//!         Ok(Answer::ready("greeted"))
//!     }
//! }
//!
//! # async fn run() -> Result<(), concert_worker::Error> {
//! let registration = Registration::new("greeting")
//!     .handles("runtime")
//!     .watches("network")
//!     .reads(["network"])
//!     .writes(["greeting"]);
//! let server = Server::new("https://127.0.0.1:8000")?.token("…")?;
//! Worker::new(server, registration, Greeting).run(std::future::pending()).await
//! # }
//! ```
#![warn(missing_docs)]

mod answer;
mod component;
mod error;
mod http;
mod inventory;
mod moment;
mod registration;
mod run;
mod server;

pub use answer::{Answer, Class, Failed, Outcome, Waits};
pub use component::{Component, Entry};
pub use concert_model::Condition;
pub use concert_model::condition::Status;
pub use error::Error;
pub use inventory::{Inventory, Part, Section, View, Written};
pub use registration::Registration;
pub use run::Worker;
pub use server::Server;

/// The guide, whose examples are compiled with those above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/fleet.md")]
pub struct Guide;
