//! Who calls the backend, and in which order the world hears of it.
//!
//! One writer: it takes whatever has queued up, commits it as one batch, publishes what was written and
//! then answers each caller.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use concert_model::{Body, Encoded, Revision};
use tokio::sync::{mpsc, oneshot};

use super::Shared;
use super::Threading;
use super::hub::Published;
use crate::backend::{Act, Backend, Done, Effect, Failure, Owner, Refusal, Txn};
use crate::contract::Result;
use crate::error::Error;

/// Transactions waiting for the writer. Callers beyond it wait their turn: enough to fill several batches.
const QUEUE_MAX: usize = 1024;
/// Transactions in one batch. A sync costs little beside a hundred writes; with larger batches all callers
/// would wait for the same one, and nobody prepare the next meanwhile.
const BATCH_MAX: usize = 128;

/// A transaction, and what to tell watchers if it is done.
pub(super) struct Job {
    pub(super) txn: Txn,
    /// One for each object write of the transaction, in order.
    pub(super) writes: Vec<ObjectWrite>,
}

/// One object write, as watchers will see it.
pub(super) struct ObjectWrite {
    pub(super) act: Act,
    pub(super) body: Arc<Body>,
    pub(super) previous: Option<Encoded>,
}

type Call = Box<dyn FnOnce(&dyn Backend) + Send>;

type Answer = Result<Result<Done, Refusal>>;

pub(super) enum Message {
    Commit(Job, oneshot::Sender<Answer>),
    /// Maintenance, which must not run beside a commit.
    Call(Call),
}

/// The way to the backend.
pub(super) enum Driver {
    Inline(Mutex<Committer>),
    Writer { queue: Option<mpsc::Sender<Message>>, thread: Option<JoinHandle<()>> },
}

impl Driver {
    pub(super) fn start(threading: Threading, backend: Arc<dyn Backend>, shared: Arc<Shared>) -> Self {
        let mut committer = Committer { backend, shared, is_uncertain: false };
        if threading == Threading::Inline {
            return Self::Inline(Mutex::new(committer));
        }
        let (queue, mut jobs) = mpsc::channel(QUEUE_MAX);
        let run = move || {
            // Whatever ends the writer ends the watches: nobody would feed them any more.
            let _closing = Closing(committer.shared.clone());
            while let Some(first) = jobs.blocking_recv() {
                committer.serve(first, &mut jobs);
            }
        };
        let thread = std::thread::Builder::new().name("store-writer".into()).spawn(run);
        let thread = thread.expect("a thread can be started when a store is opened");
        Self::Writer { queue: Some(queue), thread: Some(thread) }
    }

    pub(super) fn is_inline(&self) -> bool {
        matches!(self, Self::Inline(_))
    }

    /// Commits one transaction.
    pub(super) async fn commit(&self, job: Job) -> Answer {
        match self {
            Self::Inline(committer) => {
                let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
                let (txn, writes) = (job.txn, job.writes);
                committer.commit(vec![txn], vec![writes]).pop().unwrap_or_else(|| Err(stopped()))
            }
            Self::Writer { queue, .. } => {
                let (sender, answer) = oneshot::channel();
                let queue = queue.as_ref().ok_or_else(stopped)?;
                queue.send(Message::Commit(job, sender)).await.map_err(|_| stopped())?;
                answer.await.map_err(|_| stopped())?
            }
        }
    }

