//! The life of a worker: register, claim, reconcile, report, until it is told to stop.
//!
//! `claim` asks for work, `leases` keeps what was lent alive, `one` is the run of one entry, `results`
//! sends what came out of them together.

mod claim;
mod leases;
mod one;
mod results;

use std::sync::Arc;
use std::time::Duration;

use rand::TryRng as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::component::Component;
use crate::error::Error;
use crate::http::PATIENCE;
use crate::registration::Registration;
use crate::server::Server;
use claim::Item;
use leases::Leases;
use results::Results;

/// How long runs under way may go on after a stop; what is left is given back.
const GRACE: Duration = Duration::from_secs(10);

/// One component reconciler of one host.
pub struct Worker<C> {
    desk: Desk,
    component: Arc<C>,
    grace: Duration,
}

/// What all parts of a worker need to talk to the server.
#[derive(Clone)]
pub(crate) struct Desk {
    pub server: Server,
    pub registration: Arc<Registration>,
    pub host_id: Arc<str>,
    pub stop: CancellationToken,
}

impl<C: Component> Worker<C> {
    /// A reconciler that runs `component`.
    pub fn new(server: Server, registration: Registration, component: C) -> Self {
        let desk = Desk {
            server,
            registration: Arc::new(registration),
            host_id: host_id().into(),
            stop: CancellationToken::new(),
        };
        Self { desk, component: Arc::new(component), grace: GRACE }
    }

    /// The same; runs under way may go on for so long after a stop.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Registers and works until `until` completes. Then nothing new is begun, what runs may finish, and
    /// what is left goes back to the mothership at no cost to it.
    ///
    /// # Errors
    /// The registration is refused: another worker has the name's entries, a section has another writer
    /// already, or the caller may not do this. A server that does not answer is waited for.
    pub async fn run(self, until: impl Future<Output = ()>) -> Result<(), Error> {
        let stop = self.desk.stop.clone();
        let work = self.work();
        tokio::pin!(work, until);
        tokio::select! {
            ended = &mut work => return ended,
            () = &mut until => stop.cancel(),
        }
        work.await
    }

    async fn work(self) -> Result<(), Error> {
        self.desk.register().await?;
        let leases = Arc::new(Leases::default());
        // Dropped with this function, and with them everything that they run.
        let mut hands = JoinSet::new();
        let (results, outbox) = results::channel();
        hands.spawn(results::send_all(self.desk.clone(), outbox));
        hands.spawn(leases::renew(self.desk.clone(), leases.clone()));
        let mut runs = JoinSet::new();
        let ended = self.claim_until_stopped(&leases, &results, &mut runs).await;
        if tokio::time::timeout(self.grace, drain(&mut runs)).await.is_err() {
            runs.shutdown().await;
        }
        self.desk.release(leases.take_all()).await;
        ended
    }

    async fn claim_until_stopped(
        &self,
        leases: &Arc<Leases>,
        results: &Results,
        runs: &mut JoinSet<()>,
    ) -> Result<(), Error> {
        let concurrency = self.desk.registration.concurrency;
        while !self.desk.stop.is_cancelled() {
            while runs.try_join_next().is_some() {}
            if runs.len() >= concurrency {
                tokio::select! {
                    _ = runs.join_next() => {}
                    () = self.desk.stop.cancelled() => {}
                }
                continue;
            }
            for item in self.desk.claim(concurrency - runs.len()).await? {
                self.begin(item, leases, results, runs);
            }
        }
        Ok(())
    }

    fn begin(&self, item: Item, leases: &Arc<Leases>, results: &Results, runs: &mut JoinSet<()>) {
        let lease = leases.take(&item, self.desk.registration.lease);
        let (component, leases) = (self.component.clone(), leases.clone());
        let http = self.desk.server.http().clone();
        let results = results.clone();
        runs.spawn(async move {
            one::run(&*component, &http, &item, lease, &results).await;
            leases.end(&item);
        });
    }
}

impl Desk {
    /// Registers, or registers again after the server has forgotten.
    pub async fn register(&self) -> Result<(), Error> {
        let body = self.registration.to_json(&self.host_id);
        let address = concert_model::Address::new("/api/v1/workers");
        if self.server.post_until(&address, &body, PATIENCE, &self.stop).await?.is_some() {
            info!(worker = %self.registration.name, host = %self.host_id, "registered");
        }
        Ok(())
    }

    /// Gives back what nobody will finish. Without an answer the leases run out by themselves.
    async fn release(&self, items: Vec<(Arc<str>, u64)>) {
        if items.is_empty() {
            return;
        }
        let release = |(item, fence): (Arc<str>, u64)| serde_json::json!({ "item": &*item, "fence": fence, "op": "release" });
        let writes: Vec<_> = items.into_iter().map(release).collect();
        let address = crate::server::address(&self.registration.name, "writes");
        let body = serde_json::json!({ "writes": writes });
        if let Err(error) = self.server.post(&address, &body, Duration::from_secs(2)).await {
            warn!(error = %error.chain(), "what was begun could not be given back");
        }
    }
}

async fn drain(runs: &mut JoinSet<()>) {
    while runs.join_next().await.is_some() {}
}

/// Unlike any other host.
fn host_id() -> String {
    let number = rand::rngs::SysRng.try_next_u64().expect("the operating system gives random bytes");
    format!("{}-{number:016x}", std::process::id())
}
