//! A worker: takes keys, runs the reconciler on many of them at once, settles how it went.
//!
//! One task drives many runs, so a run costs neither a task nor a timer, and the lock is taken once
//! for what ended and what comes next together.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture, CatchUnwind};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tracing::{Span, debug, error, error_span, warn};

use crate::alarm::{Alarm, yield_now};
use crate::breaker::Answer;
use crate::members::{Leave, Shares, Stay};
use crate::outcome::{Failure, Outcome};
use crate::queue::{ItemId, Lane};
use crate::reconciler::{Labels, Request};
use crate::shutdown::Shutdown;
use crate::tasks::panic_text;

use super::core::Run;
use super::shared::Shared;

/// Keys that a worker takes at once: enough to make the lock cheap, few enough that other workers
/// get some.
const BATCH: usize = 32;

/// Works until asked to stop, then until what it runs has ended. `slots` is how much it runs at once.
pub(super) async fn run(presence: Presence, slots: usize, shutdown: Shutdown) {
    let shared = &presence.0;
    let mut stop = pin!(shutdown.requested());
    let mut is_stopping = false;
    let mut worker = Worker::new(shared);
    loop {
        // Not only where it waits: a worker with enough to do never gets there.
        is_stopping |= shutdown.is_requested();
        worker.abort_late();
        let free = if is_stopping { 0 } else { slots - worker.flights.len() };
        worker.turn(free.min(BATCH));
        worker.land_ready();
        if !worker.landed.is_empty() || worker.has_started {
            yield_now().await;
            continue;
        }
        if is_stopping && worker.flights.is_empty() {
            return;
        }
        tokio::select! {
            biased;
            () = &mut stop, if !is_stopping => is_stopping = true,
            Some(landing) = worker.flights.next() => worker.land_flight(landing),
            () = worker.alarm.ring() => worker.set_alarm(),
            () = shared.bells.workers.notified(), if free > 0 => {}
        }
    }
}

/// Counts a worker from before its first poll to its end, whatever that is.
pub(super) struct Presence(Arc<Shared>);

impl Presence {
    pub fn new(shared: Arc<Shared>) -> Self {
        shared.workers.change(|count| *count += 1);
        Self(shared)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.workers.change(|count| *count -= 1);
    }
}

struct Worker<'a> {
    shared: &'a Arc<Shared>,
    flights: FuturesUnordered<Flight<'a>>,
    /// Of all flights, by deadline.
    tickets: BTreeMap<(Duration, ItemId), (Ticket, AbortHandle)>,
    /// What ended and is not settled yet.
    landed: Vec<Landed>,
    taken: Vec<Run>,
    has_started: bool,
    alarm: Alarm,
}

