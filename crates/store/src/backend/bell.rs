//! How a process hears that another one may have written.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_model::Revision;

/// Rung for every commit that is heard of. A hint and no more: rings get lost, and what was written is in the
/// log.
#[derive(Debug, Default)]
pub struct Bell {
    heard: Mutex<Heard>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct Heard {
    newest: Revision,
    /// Somebody should look, whatever the numbers say.
    is_urgent: bool,
}

impl Bell {
    /// There may be a write up to this revision.
    pub fn ring(&self, newest: Revision) {
        let mut heard = self.lock();
        heard.newest = heard.newest.max(newest);
        drop(heard);
        self.rung.notify_all();
    }

    /// Wakes whoever waits, whatever is known.
    pub fn alarm(&self) {
        self.lock().is_urgent = true;
        self.rung.notify_all();
    }

    /// Returns once something after `seen` is heard of, at an alarm, and at the latest after `at_most`.
    pub fn wait(&self, seen: Revision, at_most: Duration) {
        let is_quiet = |heard: &mut Heard| heard.newest <= seen && !heard.is_urgent;
        let waited = self.rung.wait_timeout_while(self.lock(), at_most, is_quiet);
        let (mut heard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        heard.is_urgent = false;
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test run may take: it is never waited out.
    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn what_was_heard_before_is_not_waited_for() {
        let bell = Bell::default();
        bell.ring(Revision(7));
        bell.ring(Revision(5));
        bell.wait(Revision(6), LONG);
    }

    #[test]
    fn a_ring_for_what_is_known_wakes_nobody_and_an_alarm_does() {
        let bell = Bell::default();
        bell.ring(Revision(7));
        bell.wait(Revision(7), Duration::from_millis(1));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| bell.wait(Revision(7), LONG));
            bell.alarm();
            waiting.join().unwrap();
        });
    }
}
