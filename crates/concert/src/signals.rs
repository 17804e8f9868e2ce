//! SIGTERM and SIGINT, and what they mean to programs that go on until then.

use std::pin::pin;

use anyhow::Context as _;
use concert_server::Shutdown;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::warn;

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

/// Runs what `start` makes until a signal asks for its end; a second one does not wait.
///
/// # Errors
/// Those of what runs, and when it ends unasked.
pub async fn until_told<E: Into<anyhow::Error>>(
    start: impl AsyncFnOnce(&Shutdown) -> Result<(), E>,
) -> anyhow::Result<()> {
    let shutdown = Shutdown::new();
    let mut signals = Signals::new()?;
    let mut run = pin!(start(&shutdown));
    tokio::select! {
        ended = &mut run => {
            ended.map_err(Into::into)?;
            anyhow::bail!("a part that nothing works without has ended; the log says which");
        }
        () = signals.next() => shutdown.request(),
    }
    tokio::select! {
        ended = &mut run => ended.map_err(Into::into)?,
        () = signals.next() => warn!("asked twice: stopping at once"),
    }
    Ok(())
}