    /// Does `work` between two commits.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Backend) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        match self {
            Self::Inline(committer) => {
                let mut committer = committer.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = committer.settle();
                Ok(work(&*committer.backend)?)
            }
            Self::Writer { queue, .. } => {
                let (sender, answer) = oneshot::channel();
                let call = Box::new(move |backend: &dyn Backend| drop(sender.send(work(backend))));
                let queue = queue.as_ref().ok_or_else(stopped)?;
                queue.send(Message::Call(call)).await.map_err(|_| stopped())?;
                Ok(answer.await.map_err(|_| stopped())??)
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let Self::Writer { queue, thread } = self else { return };
        drop(queue.take());
        if let Some(thread) = thread.take() {
            // It ends once the queue is empty; its panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.hub.close();
    }
}

fn stopped() -> Error {
    Error::unavailable("the writer has stopped")
}

pub(super) struct Committer {
    backend: Arc<dyn Backend>,
    shared: Arc<Shared>,
    /// A commit failed and may have happened all the same.
    is_uncertain: bool,
}

impl Committer {
    /// Commits what has queued up.
    fn serve(&mut self, first: Message, jobs: &mut mpsc::Receiver<Message>) {
        let mut txns = Vec::new();
        let mut writes = Vec::new();
        let mut senders = Vec::new();
        let mut next = Some(first);
        let mut call = None;
        while let Some(message) = next {
            match message {
                Message::Commit(job, sender) => {
                    txns.push(job.txn);
                    writes.push(job.writes);
                    senders.push(sender);
                }
                Message::Call(work) => {
                    call = Some(work);
                    break;
                }
            }
            next = if txns.len() < BATCH_MAX { jobs.try_recv().ok() } else { None };
        }
        if !txns.is_empty() {
            for (sender, answer) in senders.into_iter().zip(self.commit(txns, writes)) {
                // A caller that went away does not need its answer.
                let _ = sender.send(answer);
            }
        }
        if let Some(call) = call {
            // Watchers hear of an uncertain commit now, if there was one. If not, the next commit tries.
            let _ = self.settle();
            call(&*self.backend);
        }
    }

    fn commit(&mut self, mut txns: Vec<Txn>, writes: Vec<Vec<ObjectWrite>>) -> Vec<Answer> {
        let result = self.renew(&mut txns).and_then(|()| self.settle());
        let result = result.and_then(|()| self.backend.commit(&txns));
        let verdicts = match result {
            Ok(verdicts) => verdicts,
            Err(failure) => {
                self.is_uncertain |= matches!(failure, Failure::Broken(_));
                return txns.iter().map(|_| Err(same(&failure))).collect();
            }
        };
        let mut published = Vec::with_capacity(writes.len());
        for (verdict, writes) in verdicts.iter().zip(writes) {
            if let Ok(Done { revision: Some(last), .. }) = verdict {
                let first = last.0 + 1 - writes.len() as u64;
                published.extend((first..).zip(writes).map(|(n, write)| write.publish(Revision(n))));
            }
        }
        self.shared.publish_own(&*self.backend, published);
        verdicts.into_iter().map(Ok).collect()
    }

    /// Seals again what was sealed before the newest key was there: once a rotation has seen the writer,
    /// nothing is stored under an older key any more.
    fn renew(&self, txns: &mut [Txn]) -> Result<(), Failure> {
        let newest = self.shared.seal.newest();
        for effect in txns.iter_mut().flat_map(|txn| &mut txn.effects) {
            let (owner, bytes) = match effect {
                Effect::Put(write) | Effect::Remove(write) => {
                    (Owner::Object(write.key.clone()), &mut write.payload)
                }
                Effect::Claim(item, body) | Effect::Work(item, Some(body)) => {
                    (Owner::Item(item.clone()), body)
                }
                Effect::Attempt(attempt) => (Owner::Item(attempt.item.clone()), &mut attempt.body),
                Effect::Work(_, None) | Effect::Reseal { .. } => continue,
            };
            if let Some(renewed) = self.shared.seal.reseal(newest, &owner, bytes)? {
                *bytes = renewed;
            }
        }
        Ok(())
    }

    /// After an uncertain commit: finds out from the log what happened, and tells watchers.
    fn settle(&mut self) -> Result<(), Failure> {
        if self.is_uncertain {
            self.shared.follow(&*self.backend)?;
            self.is_uncertain = false;
        }
        Ok(())
    }
}

impl ObjectWrite {
    fn publish(self, revision: Revision) -> Published {
        let object = Encoded::new(self.body, revision.into());
        Published { revision, act: self.act, object, previous: self.previous }
    }
}

impl Shared {
    /// Tells everybody what was written, in order: kinds first, so that who hears of a definition can
    /// use it.
    pub(super) fn publish(&self, published: Vec<Published>) {
        for change in &published {
            self.kinds.learn(change);
        }
        self.recent.learn(&published);
        self.hub.publish(published);
    }
}

/// One failure, told to each caller of its batch.
fn same(failure: &Failure) -> Error {
    match failure {
        Failure::Compacted => Error::Expired,
        Failure::Full => Error::Full,
        Failure::Broken(source) => {
            let mut text = source.to_string();
            let mut source = source.source();
            while let Some(error) = source {
                text = format!("{text}: {error}");
                source = error.source();
            }
            Error::unavailable(text)
        }
    }
}
