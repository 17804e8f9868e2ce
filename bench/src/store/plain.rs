//! The physical limit: SQLite with rows of the same size and full sync, and nothing else.
//!
//! One writer commits what N callers have queued up, as the store does; no checks, no JSON, no schema,
//! no encryption, no watchers. Two layouts: the plain one, an object row that is updated in place and a
//! log row, both with the payload; and the store's own, which writes each payload once.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::{Connection, params};
use tokio::sync::oneshot;

/// Sizes seen in the store with 1 KB objects: the sealed payload, and the head in the log row.
const PAYLOAD_BYTES: usize = 1_150;
const HEAD_BYTES: usize = 170;

#[derive(Clone, Copy, PartialEq)]
pub enum Layout {
    /// A row for the object and a row for the log.
    Plain,
    /// The rows that the store writes.
    Own,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Act {
    Create,
    Update,
}

struct Job {
    name: String,
    payload: Vec<u8>,
    head: Vec<u8>,
    act: Act,
    reply: oneshot::Sender<()>,
}

/// Durable writes per second of `callers` that each wait for their own.
pub async fn rate(layout: Layout, act: Act, callers: usize, duration: Duration) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let connection = open(&folder.path().join("plain.db"))?;
    let (queue, jobs) = mpsc::sync_channel::<Job>(1024);
    let writer = std::thread::spawn(move || write_all(layout, &connection, &jobs));
    if act == Act::Update {
        // Something to update: one row for each caller and a few more.
        for caller in 0..callers {
            submit(&queue, Act::Create, caller, 0).await?;
        }
    }
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..callers {
        let queue = queue.clone();
        tasks.spawn(async move {
            let mut done = 0;
            while started.elapsed() < duration {
                done += 1;
                let n = if act == Act::Create { done } else { 0 };
                submit(&queue, act, caller, n).await?;
            }
            Ok::<_, anyhow::Error>(done)
        });
    }
    let mut total = 0;
    while let Some(done) = tasks.join_next().await {
        total += done??;
    }
    let rate = total as f64 / started.elapsed().as_secs_f64();
    drop(queue);
    writer.join().map_err(|_| anyhow::anyhow!("the plain writer panicked"))??;
    Ok(rate)
}

async fn submit(queue: &mpsc::SyncSender<Job>, act: Act, caller: usize, n: usize) -> Result<()> {
    let (reply, answer) = oneshot::channel();
    let name = format!("widget-{caller:03}-{n:07}");
    let job = Job { name, payload: vec![b'x'; PAYLOAD_BYTES], head: vec![b'h'; HEAD_BYTES], act, reply };
    queue.send(job)?;
    Ok(answer.await?)
}

fn open(path: &std::path::Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.pragma_update(None, "wal_autocheckpoint", 4_096)?;
    connection.execute_batch(
        "CREATE TABLE objects (kind INTEGER, namespace TEXT, name TEXT, revision INTEGER, \
           PRIMARY KEY (kind, namespace, name)) WITHOUT ROWID; \
         CREATE TABLE log (revision INTEGER PRIMARY KEY, name TEXT, head BLOB); \
         CREATE TABLE bodies (revision INTEGER PRIMARY KEY, payload BLOB); \
         CREATE TABLE rows (name TEXT PRIMARY KEY, revision INTEGER, head BLOB, payload BLOB); \
         CREATE TABLE history (revision INTEGER PRIMARY KEY, name TEXT, head BLOB, payload BLOB);",
    )?;
    Ok(connection)
}

fn write_all(layout: Layout, connection: &Connection, jobs: &mpsc::Receiver<Job>) -> Result<()> {
    let mut revision = 0i64;
    while let Ok(first) = jobs.recv() {
        let batch: Vec<Job> = std::iter::once(first).chain(jobs.try_iter().take(511)).collect();
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for job in &batch {
            revision += 1;
            match layout {
                Layout::Plain => write_plain(connection, revision, job)?,
                Layout::Own => write_own(connection, revision, job)?,
            }
        }
        connection.execute_batch("COMMIT")?;
        for job in batch {
            let _ = job.reply.send(());
        }
    }
    Ok(())
}

fn write_plain(connection: &Connection, revision: i64, job: &Job) -> rusqlite::Result<()> {
    let Job { name, head, payload, .. } = job;
    let sql = "INSERT INTO history VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![revision, name, head, payload])?;
    let sql = match job.act {
        Act::Create => "INSERT INTO rows VALUES (?1, ?2, ?3, ?4)",
        Act::Update => "UPDATE rows SET revision = ?2, head = ?3, payload = ?4 WHERE name = ?1",
    };
    connection.prepare_cached(sql)?.execute(params![name, revision, head, payload]).map(drop)
}

fn write_own(connection: &Connection, revision: i64, job: &Job) -> rusqlite::Result<()> {
    let Job { name, head, payload, .. } = job;
    let sql = "INSERT INTO log VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![revision, name, head])?;
    let sql = "INSERT INTO bodies VALUES (?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![revision, payload])?;
    let sql = match job.act {
        Act::Create => "INSERT INTO objects VALUES (1, 'default', ?1, ?2)",
        Act::Update => {
            "UPDATE objects SET revision = ?2 WHERE kind = 1 AND namespace = 'default' AND name = ?1"
        }
    };
    connection.prepare_cached(sql)?.execute(params![name, revision]).map(drop)
}
