//! Compaction and forgetting, in small steps between commits.

use concert_model::{Revision, Timestamp};
use rusqlite::params;

use super::Failure;
use super::commit::{Writer, floor_of};
use crate::backend::numbers::{micros, revision_of};

impl Writer {
    /// Drops payloads that only a reader before `floor` could ask for: states replaced at or before it,
    /// and final states of objects removed at or before it.
    pub(super) fn compact(&mut self, floor: Revision, limit: usize) -> Result<Revision, Failure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.transact(|writer| {
            let sql = "SELECT value FROM meta WHERE name = 'compacted'";
            let from: i64 = writer.connection.query_row(sql, [], |row| row.get(0))?;
            let until = floor_of(floor, writer.newest()).min(from.saturating_add(limit));
            if until <= from {
                return Ok(revision_of(from));
            }
            writer.execute(
                "DELETE FROM bodies WHERE revision IN \
                 (SELECT previous FROM log WHERE revision > ?1 AND revision <= ?2 AND previous IS NOT NULL)",
                params![from, until],
            )?;
            writer.execute(
                "DELETE FROM bodies WHERE revision IN \
                 (SELECT revision FROM log WHERE revision > ?1 AND revision <= ?2 AND act = 2)",
                params![from, until],
            )?;
            writer.execute("UPDATE meta SET value = ?1 WHERE name = 'compacted'", params![until])?;
            Ok(revision_of(until))
        })
    }

    /// Drops log rows without a payload, and attempts, from before a time. A log row without a payload is
    /// no current state: compaction has seen its successor.
    pub(super) fn forget(&mut self, before: Timestamp, limit: usize) -> Result<usize, Failure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.transact(|writer| {
            let newest = writer.newest();
            // Outlives the rows: the newest number must survive even if its row does not.
            writer.execute("UPDATE meta SET value = ?1 WHERE name = 'newest'", params![newest])?;
            // Times rise with revisions, so the first young row ends the search.
            let sql = "SELECT revision FROM log WHERE revision < ?2 AND revision < \
                       coalesce((SELECT revision FROM log WHERE at >= ?1 ORDER BY revision LIMIT 1), ?2) \
                       AND revision <= (SELECT value FROM meta WHERE name = 'compacted') \
                       AND NOT EXISTS (SELECT 1 FROM bodies WHERE bodies.revision = log.revision) \
                       ORDER BY revision LIMIT ?3";
            let revisions: Vec<i64> = {
                let mut statement = writer.connection.prepare_cached(sql)?;
                let rows = statement.query_map(params![micros(before), newest, limit], |row| row.get(0))?;
                rows.collect::<rusqlite::Result<_>>()?
            };
            for revision in &revisions {
                // Only of a freed key can the newest row lack a payload.
                writer.execute(
                    "DELETE FROM objects WHERE (kind, namespace, name) = \
                     (SELECT kind, namespace, name FROM log WHERE revision = ?1) AND revision = ?1",
                    params![revision],
                )?;
                writer.execute("DELETE FROM log WHERE revision = ?1", params![revision])?;
            }
            let room = limit - i64::try_from(revisions.len()).unwrap_or(limit);
            let sql = "DELETE FROM attempts WHERE id IN (SELECT id FROM attempts WHERE id < coalesce(\
                       (SELECT id FROM attempts WHERE at >= ?1 ORDER BY id LIMIT 1), 9223372036854775807) \
                       ORDER BY id LIMIT ?2)";
            let attempts = writer.connection.prepare_cached(sql)?.execute(params![micros(before), room])?;
            Ok(revisions.len() + attempts)
        })
    }
}
