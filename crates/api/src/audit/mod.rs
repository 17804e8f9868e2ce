//! Who did what, when, and what came of it: one line for each request.
//!
//! Writing down never holds up a request: records go through a queue, and what finds it full is counted
//! and said so in the next line. Bodies, headers and queries are never written, so no secret can be.
//!
//! What strangers try and read goes a way of its own, with a queue and a file of its own: anybody may send
//! as much of that as they like, and none of it displaces what those who are known did.

mod record;
mod sink;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use concert_engine::{OnExit, Tasks};
use tokio::sync::mpsc;

pub use record::{Record, Target};
pub use sink::Sink;

/// Records on their way to a sink: about a second of requests at full speed, 2 MB.
const QUEUE_MAX: usize = 8_192;
/// Records written at once.
const BATCH_MAX: usize = 256;

/// Takes records. Cheap to clone.
#[derive(Clone)]
pub struct Audit {
    known: Trail,
    strangers: Trail,
}

impl Audit {
    /// Keeps nothing.
    pub fn off() -> Self {
        Self { known: Trail::default(), strangers: Trail::default() }
    }

    /// Writes to `sink`, and what strangers try beside it, until `tasks` are asked to stop and everything is
    /// written.
    pub fn start(sink: Sink, tasks: &Tasks) -> Self {
        let strangers = Trail::start("audit of strangers", sink.of_strangers(), tasks);
        Self { known: Trail::start("audit", sink, tasks), strangers }
    }

    /// Takes note of one request. Never waits.
    pub fn note(&self, record: Record) {
        let trail = if record.is_of_stranger() { &self.strangers } else { &self.known };
        trail.note(record);
    }

    /// Records that found their queue full, since the start.
    pub fn lost(&self) -> u64 {
        self.known.lost.load(Ordering::Relaxed) + self.strangers.lost.load(Ordering::Relaxed)
    }
}

/// One way of records into a sink.
#[derive(Clone, Default)]
struct Trail {
    queue: Option<mpsc::Sender<Record>>,
    lost: Arc<AtomicU64>,
}

impl Trail {
    fn start(name: &'static str, sink: Sink, tasks: &Tasks) -> Self {
        let (queue, records) = mpsc::channel(QUEUE_MAX);
        let lost = Arc::<AtomicU64>::default();
        let writer = Writer { sink, records, lost: lost.clone() };
        let shutdown = tasks.shutdown().clone();
        tasks.spawn(name, OnExit::Stop, async move { writer.run(shutdown).await });
        Self { queue: Some(queue), lost }
    }

    fn note(&self, record: Record) {
        if let Some(queue) = &self.queue
            && queue.try_send(record).is_err()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Writer {
    sink: Sink,
    records: mpsc::Receiver<Record>,
    lost: Arc<AtomicU64>,
}

impl Writer {
    async fn run(mut self, shutdown: concert_engine::Shutdown) {
        let mut told = 0;
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            let count = tokio::select! {
                biased;
                count = self.records.recv_many(&mut batch, BATCH_MAX) => count,
                () = shutdown.requested() => break,
            };
            if count == 0 {
                break;
            }
            self.write(&mut batch, &mut told).await;
        }
        // What was noted before the end is written; nobody waits for what comes later.
        self.records.close();
        while self.records.recv_many(&mut batch, BATCH_MAX).await > 0 {
            self.write(&mut batch, &mut told).await;
        }
    }

    async fn write(&mut self, batch: &mut Vec<Record>, told: &mut u64) {
        let mut text = String::new();
        for record in batch.drain(..) {
            text.push_str(&record.to_line());
        }
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > *told {
            tracing::warn!(lost = lost - *told, "audit records were lost: the queue was full");
            text.push_str(&record::loss_line(lost - *told));
            *told = lost;
        }
        self.sink.write(text).await;
    }
}

#[cfg(test)]
mod tests;
