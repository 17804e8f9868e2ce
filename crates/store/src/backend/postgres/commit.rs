//! The writing side: batches in the one order that all processes share.
//!
//! A batch is one transaction that first takes a lock, which every writer of every process takes and which
//! goes with the transaction. So numbers become visible in the order in which they are given out, and without
//! gaps. It is planned here, from what is stored, and written as whole columns: two trips to the server.

use std::collections::HashMap;

use concert_model::{GroupKind, ObjectKey};
use tokio_postgres::Row;

use super::address::Address;
use super::connect::{Connection, Connector, Values};
use super::patience::Patience;
use super::plan::{Asked, Place, Plan, Stored, plan};
use super::steps::{Finish, of_items, of_keys, steps};
use super::trouble::Trouble;
use super::wait::wait;
use crate::backend::{Txn, Verdict};
use crate::contract::ItemKey;

/// The first half of the number of the lock that orders commits: "CNCT". The second is the schema.
pub(super) const ORDER: i32 = 0x434e_4354;

/// The one connection that writes.
pub(super) struct Writer {
    connector: Connector,
    connection: Option<Connection>,
    pub(super) schema: i32,
    channel: String,
    /// This process, among all that ever wrote.
    id: i64,
    /// The last batch that was begun.
    batch: i64,
    /// The version of tables that this program knows.
    known: i64,
}

const LOCK: &str = "SELECT pg_advisory_xact_lock($1, $2)";
const META: &str = "SELECT name, value FROM meta";
const PLACES: &str = "SELECT a.n, o.revision, o.is_free \
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY a (kind, namespace, name, n) \
    JOIN objects o ON o.kind = a.kind AND o.namespace = a.namespace AND o.name = a.name";
const FENCES: &str = "SELECT a.n, w.fence \
    FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY a (controller, item, n) \
    JOIN work w ON w.controller = a.controller AND w.item = a.item";
const KINDS: &str = "SELECT a.n, coalesce((SELECT max(revision) FROM objects o WHERE o.kind = a.kind), 0) \
    FROM unnest($1::text[]) WITH ORDINALITY a (kind, n)";

const OLDEST: &str = "SELECT value FROM meta WHERE name = 'oldest'";
const LAST_BATCH: &str = "SELECT batch FROM writers WHERE id = $1";

/// Why a batch was not committed.
enum Stop {
    /// It was certainly not.
    Not(Trouble),
    /// Nobody knows: the connection broke after everything had been sent. The answers, if it was.
    Unknown(Vec<Verdict>),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Stop::Not(trouble)
    }
}

impl Writer {
    pub(super) fn new(
        connector: Connector,
        connection: Connection,
        channel: String,
        id: i64,
        known: i64,
    ) -> Self {
        let schema = hash(&connector.address.schema);
        Self { connector, connection: Some(connection), schema, channel, id, batch: 0, known }
    }

    /// Commits a batch. Tries again for as long as that is known to be right.
    pub(super) fn commit(&mut self, patience: &Patience, batch: &[Txn]) -> Result<Vec<Verdict>, Trouble> {
        let runtime = self.connector.runtime.clone();
        wait(&runtime, async {
            let mut tries = patience.begin();
            // The answers to a try of which nobody knows whether it succeeded.
            let mut open: Option<Vec<Verdict>> = None;
            loop {
                let trouble = match self.attempt(batch, &mut open).await {
                    Ok(verdicts) => return Ok(verdicts),
                    Err(trouble) => trouble,
                };
                self.connection = None;
                if !trouble.is_passing() {
                    return Err(trouble);
                }
                tries.pause(trouble).await?;
            }
        })
    }

