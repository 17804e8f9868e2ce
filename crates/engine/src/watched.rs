//! A value that many can wait on.
//!
//! Like `tokio::sync::watch`, except that waiters are woken in the order they came: that one picks
//! among its waiters by a random number of its own, which a simulation cannot replay.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A value and a bell that rings when it is set.
#[derive(Debug, Default)]
pub struct Watched<T> {
    value: Mutex<T>,
    bell: Notify,
}

impl<T: Clone> Watched<T> {
    /// Holds `value` at first.
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), bell: Notify::new() }
    }

    /// The value now.
    pub fn get(&self) -> T {
        self.lock().clone()
    }

    /// Puts in another value.
    pub fn set(&self, value: T) {
        self.change(|it| *it = value);
    }

    /// Changes the value in place.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let answer = change(&mut self.lock());
        self.bell.notify_waiters();
        answer
    }

    /// Completes with the value when `is_it` says so; at once if it does already.
    pub async fn wait_for(&self, mut is_it: impl FnMut(&T) -> bool) -> T {
        loop {
            let mut ring = pin!(self.bell.notified());
            // From here on no ring is missed, so the look at the value cannot come too early.
            ring.as_mut().enable();
            if let Some(value) = Some(self.get()).filter(&mut is_it) {
                return value;
            }
            ring.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn waits_until_the_value_fits() {
        let watched = Watched::new(1);
        assert!(watched.wait_for(|it| *it == 2).now_or_never().is_none());
        let waiting = watched.wait_for(|it| *it == 3);
        let (value, ()) = tokio::join!(waiting, async {
            watched.set(2);
            watched.change(|it| *it += 1);
        });
        assert_eq!((value, watched.get()), (3, 3));
    }
}