/// What came of an item that was taken.
enum Landed {
    /// With the version of the object that the run began with.
    Ran(ItemId, u64, Outcome),
    Deferred(ItemId, Duration),
    /// Another member has it.
    NotOurs(ItemId),
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Arc<Shared>) -> Self {
        Self {
            shared,
            flights: FuturesUnordered::new(),
            tickets: BTreeMap::new(),
            landed: Vec::new(),
            taken: Vec::new(),
            has_started: false,
            alarm: Alarm::new(shared.clock.clone()),
        }
    }

    /// Settles what ended and starts up to `free` more, under one lock.
    fn turn(&mut self, free: usize) {
        let now = self.shared.now();
        let (landed, taken) = (&mut self.landed, &mut self.taken);
        let demand = self.shared.demand.as_ref();
        self.shared.with(|core| {
            for it in landed.drain(..) {
                match it {
                    Landed::Ran(id, version, outcome) => core.settle(id, version, outcome, now),
                    Landed::Deferred(id, due) => core.defer(id, due, now),
                    Landed::NotOurs(id) => core.drop_run(id, now),
                }
            }
            core.take(free, demand, now, taken);
        });
        let mut taken = std::mem::take(&mut self.taken);
        self.has_started = !taken.is_empty();
        for run in taken.drain(..) {
            self.start(run);
        }
        self.taken = taken;
    }

    fn start(&mut self, run: Run) {
        let (shared, now) = (self.shared, self.shared.now());
        let id = run.item.id;
        let span = error_span!("reconcile", controller = %shared.name, key = %run.item.key, run = run.number);
        let (fence, stay, is_onlooker) = match shared.authority.leave_for(&run.item.key) {
            Leave::Run(fence, stay) => (fence.or_else(|| shared.claim.get().cloned()), stay, false),
            Leave::LookOn => (None, None, true),
            Leave::Not => return self.landed.push(Landed::NotOurs(id)),
        };
        let mut ticket = Ticket { id, version: run.version, started: now, target: None, span, _stay: stay };
        // A panic of user code must not end the worker.
        let labels = match catch_unwind(AssertUnwindSafe(|| shared.reconciler.labels(&run.item.key))) {
            Ok(labels) => labels,
            Err(panic) => return self.land(&ticket, End::Panicked(panic)),
        };
        if let Err(due) = admit(shared, &labels, run.item.lane, now) {
            shared.counters.deferrals.inc();
            return self.landed.push(Landed::Deferred(id, due));
        }
        shared.counters.started(now.saturating_sub(run.item.due));
        let deadline = now.saturating_add(shared.timeout);
        ticket.target = labels.target;
        let request = Request {
            key: run.item.key,
            attempt: run.attempt,
            reasons: run.item.reasons,
            lane: run.item.lane,
            fence,
            is_onlooker,
            deadline,
            permit: run.permit.map(Arc::new),
        };
        match catch_unwind(AssertUnwindSafe(|| shared.reconciler.reconcile(request))) {
            Ok(future) => self.fly(ticket, deadline, future),
            Err(panic) => self.land(&ticket, End::Panicked(panic)),
        }
    }

    /// The first poll comes at once: a run that has nothing to wait for ends in it. One that has is
    /// polled again with all others, so that the waker of this poll does not matter.
    fn fly(&mut self, ticket: Ticket, deadline: Duration, future: BoxFuture<'a, Outcome>) {
        let mut guarded = AssertUnwindSafe(future).catch_unwind();
        let mut context = Context::from_waker(Waker::noop());
        let polled = ticket.span.in_scope(|| guarded.poll_unpin(&mut context));
        if let Poll::Ready(result) = polled {
            let end = drop_run(guarded).and(result).map_or_else(End::Panicked, End::Ran);
            return self.land(&ticket, end);
        }
        let (abort, registration) = AbortHandle::new_pair();
        let key = (deadline, ticket.id);
        let future = Abortable::new(guarded, registration);
        self.flights.push(Flight { key, span: ticket.span.clone(), future: Some(future) });
        self.tickets.insert(key, (ticket, abort));
        self.alarm.set(Some(deadline));
    }

    /// Takes in what has ended, without waiting.
    fn land_ready(&mut self) {
        while let Some(Some(landing)) = self.flights.next().now_or_never() {
            self.land_flight(landing);
        }
    }

    fn land_flight(&mut self, (key, end): Landing) {
        if let Some((ticket, _)) = self.tickets.remove(&key) {
            self.land(&ticket, end);
        }
        if self.tickets.is_empty() {
            self.alarm.set(None);
        }
    }

    fn land(&mut self, ticket: &Ticket, end: End) {
        let shared = self.shared;
        let now = shared.now();
        let outcome = match end {
            End::Ran(Outcome::WaitFor(waits) | Outcome::WaitAtMost(waits, _)) if waits.is_empty() => {
                Outcome::Transient(Failure::new("the reconciler waits for nothing").elsewhere())
            }
            End::Ran(outcome) => outcome,
            End::Panicked(panic) => {
                shared.counters.panics.inc();
                let text = panic_text(&*panic);
                ticket.span.in_scope(|| error!(panic = %text, "reconciler panicked"));
                Outcome::Transient(Failure::new(format!("panic: {text}")).elsewhere())
            }
            End::Late => {
                shared.counters.timeouts.inc();
                Outcome::Transient(Failure::new("the deadline has passed"))
            }
        };
        shared.counters.ended(&outcome, now.saturating_sub(ticket.started));
        if let Some(target) = &ticket.target {
            shared.breakers.record(target, answer(&outcome), now);
        }
        ticket.span.in_scope(|| log(&outcome));
        self.landed.push(Landed::Ran(ticket.id, ticket.version, outcome));
    }

    fn abort_late(&mut self) {
        let now = self.shared.now();
        if self.tickets.keys().next().is_none_or(|(deadline, _)| *deadline > now) {
            return;
        }
        for (_, (_, abort)) in self.tickets.iter().take_while(|((deadline, _), _)| *deadline <= now) {
            abort.abort();
        }
    }

    fn set_alarm(&mut self) {
        let now = self.shared.now();
        let next = self.tickets.keys().map(|(deadline, _)| *deadline).find(|deadline| *deadline > now);
        self.alarm.set(next);
    }
}