    async fn attempt(
        &mut self,
        batch: &[Txn],
        open: &mut Option<Vec<Verdict>>,
    ) -> Result<Vec<Verdict>, Trouble> {
        if open.is_some() && self.has_committed().await? {
            return Ok(open.take().unwrap_or_default());
        }
        // It was not, and cannot be any more: who asked has held the lock since.
        *open = None;
        match self.try_commit(batch).await {
            Ok(verdicts) => Ok(verdicts),
            Err(Stop::Not(trouble)) => Err(trouble),
            Err(Stop::Unknown(verdicts)) => {
                *open = Some(verdicts);
                let at = self.connector.address.to_string();
                Err(Trouble::Unreachable { at, source: "the connection broke during a commit".into() })
            }
        }
    }

    /// Whether the last batch was committed. Waits for the lock that it was committed under: if a server's
    /// process is still busy with it, that one comes first.
    async fn has_committed(&mut self) -> Result<bool, Trouble> {
        let (id, batch, schema) = (self.id, self.batch, self.schema);
        let connection = self.connection().await?;
        connection.run("BEGIN").await?;
        connection.rows(LOCK, &[&ORDER, &schema]).await?;
        let rows = connection.rows(LAST_BATCH, &[&id]).await?;
        connection.run("COMMIT").await?;
        Ok(rows.first().is_some_and(|row| row.get::<_, i64>(0) == batch))
    }

    async fn try_commit(&mut self, batch: &[Txn]) -> Result<Vec<Verdict>, Stop> {
        self.connection().await?;
        let mut connection = self.connection.take().expect("it was just made sure of");
        let result = self.try_commit_over(&mut connection, batch).await;
        self.connection = Some(connection);
        result
    }

    /// Over one connection from the first word to the last. If it breaks in between, another must not be
    /// used: there the same statements would be outside of any transaction, and each would count by itself.
    async fn try_commit_over(
        &mut self,
        connection: &mut Connection,
        batch: &[Txn],
    ) -> Result<Vec<Verdict>, Stop> {
        let asked = Asked::by(batch);
        let (stored, oldest) = look(connection, self.schema, &asked).await?;
        check_known(&self.connector.address, self.known, oldest)?;
        let plan = plan(batch, stored);
        if plan.is_empty() {
            connection.run("ROLLBACK").await?;
            return Ok(plan.verdicts);
        }
        self.batch += 1;
        let finish = Finish { id: self.id, batch: self.batch, channel: &self.channel };
        match write(connection, &plan, &finish).await {
            Ok(()) => Ok(plan.verdicts),
            // The server said so itself: it has rolled everything back.
            Err(trouble) if !connection.is_closed() && !is_silent(&trouble) => {
                let _ = connection.run("ROLLBACK").await;
                Err(Stop::Not(trouble))
            }
            Err(_) => Err(Stop::Unknown(plan.verdicts)),
        }
    }

    pub(super) async fn connection(&mut self) -> Result<&mut Connection, Trouble> {
        if self.connection.as_ref().is_none_or(Connection::is_closed) {
            self.connection = Some(self.connector.connect().await?);
        }
        Ok(self.connection.as_mut().expect("it was just set"))
    }

    /// Does `work` in a transaction that no commit runs beside.
    pub(super) fn maintain<T>(
        &mut self,
        work: impl AsyncFn(&mut Connection) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let (runtime, schema) = (self.connector.runtime.clone(), self.schema);
        let (address, known) = (self.connector.address.clone(), self.known);
        let result = wait(&runtime, async {
            let connection = self.connection().await?;
            connection.run("BEGIN").await?;
            connection.rows(LOCK, &[&ORDER, &schema]).await?;
            let oldest = connection.one(OLDEST, &[]).await?.get(0);
            check_known(&address, known, oldest)?;
            let value = work(connection).await?;
            connection.run("COMMIT").await?;
            Ok(value)
        });
        if result.is_err() {
            // With whatever was left open on it.
            self.connection = None;
        }
        result
    }
}

/// Refuses tables that only a newer program may write to.
fn check_known(address: &Address, known: i64, oldest: i64) -> Result<(), Trouble> {
    if oldest <= known {
        Ok(())
    } else {
        Err(Trouble::Newer { at: address.to_string(), version: oldest, known })
    }
}

