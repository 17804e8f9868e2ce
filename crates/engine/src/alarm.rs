//! One timer for many times.

use std::sync::Arc;
use std::time::Duration;

use concert_store::Clock;
use futures_util::future::BoxFuture;

/// A timer that is set anew only when it must ring sooner: it may ring early, never late.
pub(crate) struct Alarm {
    clock: Arc<dyn Clock>,
    sleep: Option<(Duration, BoxFuture<'static, ()>)>,
}

impl Alarm {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, sleep: None }
    }

    /// Rings at `at`, or never.
    pub fn set(&mut self, at: Option<Duration>) {
        let Some(at) = at else { return self.sleep = None };
        if self.sleep.as_ref().is_none_or(|(set, _)| at < *set) {
            let sleep = self.clock.sleep(at.saturating_sub(self.clock.elapsed()));
            self.sleep = Some((at, sleep));
        }
    }

    /// Completes when it rings. May be dropped and called again.
    pub async fn ring(&mut self) {
        match &mut self.sleep {
            Some((_, sleep)) => sleep.await,
            None => std::future::pending().await,
        }
        self.sleep = None;
    }
}

/// Lets others run.
pub(crate) async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
