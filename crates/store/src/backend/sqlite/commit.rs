//! The writing side: batches of transactions in one SQLite transaction, synced once.

use std::collections::HashMap;

use concert_model::{GroupKind, ObjectKey, Revision};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OptionalExtension, params};

use super::failure;
use crate::backend::numbers::{micros, number_of, number_of_act, revision_of};
use crate::backend::{Act, Check, Done, Effect, Failure, Refusal, Shelf, Txn, Verdict, Write};
use crate::contract::ItemKey;

/// The one connection that writes, and what it knows without asking.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) numbers: Numbers,
    kinds: HashMap<GroupKind, i64>,
}

/// The last numbers given out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) newest: i64,
    pub(super) claims: i64,
}

/// Where a key stands.
#[derive(Clone, Copy)]
struct Place {
    revision: i64,
    is_free: bool,
}

/// Places that the transaction has looked up or changed, the newest last.
type Known<'a> = Vec<(&'a ObjectKey, Option<Place>)>;

impl Writer {
    pub(super) fn new(connection: Connection) -> rusqlite::Result<Self> {
        let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let numbers = Numbers {
            newest: number(
                "SELECT max(coalesce((SELECT max(revision) FROM log), 0), \
                 (SELECT value FROM meta WHERE name = 'newest'))",
            )?,
            claims: number("SELECT value FROM meta WHERE name = 'claims'")?,
        };
        Ok(Self { connection, numbers, kinds: HashMap::new() })
    }

