//! Waiting for something to come true, but not forever.

use std::time::{Duration, Instant};

use anyhow::Result;

/// Between two looks: short, since every test run waits for it.
const PAUSE: Duration = Duration::from_millis(25);

/// Looks until `look` finds something. None if it does not within `limit`.
#[expect(clippy::disallowed_methods, reason = "servers of other makers cannot be told which time it is")]
pub(crate) fn until<T>(limit: Duration, mut look: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    let started = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        if started.elapsed() > limit {
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}
