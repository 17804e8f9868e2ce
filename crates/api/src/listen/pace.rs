//! Slow, idle or at work: what one connection is doing.
//!
//! Noted by whoever reads, writes and answers; looked at now and then by the task of the connection, so
//! that a request costs no timer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use concert_store::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::limits::Limits;

/// Nothing of the kind has happened.
const NEVER: u64 = u64::MAX;

/// Shared by all parts of one connection. Times are milliseconds of [`Clock::elapsed`].
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    /// Whether bytes between requests are the beginning of the next one; on HTTP/2 they may be anything.
    is_sequential: bool,
    requests: AtomicUsize,
    watches: AtomicUsize,
    /// When the last request began or ended; when the connection began if there was none.
    turned: AtomicU64,
    has_asked: AtomicBool,
    /// When the first byte came while nothing was being answered.
    spoke: AtomicU64,
    /// Since when nothing could be sent.
    stalled: AtomicU64,
}

/// What to do about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Look again after this.
    Fine(Duration),
    /// Nobody asks for anything: part as friends.
    Idle,
    /// It takes too long: hang up.
    Slow(&'static str),
}

impl Pace {
    pub(super) fn new(clock: Arc<dyn Clock>, is_sequential: bool) -> Arc<Self> {
        let turned = AtomicU64::new(millis(clock.elapsed()));
        let never = || AtomicU64::new(NEVER);
        Arc::new(Self {
            clock,
            is_sequential,
            requests: AtomicUsize::new(0),
            watches: AtomicUsize::new(0),
            turned,
            has_asked: AtomicBool::new(false),
            spoke: never(),
            stalled: never(),
        })
    }

    /// A request begins; it ends when the turn is dropped.
    pub(super) fn begin(self: &Arc<Self>, is_watch: bool) -> Turn {
        self.counter(is_watch).fetch_add(1, Ordering::Relaxed);
        self.has_asked.store(true, Ordering::Relaxed);
        self.turn();
        Turn { pace: self.clone(), is_watch }
    }

    fn counter(&self, is_watch: bool) -> &AtomicUsize {
        if is_watch { &self.watches } else { &self.requests }
    }

    fn turn(&self) {
        self.turned.store(millis(self.clock.elapsed()), Ordering::Relaxed);
        self.spoke.store(NEVER, Ordering::Relaxed);
    }

    fn is_at_rest(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0 && self.watches.load(Ordering::Relaxed) == 0
    }

    pub(super) fn verdict(&self, limits: &Limits) -> Verdict {
        let now = millis(self.clock.elapsed());
        let load = |time: &AtomicU64| time.load(Ordering::Relaxed);
        let since = |time: u64| Duration::from_millis(now.saturating_sub(time));
        let mut soonest = limits.header_time;
        let mut is_over = |from: u64, bound: Duration| {
            let left = bound.saturating_sub(since(from));
            soonest = soonest.min(left);
            left.is_zero()
        };
        let (turned, spoke, stalled) = (load(&self.turned), load(&self.spoke), load(&self.stalled));
        if stalled != NEVER && is_over(stalled, limits.stall_time) {
            return Verdict::Slow("does not read what it asked for");
        }
        if self.is_at_rest() {
            if spoke != NEVER && self.is_sequential && is_over(spoke, limits.header_time) {
                return Verdict::Slow("did not finish its headers in time");
            }
            if !self.has_asked.load(Ordering::Relaxed) && is_over(turned, limits.header_time) {
                return Verdict::Slow("asked for nothing");
            }
            if is_over(turned, limits.idle_time) {
                return Verdict::Idle;
            }
        } else if self.requests.load(Ordering::Relaxed) > 0 && is_over(turned, limits.request_time) {
            return Verdict::Slow("did not take its answer in time");
        }
        // Never a busy loop, however the bounds are set.
        Verdict::Fine(soonest.max(Duration::from_millis(5)))
    }
}

fn millis(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(NEVER - 1)
}

/// A request under way.
pub(super) struct Turn {
    pace: Arc<Pace>,
    is_watch: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.pace.counter(self.is_watch).fetch_sub(1, Ordering::Relaxed);
        self.pace.turn();
    }
}

/// A stream that notes what passes.
pub(super) struct Paced<S> {
    pub(super) stream: S,
    pub(super) pace: Arc<Pace>,
}

impl<S> Paced<S> {
    fn note_write<T>(&self, written: Poll<T>) -> Poll<T> {
        let stalled = &self.pace.stalled;
        match written.is_pending() {
            true if stalled.load(Ordering::Relaxed) == NEVER => {
                stalled.store(millis(self.pace.clock.elapsed()), Ordering::Relaxed);
            }
            true => {}
            false => stalled.store(NEVER, Ordering::Relaxed),
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let result = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        let pace = &self.pace;
        if pace.spoke.load(Ordering::Relaxed) == NEVER && pace.is_at_rest() {
            pace.spoke.store(millis(pace.clock.elapsed()), Ordering::Relaxed);
        }
        Poll::Ready(result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_write(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.note_write(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.note_write(shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use concert_store::conformance::HandClock;

    use super::*;

    fn limits() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            header_time: seconds(10),
            idle_time: seconds(100),
            request_time: seconds(300),
            stall_time: seconds(60),
            ..Limits::default()
        }
    }

    fn is_slow(pace: &Pace) -> bool {
        matches!(pace.verdict(&limits()), Verdict::Slow(_))
    }

    #[test]
    fn a_connection_may_rest_but_not_dawdle() {
        let clock = Arc::new(HandClock::new());
        let pace = Pace::new(clock.clone(), true);
        let pass = |seconds| clock.advance(Duration::from_secs(seconds));
        drop(pace.begin(false));
        pass(95);
        assert_eq!(pace.verdict(&limits()), Verdict::Fine(Duration::from_secs(5)));
        pass(5);
        assert_eq!(pace.verdict(&limits()), Verdict::Idle);
        let turn = pace.begin(false);
        pass(299);
        assert_eq!(pace.verdict(&limits()), Verdict::Fine(Duration::from_secs(1)));
        pass(1);
        assert!(is_slow(&pace));
        drop(turn);
        assert!(!is_slow(&pace));
        pace.spoke.store(millis(clock.elapsed()), Ordering::Relaxed);
        pass(10);
        assert!(is_slow(&pace));
    }

    #[test]
    fn a_connection_is_for_asking() {
        let clock = Arc::new(HandClock::new());
        for is_sequential in [true, false] {
            let pace = Pace::new(clock.clone(), is_sequential);
            assert_eq!(pace.verdict(&limits()), Verdict::Fine(Duration::from_secs(10)));
            clock.advance(Duration::from_secs(10));
            assert!(is_slow(&pace));
        }
    }

    #[test]
    fn a_watch_may_last_while_it_is_read() {
        let clock = Arc::new(HandClock::new());
        let pace = Pace::new(clock.clone(), true);
        let _watch = pace.begin(true);
        clock.advance(Duration::from_secs(100_000));
        assert_eq!(pace.verdict(&limits()), Verdict::Fine(Duration::from_secs(10)));
        let paced = Paced { stream: (), pace: pace.clone() };
        assert!(paced.note_write(Poll::<()>::Pending).is_pending());
        clock.advance(Duration::from_secs(59));
        assert!(paced.note_write(Poll::<()>::Pending).is_pending());
        assert!(!is_slow(&pace));
        clock.advance(Duration::from_secs(1));
        assert!(is_slow(&pace));
        assert!(paced.note_write(Poll::Ready(())).is_ready());
        assert!(!is_slow(&pace));
    }
}