    /// Does `work` in one transaction; on failure nothing of it remains, here or on disk.
    pub(super) fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        let numbers = self.numbers;
        let result = self.connection.execute_batch("BEGIN IMMEDIATE").and_then(|()| {
            let value = work(self)?;
            self.connection.execute_batch("COMMIT")?;
            Ok(value)
        });
        result.map_err(|error| {
            self.numbers = numbers;
            self.kinds.clear();
            // Fails where SQLite has rolled back already.
            let _ = self.connection.execute_batch("ROLLBACK");
            failure(error)
        })
    }

    pub(super) fn commit(&mut self, batch: &[Txn]) -> Result<Vec<Verdict>, Failure> {
        self.transact(|writer| batch.iter().map(|txn| writer.attempt(txn)).collect())
    }

    fn attempt(&mut self, txn: &Txn) -> rusqlite::Result<Verdict> {
        let mut known = Known::new();
        for check in &txn.checks {
            if let Some(refusal) = self.refuse(check, &mut known)? {
                return Ok(Err(refusal));
            }
        }
        let mut done = Done::default();
        for effect in &txn.effects {
            self.apply(effect, &mut known, &mut done)?;
        }
        Ok(Ok(done))
    }

    fn refuse<'a>(&mut self, check: &'a Check, known: &mut Known<'a>) -> rusqlite::Result<Option<Refusal>> {
        match check {
            Check::Object(key, expected) => {
                let place = self.place(key)?;
                known.push((key, place));
                let now = place.filter(|place| !place.is_free).map(|place| revision_of(place.revision));
                Ok((now != *expected).then(|| Refusal::Changed { key: key.clone(), now }))
            }
            Check::Fence(fence) => {
                let newest = self.fence(&fence.item)?;
                Ok((newest != fence.number.cast_signed()).then(|| Refusal::Fenced(fence.clone())))
            }
            Check::Unwritten(kind, since) => {
                let id = self.kind(kind)?;
                let sql = "SELECT EXISTS (SELECT 1 FROM objects WHERE kind = ?1 AND revision > ?2)";
                let mut statement = self.connection.prepare_cached(sql)?;
                let is_written: bool =
                    statement.query_row(params![id, number_of(*since)], |row| row.get(0))?;
                Ok(is_written.then(|| Refusal::Written(kind.clone())))
            }
        }
    }

    fn apply<'a>(
        &mut self,
        effect: &'a Effect,
        known: &mut Known<'a>,
        done: &mut Done,
    ) -> rusqlite::Result<()> {
        match effect {
            Effect::Put(write) => done.revision = Some(self.write(write, false, known)?),
            Effect::Remove(write) => done.revision = Some(self.write(write, true, known)?),
            Effect::Claim(item, body) => {
                self.numbers.claims += 1;
                self.execute(
                    "UPDATE meta SET value = ?1 WHERE name = 'claims'",
                    params![self.numbers.claims],
                )?;
                self.execute(
                    "INSERT INTO work (controller, item, fence, body) VALUES (?1, ?2, ?3, ?4) \
                     ON CONFLICT DO UPDATE SET fence = excluded.fence, body = excluded.body",
                    params![item.controller, item.item, self.numbers.claims, body.as_ref()],
                )?;
                done.claim = Some(self.numbers.claims.cast_unsigned());
            }
            Effect::Work(item, Some(body)) => self.execute(
                "UPDATE work SET body = ?3 WHERE controller = ?1 AND item = ?2",
                params![item.controller, item.item, body.as_ref()],
            )?,
            Effect::Work(item, None) => self.execute(
                "DELETE FROM work WHERE controller = ?1 AND item = ?2",
                params![item.controller, item.item],
            )?,
            Effect::Attempt(attempt) => self.execute(
                "INSERT INTO attempts (controller, item, at, body) VALUES (?1, ?2, ?3, ?4)",
                params![
                    attempt.item.controller,
                    attempt.item.item,
                    micros(attempt.at),
                    attempt.body.as_ref()
                ],
            )?,
            Effect::Reseal { shelf, place, from, to } => self.execute(
                match shelf {
                    Shelf::Objects => "UPDATE bodies SET payload = ?3 WHERE revision = ?1 AND payload = ?2",
                    Shelf::Work => "UPDATE work SET body = ?3 WHERE id = ?1 AND body = ?2",
                    Shelf::Attempts => "UPDATE attempts SET body = ?3 WHERE id = ?1 AND body = ?2",
                },
                params![place.cast_signed(), from.as_ref(), to.as_ref()],
            )?,
        }
        Ok(())
    }

    fn write<'a>(
        &mut self,
        write: &'a Write,
        is_removal: bool,
        known: &mut Known<'a>,
    ) -> rusqlite::Result<Revision> {
        let place = match known.iter().rev().find(|(key, _)| **key == write.key) {
            Some((_, place)) => *place,
            None => self.place(&write.key)?,
        };
        let act = match &place {
            _ if is_removal => Act::Removed,
            Some(place) if !place.is_free => Act::Updated,
            _ => Act::Created,
        };
        let previous = place.map_or(SqlValue::Null, |place| SqlValue::Integer(place.revision));
        self.numbers.newest += 1;
        let revision = self.numbers.newest;
        let kind = self.kind(&write.key.kind)?;
        let (key, stamp) = (&write.key, &write.stamp);
        self.execute(
            "INSERT INTO log VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                revision,
                kind,
                key.namespace,
                key.name,
                number_of_act(act),
                previous,
                micros(stamp.at),
                stamp.actor,
                stamp.reason,
                stamp.manager,
                write.head.as_ref()
            ],
        )?;
        self.execute("INSERT INTO bodies VALUES (?1, ?2)", params![revision, write.payload.as_ref()])?;
        if previous == SqlValue::Null {
            self.execute(
                "INSERT INTO objects VALUES (?1, ?2, ?3, ?4, ?5)",
                params![kind, key.namespace, key.name, revision, is_removal],
            )?;
        } else {
            self.execute(
                "UPDATE objects SET revision = ?4, is_free = ?5 WHERE kind = ?1 AND namespace = ?2 AND name = ?3",
                params![kind, key.namespace, key.name, revision, is_removal],
            )?;
        }
        known.push((&write.key, Some(Place { revision, is_free: is_removal })));
        Ok(revision_of(revision))
    }

    fn place(&mut self, key: &ObjectKey) -> rusqlite::Result<Option<Place>> {
        let kind = self.kind(&key.kind)?;
        let sql = "SELECT revision, is_free FROM objects WHERE kind = ?1 AND namespace = ?2 AND name = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let place = |row: &rusqlite::Row<'_>| Ok(Place { revision: row.get(0)?, is_free: row.get(1)? });
        statement.query_row(params![kind, key.namespace, key.name], place).optional()
    }

    fn fence(&self, item: &ItemKey) -> rusqlite::Result<i64> {
        let sql = "SELECT fence FROM work WHERE controller = ?1 AND item = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let number = statement.query_row(params![item.controller, item.item], |row| row.get(0));
        Ok(number.optional()?.unwrap_or(0))
    }

    fn kind(&mut self, kind: &GroupKind) -> rusqlite::Result<i64> {
        if let Some(id) = self.kinds.get(kind) {
            return Ok(*id);
        }
        self.execute(
            "INSERT INTO kinds (group_name, kind) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            params![kind.group, kind.kind],
        )?;
        let sql = "SELECT id FROM kinds WHERE group_name = ?1 AND kind = ?2";
        let id = self.connection.query_row(sql, params![kind.group, kind.kind], |row| row.get(0))?;
        self.kinds.insert(kind.clone(), id);
        Ok(id)
    }

    /// The numbers of kinds may have changed.
    pub(super) fn forget_kinds(&mut self) {
        self.kinds.clear();
    }

    pub(super) fn execute(&self, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(params).map(|_| ())
    }

    pub(super) fn newest(&self) -> i64 {
        self.numbers.newest
    }
}

pub(super) fn floor_of(revision: Revision, newest: i64) -> i64 {
    number_of(revision).min(newest)
}
