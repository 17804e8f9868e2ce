//! Moves the write-ahead log into the file, beside the writer.
//!
//! Left to the writer, as SQLite does by itself, it would keep every write waiting for as long as it takes.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;

use super::open;

/// Transactions from one checkpoint to the next: a few MiB of log.
const TRANSACTIONS: usize = 512;

/// A thread with a connection of its own. Ends with the value.
#[derive(Debug)]
pub(super) struct Checkpointer {
    committed: AtomicUsize,
    due: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(path: &Path) -> Result<Self, crate::error::BoxError> {
        let connection = open::checkpointer(path)?;
        let (due, told) = sync_channel(1);
        let thread = Builder::new().name("checkpoint".to_owned()).spawn(move || run(&connection, &told))?;
        Ok(Self { committed: AtomicUsize::new(0), due: Some(due), thread: Some(thread) })
    }

    /// So many more were committed.
    pub(super) fn committed(&self, transactions: usize) {
        let before = self.committed.fetch_add(transactions, Ordering::Relaxed);
        if (before + transactions) / TRANSACTIONS > before / TRANSACTIONS
            && let Some(due) = &self.due
        {
            // Full: one is due already, and will take these along.
            let _ = due.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.due = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, told: &Receiver<()>) {
    while told.recv().is_ok() {
        // Whatever is wrong with the file, the writer meets it too, and says so to whoever waits.
        if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            tracing::debug!(%error, "the write-ahead log cannot be moved into the file");
        }
    }
}
