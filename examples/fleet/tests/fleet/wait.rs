//! Waiting for other processes.

use std::time::{Duration, Instant};

/// Longest anything may take that is waited for: CI machines are slow, and nobody waits when all is well.
const LIMIT: Duration = Duration::from_secs(180);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Looks until `look` finds something, which it must.
#[expect(clippy::disallowed_methods, reason = "other processes cannot be told which time it is")]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) => assert!(started.elapsed() < LIMIT, "not within {LIMIT:?}: {what}; at last: {why}"),
        }
        std::thread::sleep(PAUSE);
    }
}

/// Lets time pass, where the moment of something is what is chosen at random.
#[expect(clippy::disallowed_methods, reason = "other processes cannot be told which time it is")]
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}
