//! Taking over everything from a store of another sort.

use bytes::Bytes;
use concert_model::Revision;

use super::connect::Connection;
use super::steps::{INSERT_ATTEMPTS, INSERT_BODIES, INSERT_LOG, SET_WORK, Step, column_of, text};
use super::trouble::Trouble;
use super::{Address, Postgres};
use crate::backend::numbers::{micros, number_of, number_of_act};
use crate::backend::transfer::{Logged, Moved, Source};
use crate::backend::{Failure, Owner, Renew};
use crate::error::BoxError;

/// Rows taken over at once.
const STEP_ROWS: usize = 500;

const SET_META: &str = "UPDATE meta SET value = CASE name WHEN 'newest' THEN $1::bigint \
    WHEN 'compacted' THEN $2::bigint ELSE $3::bigint END WHERE name IN ('newest', 'compacted', 'claims')";
/// A key is where its newest row is.
const SET_PLACES: &str = "INSERT INTO objects SELECT DISTINCT ON (kind, namespace, name) \
    kind, namespace, name, revision, act = 2 FROM log ORDER BY kind, namespace, name, revision DESC";

impl Postgres {
    /// Takes over all that `source` has, in one step: the same revisions in the same order, with who wrote
    /// when, work state and attempts. Each payload is shown to `renew`, which gives what is kept.
    ///
    /// # Errors
    /// [`Failure::Broken`] with [`Trouble::Taken`] within when there is anything here already; whatever
    /// fails, nothing was taken over.
    pub fn take_over(&self, source: &dyn Source, renew: &Renew<'_>) -> Result<Moved, Failure> {
        let address = &self.address;
        let moved = self.writer().maintain(async |connection| {
            let sql = "SELECT EXISTS (SELECT 1 FROM log) OR (SELECT max(value) > 0 FROM meta \
                       WHERE name IN ('newest', 'claims'))";
            if connection.one(sql, &[]).await?.get(0) {
                return Err(Trouble::Taken { at: address.to_string() });
            }
            connection.be_patient().await?;
            let moved = Import { connection, address, source, renew }.run().await?;
            connection.be_quick();
            Ok(moved)
        })?;
        Ok(moved)
    }
}

struct Import<'a> {
    connection: &'a mut Connection,
    address: &'a Address,
    source: &'a dyn Source,
    renew: &'a Renew<'a>,
}

impl Import<'_> {
    async fn run(mut self) -> Result<Moved, Trouble> {
        let mut moved = Moved::default();
        let mut after = Revision(0);
        loop {
            let mut rows = self.read(|source| source.log(after, STEP_ROWS))?;
            let Some(last) = rows.last() else { break };
            after = last.revision;
            for row in &mut rows {
                if let Some(payload) = &mut row.payload {
                    *payload = self.renewed(&Owner::Object(row.key.clone()), payload)?;
                }
            }
            self.log(&rows).await?;
            moved.writes += rows.len();
        }
        moved.claims = self.claims().await?;
        moved.attempts = self.attempts().await?;
        let numbers = self.read(|source| source.numbers())?;
        let (newest, compacted) = (number_of(numbers.newest), number_of(numbers.compacted));
        self.connection.rows(SET_META, &[&newest, &compacted, &numbers.claims.cast_signed()]).await?;
        self.connection.rows(SET_PLACES, &[]).await?;
        // Until it is told, the server takes all tables for empty.
        self.connection.run("ANALYZE objects, log, bodies, work, attempts").await?;
        Ok(moved)
    }

    async fn log(&mut self, rows: &[Logged]) -> Result<(), Trouble> {
        let values = vec![
            column_of(rows, |it| number_of(it.revision)),
            column_of(rows, |it| it.key.kind.to_string()),
            column_of(rows, |it| &*it.key.namespace),
            column_of(rows, |it| &*it.key.name),
            column_of(rows, |it| number_of_act(it.act)),
            column_of(rows, |it| it.previous.map(number_of)),
            column_of(rows, |it| micros(it.stamp.at)),
            column_of(rows, |it| text(&it.stamp.actor)),
            column_of(rows, |it| text(&it.stamp.reason)),
            column_of(rows, |it| text(&it.stamp.manager)),
            column_of(rows, |it| &*it.head),
        ];
        self.send(Step::new(INSERT_LOG, values)).await?;
        let kept: Vec<_> = rows
            .iter()
            .filter_map(|it| it.payload.as_deref().map(|payload| (it.revision, payload)))
            .collect();
        let values = vec![
            column_of(&kept, |(revision, _)| number_of(*revision)),
            column_of(&kept, |(_, payload)| *payload),
        ];
        self.send(Step::new(INSERT_BODIES, values)).await
    }

    async fn claims(&mut self) -> Result<usize, Trouble> {
        let (mut after, mut count) = (0, 0);
        loop {
            let mut rows = self.read(|source| source.claims(after, STEP_ROWS))?;
            let Some((last, _)) = rows.last() else { return Ok(count) };
            (after, count) = (*last, count + rows.len());
            for (_, row) in &mut rows {
                row.body = self.renewed(&Owner::Item(row.item.clone()), &row.body)?;
            }
            let values = vec![
                column_of(&rows, |(_, it)| it.item.controller.as_bytes()),
                column_of(&rows, |(_, it)| it.item.item.as_bytes()),
                column_of(&rows, |(_, it)| it.fence.cast_signed()),
                column_of(&rows, |(_, it)| &*it.body),
            ];
            self.send(Step::new(SET_WORK, values)).await?;
        }
    }

    async fn attempts(&mut self) -> Result<usize, Trouble> {
        let (mut after, mut count) = (0, 0);
        loop {
            let mut rows = self.read(|source| source.attempts(after, STEP_ROWS))?;
            let Some((last, _)) = rows.last() else { return Ok(count) };
            (after, count) = (*last, count + rows.len());
            for (_, attempt) in &mut rows {
                attempt.body = self.renewed(&Owner::Item(attempt.item.clone()), &attempt.body)?;
            }
            let values = vec![
                column_of(&rows, |(_, it)| it.item.controller.as_bytes()),
                column_of(&rows, |(_, it)| it.item.item.as_bytes()),
                column_of(&rows, |(_, it)| micros(it.at)),
                column_of(&rows, |(_, it)| &*it.body),
            ];
            self.send(Step::new(INSERT_ATTEMPTS, values)).await?;
        }
    }

    async fn send(&mut self, step: Step<'_>) -> Result<(), Trouble> {
        self.connection.rows(step.sql, &step.values()).await.map(drop)
    }

    fn read<T>(&self, read: impl FnOnce(&dyn Source) -> Result<T, Failure>) -> Result<T, Trouble> {
        read(self.source).map_err(|failure| self.failed(failure.into()))
    }

    fn renewed(&self, owner: &Owner, bytes: &Bytes) -> Result<Bytes, Trouble> {
        let renewed = (self.renew)(owner, bytes).map_err(|failure| self.failed(failure.into()))?;
        Ok(renewed.unwrap_or_else(|| bytes.clone()))
    }

    fn failed(&self, source: BoxError) -> Trouble {
        Trouble::Source { at: self.address.to_string(), source }
    }
}
