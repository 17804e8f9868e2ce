//! Compaction and forgetting, in small steps between commits. Whoever does a step holds the lock of commits,
//! so that only one process does it; another goes on from there.

use concert_model::{Revision, Timestamp};

use super::commit::Writer;
use super::trouble::Trouble;
use crate::backend::numbers::{micros, number_of, revision_of};

impl Writer {
    /// Drops payloads that only a reader before `floor` could ask for: states replaced at or before it,
    /// and final states of objects removed at or before it.
    pub(super) fn compact(&mut self, floor: Revision, limit: usize) -> Result<Revision, Trouble> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.maintain(async |connection| {
            let sql = "SELECT (SELECT value FROM meta WHERE name = 'compacted'), \
                       (SELECT value FROM meta WHERE name = 'newest')";
            let row = connection.one(sql, &[]).await?;
            let (from, newest): (i64, i64) = (row.get(0), row.get(1));
            let until = number_of(floor).min(newest).min(from.saturating_add(limit));
            if until <= from {
                return Ok(revision_of(from));
            }
            let sql = "DELETE FROM bodies WHERE revision IN \
                (SELECT previous FROM log WHERE revision > $1 AND revision <= $2 AND previous IS NOT NULL \
                 UNION SELECT revision FROM log WHERE revision > $1 AND revision <= $2 AND act = 2)";
            connection.rows(sql, &[&from, &until]).await?;
            connection.rows("UPDATE meta SET value = $1 WHERE name = 'compacted'", &[&until]).await?;
            Ok(revision_of(until))
        })
    }

    /// Drops log rows without a payload, and attempts, from before a time. A log row without a payload is
    /// no current state: compaction has seen its successor.
    pub(super) fn forget(&mut self, before: Timestamp, limit: usize) -> Result<usize, Trouble> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.maintain(async |connection| {
            // Times rise with revisions, but for the clocks of several machines: a row that is a little too
            // young for its place stays a little longer.
            let sql = "WITH gone AS (DELETE FROM log WHERE revision IN (SELECT revision FROM log l \
                    WHERE revision < (SELECT value FROM meta WHERE name = 'newest') AND revision < \
                    coalesce((SELECT revision FROM log WHERE at >= $1 ORDER BY revision LIMIT 1), \
                        9223372036854775807) \
                    AND revision <= (SELECT value FROM meta WHERE name = 'compacted') \
                    AND NOT EXISTS (SELECT 1 FROM bodies b WHERE b.revision = l.revision) \
                    ORDER BY revision LIMIT $2) RETURNING revision, kind, namespace, name), \
                freed AS (DELETE FROM objects o USING gone g WHERE o.kind = g.kind \
                    AND o.namespace = g.namespace AND o.name = g.name AND o.revision = g.revision) \
                SELECT count(*) FROM gone";
            let row = connection.one(sql, &[&micros(before), &limit]).await?;
            let rows: i64 = row.get(0);
            let sql = "WITH gone AS (DELETE FROM attempts WHERE id IN (SELECT id FROM attempts WHERE id < \
                    coalesce((SELECT id FROM attempts WHERE at >= $1 ORDER BY id LIMIT 1), \
                        9223372036854775807) ORDER BY id LIMIT $2) RETURNING id) SELECT count(*) FROM gone";
            let row = connection.one(sql, &[&micros(before), &(limit - rows)]).await?;
            // A process that has not written for a day has no open question.
            let sql = "DELETE FROM writers WHERE at < now() - interval '1 day'";
            connection.rows(sql, &[]).await?;
            Ok(usize::try_from(rows + row.get::<_, i64>(0)).unwrap_or_default())
        })
    }
}
