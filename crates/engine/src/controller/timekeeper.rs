//! Moves items into their lanes when they are due. One timer for all of them.

use std::pin::pin;
use std::sync::Arc;

use crate::alarm::{Alarm, yield_now};
use crate::shutdown::Shutdown;

use super::shared::Shared;

pub(super) async fn run(shared: Arc<Shared>, shutdown: Shutdown) {
    let mut stop = pin!(shutdown.requested());
    let mut alarm = Alarm::new(shared.clock.clone());
    loop {
        let now = shared.now();
        let next = shared.with(|core| {
            core.rings.workers |= core.queue.promote(now);
            core.armed = core.queue.next_timer();
            core.armed
        });
        if next.is_some_and(|next| next <= now) {
            yield_now().await;
            continue;
        }
        alarm.set(next);
        tokio::select! {
            biased;
            () = &mut stop => return,
            () = shared.bells.timer.notified() => {}
            () = alarm.ring() => {}
        }
    }
}
