//! Observes of many reconciles in few calls.
//!
//! An observe goes out at once while few calls are under way, with all others that came in the same
//! moment; those that come while many are wait for a place and then go together. Nothing waits for company,
//! and a slow object holds up no other: the answers of a batch come one by one, and a batch that is slow to
//! begin answering gives its place away.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::deadline::Deadline;
use super::status::{self, Verb};
use super::v1::Wire;
use crate::codec;
use crate::contract::Result;
use crate::error::Error;
use crate::wire::v1;

/// Most batches that have not begun to answer.
const WINDOW: usize = 16;

/// Most items of a batch; the protocol's bound.
const ITEMS_MAX: usize = 64;

/// After this, a batch that has not begun to answer no longer holds up the next.
const PATIENCE: Duration = Duration::from_millis(50);

/// One object to be looked at.
pub(crate) struct Item {
    pub(crate) object: Bytes,
    pub(crate) account: Option<v1::AccountReference>,
    pub(crate) deadline: Deadline,
    answer: oneshot::Sender<Result<v1::ObserveResponse>>,
}

/// Collects observes into batches. The tasks end with it.
pub(crate) struct Batcher(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Item>,
    open: usize,
    /// Whether there is a task that will take what is waiting as soon as it runs.
    is_leaving: bool,
    tasks: JoinSet<()>,
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.0.lock().expect("nobody panics with the batches in hand").tasks.abort_all();
    }
}

impl Batcher {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Looks at one object, perhaps together with others.
    pub(crate) async fn observe(
        &self,
        wire: &Wire,
        object: Bytes,
        account: Option<v1::AccountReference>,
        deadline: Deadline,
    ) -> Result<v1::ObserveResponse> {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.0.lock().expect("nobody panics with the batches in hand");
            state.waiting.push_back(Item { object, account, deadline, answer });
            launch(&self.0, &mut state, wire);
        }
        let lost = || codec::misbehaved("the provider left an object out of its answer");
        deadline.within(Verb::Read, async { answered.await.unwrap_or_else(|_| Err(lost())) }).await
    }
}

/// Sends what is waiting if there is a place for it. What it is to take is decided when it runs: whoever
/// asks in the same moment goes along.
fn launch(shared: &Arc<Mutex<State>>, state: &mut State, wire: &Wire) {
    while state.tasks.try_join_next().is_some() {}
    // A place may be given back because the runtime ends; there is nobody left to send for.
    if tokio::runtime::Handle::try_current().is_err() {
        return;
    }
    if state.is_leaving || state.waiting.is_empty() || state.open >= WINDOW {
        return;
    }
    (state.is_leaving, state.open) = (true, state.open + 1);
    let place = Place { shared: Arc::clone(shared), wire: wire.clone(), has_boarded: false };
    state.tasks.spawn(send(wire.clone(), place));
}

/// As much as fits into a message. Whoever gave up waiting is left out.
fn take(waiting: &mut VecDeque<Item>, bytes_max: usize) -> Vec<Item> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some(next) = waiting.front() {
        bytes += next.object.len() + 256;
        if !batch.is_empty() && (bytes > bytes_max / 2 || batch.len() == ITEMS_MAX) {
            break;
        }
        batch.extend(waiting.pop_front().filter(|item| !item.answer.is_closed()));
    }
    batch
}

/// A place in the window, given back when dropped.
struct Place {
    shared: Arc<Mutex<State>>,
    wire: Wire,
    has_boarded: bool,
}

impl Place {
    /// Takes what is waiting, and has another take the rest.
    fn board(&mut self) -> Vec<Item> {
        let mut state = self.shared.lock().expect("nobody panics with the batches in hand");
        (state.is_leaving, self.has_boarded) = (false, true);
        let batch = take(&mut state.waiting, self.wire.message_bytes_max);
        launch(&self.shared, &mut state, &self.wire);
        batch
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.shared.lock().expect("nobody panics with the batches in hand");
        state.open -= 1;
        // One that never ran leaves what is waiting to another.
        state.is_leaving &= self.has_boarded;
        launch(&self.shared, &mut state, &self.wire);
    }
}

async fn send(wire: Wire, mut place: Place) {
    let batch = place.board();
    let deadline = batch.iter().map(|item| item.deadline).reduce(Deadline::or_later);
    let Some(deadline) = deadline else { return };
    let mut waiting = HashMap::new();
    let mut items = Vec::new();
    for (id, item) in (1..).zip(batch) {
        items.push(v1::ObserveItem { id, object: item.object, account: item.account });
        waiting.insert(id, item.answer);
    }
    let request = deadline.request(v1::ObserveRequest { items });
    let mut answers = std::pin::pin!(async {
        let mut client = wire.client();
        let mut stream = client.observe(request).await?.into_inner();
        let first = stream.message().await?;
        Ok::<_, tonic::Status>((stream, first))
    });
    let begun = match tokio::time::timeout(PATIENCE, &mut answers).await {
        Ok(begun) => {
            drop(place);
            begun
        }
        Err(_) => {
            drop(place);
            answers.await
        }
    };
    let mut failure = None;
    match begun {
        Err(status) => failure = Some(status::error(&status, Verb::Read)),
        Ok((mut stream, mut next)) => {
            while let Some(answer) = next {
                if let Some(waiter) = waiting.remove(&answer.id) {
                    drop(waiter.send(Ok(answer)));
                }
                if waiting.is_empty() {
                    break;
                }
                next = match stream.message().await {
                    Ok(next) => next,
                    Err(status) => {
                        failure = Some(status::error(&status, Verb::Read));
                        None
                    }
                };
            }
        }
    }
    fail(waiting.into_values(), failure);
}

fn fail(waiting: impl Iterator<Item = oneshot::Sender<Result<v1::ObserveResponse>>>, failure: Option<Error>) {
    let error = failure.unwrap_or_else(|| codec::misbehaved("the provider left an object out of its answer"));
    for waiter in waiting {
        drop(waiter.send(Err(error.clone())));
    }
}
