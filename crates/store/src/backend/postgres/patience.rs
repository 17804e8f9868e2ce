//! For how long somebody tries again.

use std::sync::Arc;
use std::time::Duration;

use super::trouble::Trouble;
use crate::clock::Clock;

/// The first pause between two tries; each is twice the one before.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// For how long somebody tries again: over a restart of the server, and not until callers have given up.
pub(super) struct Patience {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limit: Duration,
}

/// Tries that have begun.
pub(super) struct Tries<'a> {
    patience: &'a Patience,
    until: Duration,
    pause: Duration,
}

impl Patience {
    pub(super) fn begin(&self) -> Tries<'_> {
        Tries { patience: self, until: self.clock.elapsed() + self.limit, pause: PAUSE_MIN }
    }
}

impl Tries<'_> {
    /// Waits until it is time for the next try.
    ///
    /// # Errors
    /// What was wrong with the last one, when there shall be no more.
    pub(super) async fn pause(&mut self, trouble: Trouble) -> Result<(), Trouble> {
        let clock = &self.patience.clock;
        if clock.elapsed() + self.pause > self.until {
            return Err(trouble);
        }
        clock.sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}
