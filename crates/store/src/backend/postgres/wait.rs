//! Waiting on a plain thread for what happens on the runtime of the connections.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

use tokio::runtime::Handle;
use tokio::task;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for `future` on this thread, whatever else the thread belongs to; its timers are those of `runtime`.
/// (Tokio's own way panics on a thread that runs tasks, which is where a store may be opened.)
pub(super) fn wait<F: Future>(runtime: &Handle, future: F) -> F::Output {
    let _timers = runtime.enter();
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    // A task that has used up its share of a thread would otherwise never be let on.
    let mut future = pin!(task::unconstrained(future));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        thread::park();
    }
}
