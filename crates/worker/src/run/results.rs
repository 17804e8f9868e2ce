//! Results go out together: whatever has come up while the last request was under way is the next one.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Desk;
use crate::error::Error;
use crate::http::PATIENCE;
use crate::server::{Pause, address};

/// Most results of one request, and most that wait for the next one. Each belongs to a run that waits for
/// it, so there are never more than a worker runs at once.
const BATCH_MAX: usize = 1000;
/// Most bytes of one request, unless one result alone has more: a third of what the server takes.
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Most of a refusal that is told on: it says what was wrong with something of any size.
const DETAIL_MAX: usize = 1000;

/// Where runs put their results.
#[derive(Clone)]
pub(crate) struct Results(mpsc::Sender<Ready>);

/// One result, and who waits for it to arrive.
pub(crate) struct Ready {
    body: Value,
    bytes: usize,
    /// It says no more than that what was meant was refused.
    is_last: bool,
    arrived: oneshot::Sender<()>,
}

impl Ready {
    fn new(body: Value, arrived: oneshot::Sender<()>) -> Self {
        let bytes = body.to_string().len();
        Self { body, bytes, is_last: false, arrived }
    }

    /// What is said instead, under the same fence.
    fn refused(self, detail: &Value) -> Self {
        let detail = detail.as_str().map_or_else(|| detail.to_string(), str::to_owned);
        let detail: String = detail.chars().take(DETAIL_MAX).collect();
        let body = json!({
            "item": self.body["item"],
            "fence": self.body["fence"],
            "outcome": "failed",
            "message": format!("the result was refused: {detail}"),
        });
        Self { is_last: true, ..Self::new(body, self.arrived) }
    }
}

/// Both ends.
pub(crate) fn channel() -> (Results, mpsc::Receiver<Ready>) {
    let (sender, receiver) = mpsc::channel(BATCH_MAX);
    (Results(sender), receiver)
}

impl Results {
    /// Completes when the server has taken the result, or has refused it and then taken that it did, which the
    /// item would otherwise not show until its lease runs out. Dropped before, it is not sent again.
    pub async fn send(&self, body: Value) {
        let (arrived, arrival) = oneshot::channel();
        if self.0.send(Ready::new(body, arrived)).await.is_ok() {
            let _ = arrival.await;
        }
    }
}

/// Sends what comes, for as long as anybody waits for it.
pub(crate) async fn send_all(desk: Desk, mut outbox: mpsc::Receiver<Ready>) {
    while let Some(first) = outbox.recv().await {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX
            && let Ok(more) = outbox.try_recv()
        {
            batch.push(more);
        }
        send(&desk, parts(batch)).await;
    }
}

/// In the same order, each small enough for one request.
fn parts(batch: Vec<Ready>) -> VecDeque<Vec<Ready>> {
    let (mut parts, mut bytes) = (VecDeque::<Vec<Ready>>::new(), 0);
    for ready in batch {
        bytes += ready.bytes;
        match parts.back_mut() {
            Some(part) if bytes <= BATCH_BYTES_MAX => part.push(ready),
            _ => {
                bytes = ready.bytes;
                parts.push_back(vec![ready]);
            }
        }
    }
    parts
}

/// A success must not be lost because the server was away for a moment: it is sent until it arrives or
/// its lease is over.
async fn send(desk: &Desk, mut parts: VecDeque<Vec<Ready>>) {
    let address = address(&desk.registration.name, "results");
    let mut pause = Pause::default();
    // A stop lets what was begun finish, so it does not shorten the pauses.
    let never = CancellationToken::new();
    while let Some(mut batch) = parts.pop_front() {
        batch.retain(|it| !it.arrived.is_closed());
        if batch.is_empty() {
            continue;
        }
        let bodies: Vec<&Value> = batch.iter().map(|it| &it.body).collect();
        match desk.server.post(&address, &json!({ "results": bodies }), PATIENCE).await {
            Ok(answer) => {
                let again = settle(batch, &answer);
                if !again.is_empty() {
                    parts.push_front(again);
                    pause.wait(&never).await;
                }
            }
            // Whoever is in the way takes less than the server does.
            Err(error) if error.status() == Some(413) && batch.len() > 1 => {
                let rest = batch.split_off(batch.len() / 2);
                parts.push_front(rest);
                parts.push_front(batch);
            }
            Err(error) if error.is_passing() => {
                parts.push_front(batch);
                pause.wait(&never).await;
            }
            Err(error) => refused(batch, &error),
        }
    }
}

/// Tells who waits; returns what is to be sent in a moment: those that may be taken then, and what is said
/// instead of those that never will be.
fn settle(batch: Vec<Ready>, answer: &Value) -> Vec<Ready> {
    let mut again = Vec::new();
    for (index, ready) in batch.into_iter().enumerate() {
        let own = &answer["results"][index];
        let status = own["status"].as_u64().unwrap_or(200);
        if status == 429 || status >= 500 {
            again.push(ready);
            continue;
        }
        if status >= 400 {
            let (item, detail) = (ready.body["item"].as_str(), own["detail"].as_str());
            warn!(item, status, detail, "a result was refused");
            // Of one that came too late there is nothing more to say.
            if status != 409 && !ready.is_last {
                again.push(ready.refused(&own["detail"]));
                continue;
            }
        }
        let _ = ready.arrived.send(());
    }
    again
}

fn refused(batch: Vec<Ready>, error: &Error) {
    warn!(results = batch.len(), error = %error.chain(), "results were refused");
    for ready in batch {
        let _ = ready.arrived.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_refused_becomes_a_failure_that_says_so_once() {
        let (arrived, mut arrival) = oneshot::channel();
        let body =
            json!({"item": "a/test", "fence": 7, "outcome": "not_ready", "waits_for": [{"section": "b"}]});
        let answer = |status: u64| json!({"results": [{"status": status, "detail": "no grant to read b"}]});
        let mut again = settle(vec![Ready::new(body, arrived)], &answer(403));
        assert_eq!(again.len(), 1);
        let instead = json!({"item": "a/test", "fence": 7, "outcome": "failed",
            "message": "the result was refused: no grant to read b"});
        assert_eq!(again[0].body, instead);
        assert!(arrival.try_recv().is_err(), "nothing has arrived yet");
        again = settle(again, &answer(503));
        assert_eq!(again.len(), 1, "it is sent again like any other");
        assert!(settle(again, &answer(422)).is_empty(), "it is not refused for ever");
        assert!(arrival.try_recv().is_ok());
    }

    #[test]
    fn a_result_that_is_too_late_is_not_replaced() {
        let (arrived, mut arrival) = oneshot::channel();
        let answer = json!({"results": [{"status": 409, "detail": "stale fence"}]});
        let ready = Ready::new(json!({"item": "a/test", "fence": 7, "outcome": "ready"}), arrived);
        assert!(settle(vec![ready], &answer).is_empty());
        assert!(arrival.try_recv().is_ok());
    }
}