/// True if what is wrong is that nothing was heard, rather than what was.
fn is_silent(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Unreachable { .. } | Trouble::Late { .. })
}

/// Begins the transaction, takes the lock, and looks up what was asked for: all in one trip.
async fn look(connection: &mut Connection, schema: i32, asked: &Asked<'_>) -> Result<(Stored, i64), Trouble> {
    let lock = connection.prepared(LOCK).await?;
    let meta = connection.prepared(META).await?;
    let places = connection.prepared(PLACES).await?;
    let fences = connection.prepared(FENCES).await?;
    let kinds = connection.prepared(KINDS).await?;
    let keys: Vec<&ObjectKey> = asked.keys.keys().copied().collect();
    let items: Vec<&ItemKey> = asked.items.keys().copied().collect();
    let of_kinds: Vec<&GroupKind> = asked.kinds.keys().copied().collect();
    let [kind, namespace, name] = of_keys(&keys);
    let [controller, item] = of_items(&items);
    let kind_names: Vec<String> = of_kinds.iter().map(ToString::to_string).collect();
    let connection = &*connection;
    let numbers: Values<'_> = &[&ORDER, &schema];
    let of_keys: Values<'_> = &[&kind, &namespace, &name];
    let of_items: Values<'_> = &[&controller, &item];
    let of_names: Values<'_> = &[&kind_names];
    let (begun, locked, meta, places, fences, kinds) = tokio::join!(
        biased;
        connection.run("BEGIN"),
        connection.send(&lock, numbers),
        connection.send(&meta, &[]),
        connection.send_if(!keys.is_empty(), &places, of_keys),
        connection.send_if(!items.is_empty(), &fences, of_items),
        connection.send_if(!of_kinds.is_empty(), &kinds, of_names),
    );
    begun?;
    locked?;
    let meta: HashMap<String, i64> = meta?.iter().map(|row| (row.get(0), row.get(1))).collect();
    let number = |name: &str| meta.get(name).copied().unwrap_or_default();
    let stored = Stored {
        newest: number("newest"),
        claims: number("claims"),
        places: gather(&places?, &keys, |row| Place { revision: row.get(1), is_free: row.get(2) }),
        fences: gather(&fences?, &items, |row| row.get(1)),
        kinds: gather(&kinds?, &of_kinds, |row| row.get(1)),
    };
    Ok((stored, number("oldest")))
}

/// Rows whose first column says, counted from 1, which of `asked` they answer.
fn gather<K: Clone + Eq + std::hash::Hash, V>(
    rows: &[Row],
    asked: &[&K],
    read: impl Fn(&Row) -> V,
) -> HashMap<K, V> {
    let answered = |row: &Row| {
        let place = usize::try_from(row.get::<_, i64>(0)).ok()?.checked_sub(1)?;
        Some(((*asked.get(place)?).clone(), read(row)))
    };
    rows.iter().filter_map(answered).collect()
}

/// Writes a plan and commits: all in one trip.
async fn write(connection: &mut Connection, plan: &Plan<'_>, finish: &Finish<'_>) -> Result<(), Trouble> {
    let steps = steps(plan, finish);
    let mut prepared = Vec::with_capacity(steps.len());
    for step in &steps {
        prepared.push((connection.prepared(step.sql).await?, step.values()));
    }
    let connection = &*connection;
    let sent = prepared.iter().map(|(statement, values)| connection.send(statement, values));
    // Polled in order, and so sent in order: there are fewer than would be polled in another way.
    let sent = futures_util::future::join_all(sent);
    let (results, committed) = tokio::join!(biased; sent, connection.run("COMMIT"));
    // The first that failed says why; the others only that it did.
    for result in results {
        result?;
    }
    committed
}

/// A number for a name, the same in every process.
pub(super) fn hash(name: &str) -> i32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    name.bytes().fold(2_166_136_261, step).cast_signed()
}