impl Drop for Worker<'_> {
    /// A probe that is dropped with its worker would keep a shared breaker half open.
    fn drop(&mut self) {
        let now = self.shared.now();
        for target in self.tickets.values().filter_map(|(ticket, _)| ticket.target.as_ref()) {
            self.shared.breakers.record(target, Answer::NotAsked, now);
        }
    }
}

/// Asks the breaker and the budgets.
fn admit(shared: &Shared, labels: &Labels, lane: Lane, now: Duration) -> Result<(), Duration> {
    if labels.is_empty() {
        return Ok(());
    }
    let target = labels.target.as_ref();
    target.map_or(Ok(()), |it| shared.breakers.admit(it, now))?;
    let crowd = shared.authority.shares().map_or(1, Shares::crowd);
    shared.budgets.take_part(&labels.budgets, lane, now, crowd).inspect_err(|_| {
        if let Some(target) = target {
            shared.breakers.record(target, Answer::NotAsked, now);
        }
    })
}

fn answer(outcome: &Outcome) -> Answer {
    match outcome {
        Outcome::Done
        | Outcome::Poll(_)
        | Outcome::After(_)
        | Outcome::AfterIn(..)
        | Outcome::Requeue(..) => Answer::Well,
        Outcome::Transient(failure) if failure.is_of_target => Answer::Badly,
        // A terminal failure is the object's own fault, and who waits or gives back has not asked.
        Outcome::Transient(_) | Outcome::Terminal(_) => Answer::NotAsked,
        Outcome::WaitFor(_) | Outcome::WaitAtMost(..) | Outcome::Returned => Answer::NotAsked,
    }
}

fn log(outcome: &Outcome) {
    match outcome {
        Outcome::Transient(failure) => warn!(error = %failure, "reconcile failed"),
        Outcome::Terminal(failure) => warn!(error = %failure, "reconcile failed for good"),
        Outcome::Done
        | Outcome::Poll(_)
        | Outcome::After(_)
        | Outcome::AfterIn(..)
        | Outcome::Returned
        | Outcome::Requeue(..)
        | Outcome::WaitFor(_)
        | Outcome::WaitAtMost(..) => debug!(?outcome, "reconciled"),
    }
}

/// What must be known of a run at its end.
struct Ticket {
    id: ItemId,
    version: u64,
    started: Duration,
    target: Option<Arc<str>>,
    span: Span,
    /// As long as the run is under way its share stays here.
    _stay: Option<Stay>,
}

/// How a run ended.
enum End {
    Ran(Outcome),
    Panicked(Box<dyn Any + Send>),
    Late,
}

type Landing = ((Duration, ItemId), End);

/// A run that waits for something.
struct Flight<'a> {
    key: (Duration, ItemId),
    span: Span,
    /// None once it has ended.
    future: Option<Abortable<CatchUnwind<AssertUnwindSafe<BoxFuture<'a, Outcome>>>>>,
}

impl Future for Flight<'_> {
    type Output = Landing;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Landing> {
        let this = &mut *self;
        let Some(future) = &mut this.future else { return Poll::Pending };
        let polled = this.span.in_scope(|| future.poll_unpin(context));
        polled.map(|result| {
            let end = match (drop_run(this.future.take()), result) {
                (Err(panic), _) | (Ok(()), Ok(Err(panic))) => End::Panicked(panic),
                (Ok(()), Ok(Ok(outcome))) => End::Ran(outcome),
                (Ok(()), Err(_)) => End::Late,
            };
            (this.key, end)
        })
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if let Err(panic) = drop_run(self.future.take()) {
            let text = panic_text(&*panic);
            self.span.in_scope(|| error!(panic = %text, "reconciler panicked when it was dropped"));
        }
    }
}

/// Drops a run, which is user code: what it holds may panic.
fn drop_run<T>(run: T) -> Result<(), Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(|| drop(run)))
}
