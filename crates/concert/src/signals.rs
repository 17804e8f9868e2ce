//! SIGTERM and SIGINT.

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both, while the value lives.
pub struct Signals(Signal, Signal);

impl Signals {
    /// Listens for them from now on.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self(listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?))
    }

    /// The next of either.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}
