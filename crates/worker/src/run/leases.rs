//! What this host has been lent, and keeping it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::Desk;
use super::claim::Item;
use crate::moment::now;
use crate::server::address;

/// Until when a lease holds, or why it does not any more.
#[derive(Clone, Debug, PartialEq)]
enum State {
    Until(Instant),
    Lost(String),
}

/// One lease, as its run sees it.
pub(crate) struct Lease(watch::Receiver<State>);

impl Lease {
    /// Completes when the lease does not hold any more, and says why. Renewals put it off.
    pub async fn lost(&mut self) -> String {
        loop {
            let state = self.0.borrow_and_update().clone();
            let end = match state {
                State::Lost(reason) => return reason,
                State::Until(end) => end,
            };
            match tokio::time::timeout_at(end, self.0.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return "the lease was ended".to_owned(),
                Err(_) => return "the lease ran out while the server could not be reached".to_owned(),
            }
        }
    }
}

struct Held {
    fence: u64,
    state: watch::Sender<State>,
}

/// All leases of a worker, by item.
#[derive(Default)]
pub(crate) struct Leases(Mutex<BTreeMap<Arc<str>, Held>>);

impl Leases {
    fn held(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of an item that was lent. An older lease of the same item is over.
    ///
    /// How long the answer was on its way is not known: a third of the lease is left for that, and the first
    /// heartbeat, which is measured from when it was sent, makes it exact.
    pub fn take(&self, item: &Item, lease: Duration) -> Lease {
        let (state, receiver) = watch::channel(State::Until(item.arrived + lease * 2 / 3));
        self.held().insert(item.name.clone(), Held { fence: item.fence, state });
        Lease(receiver)
    }

    /// Forgets a lease whose result was taken, unless the item was lent again since.
    pub fn end(&self, item: &Item) {
        let mut held = self.held();
        if held.get(&item.name).is_some_and(|it| it.fence == item.fence) {
            held.remove(&item.name);
        }
    }

    /// Forgets all, and says which they were.
    pub fn take_all(&self) -> Vec<(Arc<str>, u64)> {
        std::mem::take(&mut *self.held()).into_iter().map(|(name, it)| (name, it.fence)).collect()
    }

    fn all(&self) -> Vec<(Arc<str>, u64)> {
        self.held().iter().map(|(name, it)| (name.clone(), it.fence)).collect()
    }

    fn set(&self, name: &str, fence: u64, state: State) {
        if let Some(held) = self.held().get(name).filter(|it| it.fence == fence) {
            held.state.send_replace(state);
        }
    }

    /// What a heartbeat that was sent with `beaten` has come to.
    fn learn(&self, beaten: &[(Arc<str>, u64)], answer: &Value, until: Instant) {
        let lost = answer["lost"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (name, fence) in beaten {
            let loss = lost.iter().find(|it| it["item"] == **name);
            let state = match loss {
                Some(it) => State::Lost(it["reason"].as_str().unwrap_or("the lease has ended").to_owned()),
                None => State::Until(until),
            };
            self.set(name, *fence, state);
        }
    }
}

/// Says again and again that this host lives. Two beats may be lost before a lease is.
pub(crate) async fn renew(desk: Desk, leases: Arc<Leases>) {
    let lease = desk.registration.lease;
    let address = address(&desk.registration.name, "heartbeat");
    let pause = lease / 3;
    loop {
        // A stop does not end this: what runs may still finish.
        let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
        let beaten = leases.all();
        let sent = now();
        let items: Vec<_> =
            beaten.iter().map(|(item, fence)| json!({ "item": &**item, "fence": fence })).collect();
        let body = json!({ "host_id": &*desk.host_id, "items": items });
        match desk.server.post(&address, &body, pause).await {
            Ok(answer) => leases.learn(&beaten, &answer, sent + lease),
            // The claim registers again.
            Err(error) if error.status() == Some(404) => debug!("the server does not know this worker"),
            Err(error) => warn!(error = %error.chain(), "leases could not be renewed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::component::Entry;
    use crate::run::claim::Access;

    const LEASE: Duration = Duration::from_secs(60);

    fn item(name: &str, fence: u64) -> Item {
        let inventory = Access { url: String::new(), revision: 0, token: String::new() };
        Item { name: name.into(), fence, entry: Entry::default(), inventory, arrived: now() }
    }

    #[tokio::test]
    async fn a_lease_ends_unless_it_is_renewed() {
        let leases = Leases::default();
        let mut lease = leases.take(&item("a/x", 1), Duration::ZERO);
        assert!(lease.lost().await.contains("ran out"));
        leases.learn(&leases.all(), &json!({"items": [], "lost": []}), now() + LEASE);
        assert_eq!(lease.lost().now_or_never(), None);
    }

    #[tokio::test]
    async fn a_lease_that_the_server_ended_is_lost_at_once() {
        let leases = Leases::default();
        let mut lease = leases.take(&item("a/x", 1), LEASE);
        leases.learn(
            &leases.all(),
            &json!({"lost": [{"item": "a/x", "fence": 1, "reason": "stopped"}]}),
            now(),
        );
        assert_eq!(lease.lost().await, "stopped");
    }

    #[tokio::test]
    async fn what_is_said_of_an_older_lease_does_not_touch_the_newer() {
        let leases = Leases::default();
        let old = item("a/x", 1);
        drop(leases.take(&old, LEASE));
        let beaten = leases.all();
        let _lease = leases.take(&item("a/x", 2), LEASE);
        leases.learn(&beaten, &json!({"lost": [{"item": "a/x", "reason": "gone"}]}), now());
        leases.end(&old);
        assert_eq!(leases.take_all(), [("a/x".into(), 2)]);
    }
}
