//! Everything in the file, page by page, for a store of another sort.

use concert_model::Revision;
use rusqlite::params;

use super::{Failure, Sqlite, failure, read};
use crate::backend::numbers::{act_of, number_of, revision_of, time_of};
use crate::backend::transfer::{Claims, Logged, Numbers, Source};
use crate::backend::{Attempt, Stamp};
use crate::work::WorkRow;

impl Source for Sqlite {
    fn numbers(&self) -> Result<Numbers, Failure> {
        self.read(|connection| {
            let bounds = read::bounds(connection).map_err(failure)?;
            let sql = "SELECT value FROM meta WHERE name = 'claims'";
            let claims: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(failure)?;
            Ok(Numbers { newest: bounds.newest, compacted: bounds.compacted, claims: claims.cast_unsigned() })
        })
    }

    fn log(&self, after: Revision, limit: usize) -> Result<Vec<Logged>, Failure> {
        let sql = "SELECT l.revision, k.group_name, k.kind, l.namespace, l.name, l.act, l.previous, l.at, \
                   l.actor, l.reason, l.manager, l.head, b.payload FROM log l JOIN kinds k ON k.id = l.kind \
                   LEFT JOIN bodies b ON b.revision = l.revision \
                   WHERE l.revision > ?1 ORDER BY l.revision LIMIT ?2";
        let logged = |row: &rusqlite::Row<'_>| {
            Ok(Logged {
                revision: revision_of(row.get(0)?),
                key: read::key_of(row, 1)?,
                act: act_of(row.get(5)?),
                previous: row.get::<_, Option<i64>>(6)?.map(revision_of),
                stamp: Stamp {
                    at: time_of(row.get(7)?),
                    actor: read::text_of(row, 8)?,
                    reason: read::text_of(row, 9)?,
                    manager: read::text_of(row, 10)?,
                },
                head: super::bytes_of(row, 11)?,
                payload: read::bytes_or_none(row, 12)?,
            })
        };
        let weigh = |logged: &Logged| logged.payload.as_ref().map_or(0, bytes::Bytes::len);
        self.read(|connection| {
            let values = params![number_of(after), limit_of(limit)];
            read::some(connection, sql, values, logged, weigh).map_err(failure)
        })
    }

    fn claims(&self, after: u64, limit: usize) -> Result<Claims, Failure> {
        let sql = "SELECT id, controller, item, fence, body FROM work WHERE id > ?1 ORDER BY id LIMIT ?2";
        let row = |row: &rusqlite::Row<'_>| {
            let place = row.get::<_, i64>(0)?.cast_unsigned();
            let fence = row.get::<_, i64>(3)?.cast_unsigned();
            Ok((place, WorkRow { item: read::item_of(row, 1)?, fence, body: super::bytes_of(row, 4)? }))
        };
        self.read(|c| read::all(c, sql, params![after.cast_signed(), limit_of(limit)], row).map_err(failure))
    }

    fn attempts(&self, after: u64, limit: usize) -> Result<Vec<(u64, Attempt)>, Failure> {
        let sql = "SELECT id, controller, item, at, body FROM attempts WHERE id > ?1 ORDER BY id LIMIT ?2";
        let row = |row: &rusqlite::Row<'_>| {
            let (at, body) = (time_of(row.get(3)?), super::bytes_of(row, 4)?);
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), Attempt { item: read::item_of(row, 1)?, at, body }))
        };
        self.read(|c| read::all(c, sql, params![after.cast_signed(), limit_of(limit)], row).map_err(failure))
    }
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
