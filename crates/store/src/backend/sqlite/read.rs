//! The reading side.

use std::sync::Arc;

use bytes::Bytes;
use concert_model::{GroupKind, ObjectKey, Revision};
use rusqlite::{Connection, OptionalExtension, Params, Row as SqlRow, params};

use super::{bytes_of, failure};
use crate::backend::numbers::{act_of, number_of, revision_of, time_of};
use crate::backend::{
    Act, Attempt, Bounds, Change, Failure, Owner, Past, Payload, Range, Row, Scan, Shelf, Stamp,
};
use crate::contract::ItemKey;
use crate::work::WorkRow;

/// Payloads read at once where the reader comes back for more: objects may have megabytes.
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Does all of `work` on one state of the file.
pub(super) fn snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    connection.execute_batch("BEGIN").map_err(failure)?;
    let result = work(connection);
    connection.execute_batch("COMMIT").map_err(failure)?;
    result
}

pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&SqlRow<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// The first rows that together weigh no more than [`READ_BYTES_MAX`], but at least one.
pub(super) fn some<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&SqlRow<'_>) -> rusqlite::Result<T>,
    weigh: impl Fn(&T) -> usize,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let (mut taken, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let item = read(row)?;
        bytes += weigh(&item);
        taken.push(item);
        if bytes > READ_BYTES_MAX {
            break;
        }
    }
    Ok(taken)
}

fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&SqlRow<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(params, read).optional()
}

pub(super) fn bounds(connection: &Connection) -> rusqlite::Result<Bounds> {
    let sql = "SELECT max(coalesce((SELECT max(revision) FROM log), 0), \
               (SELECT value FROM meta WHERE name = 'newest')), \
               (SELECT value FROM meta WHERE name = 'compacted')";
    let read = |row: &SqlRow<'_>| {
        Ok(Bounds { newest: revision_of(row.get(0)?), compacted: revision_of(row.get(1)?) })
    };
    connection.prepare_cached(sql)?.query_row([], read)
}

fn kind_id(connection: &Connection, kind: &GroupKind) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT id FROM kinds WHERE group_name = ?1 AND kind = ?2";
    one(connection, sql, params![kind.group, kind.kind], |row| row.get(0))
}

pub(super) fn get(connection: &Connection, key: &ObjectKey) -> rusqlite::Result<Option<Row>> {
    let sql = "SELECT l.revision, l.head, b.payload FROM kinds k \
               JOIN objects o ON o.kind = k.id AND o.namespace = ?3 AND o.name = ?4 AND NOT o.is_free \
               JOIN log l ON l.revision = o.revision JOIN bodies b ON b.revision = o.revision \
               WHERE k.group_name = ?1 AND k.kind = ?2";
    let read = |row: &SqlRow<'_>| {
        let (revision, head, payload) = (revision_of(row.get(0)?), bytes_of(row, 1)?, bytes_of(row, 2)?);
        Ok(Row { key: key.clone(), revision, head, payload })
    };
    one(connection, sql, params![key.kind.group, key.kind.kind, key.namespace, key.name], read)
}

pub(super) fn count(
    connection: &Connection,
    kind: &GroupKind,
    namespace: Option<&str>,
    after: &ObjectKey,
) -> rusqlite::Result<usize> {
    let Some(kind) = kind_id(connection, kind)? else { return Ok(0) };
    let sql = match namespace {
        Some(_) => {
            "SELECT count(*) FROM objects WHERE kind = ?1 AND namespace = ?2 AND name > ?3 AND NOT is_free"
        }
        None => {
            "SELECT count(*) FROM objects WHERE kind = ?1 AND (namespace, name) > (?2, ?3) AND NOT is_free"
        }
    };
    let count: i64 = connection
        .prepare_cached(sql)?
        .query_row(params![kind, after.namespace, after.name], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

pub(super) fn range(connection: &Connection, scan: &Scan<'_>) -> Result<Range, Failure> {
    let bounds = bounds(connection).map_err(failure)?;
    let at = scan.at.unwrap_or(bounds.newest);
    if at < bounds.compacted {
        return Err(Failure::Compacted);
    }
    rows_at(connection, scan, at).map_err(failure)
}

/// The rows of `scan` as they were at `at`. Every key that existed then still has its row in `objects`;
/// where that was written later, the chain of rows before it leads back.
fn rows_at(connection: &Connection, scan: &Scan<'_>, at: Revision) -> rusqlite::Result<Range> {
    let mut range = Range { revision: at, rows: Vec::new(), is_cut: false };
    let Some(kind) = kind_id(connection, scan.kind)? else { return Ok(range) };
    // Two statements, because one that serves both cases cannot seek to its place.
    let of_namespace = "SELECT namespace, name, revision, is_free FROM objects \
                        WHERE kind = ?1 AND namespace = ?2 AND name > ?3 ORDER BY namespace, name";
    let of_kind = "SELECT namespace, name, revision, is_free FROM objects \
                   WHERE kind = ?1 AND (namespace, name) > (?2, ?3) ORDER BY namespace, name";
    let (after_namespace, after_name) = scan.after.unwrap_or((scan.namespace.unwrap_or_default(), ""));
    let sql = if scan.namespace.is_some() { of_namespace } else { of_kind };
    let mut statement = connection.prepare_cached(sql)?;
    let mut places = statement.query(params![kind, scan.namespace.unwrap_or(after_namespace), after_name])?;
    let mut heads = connection.prepare_cached("SELECT head FROM log WHERE revision = ?1")?;
    let mut bodies = connection.prepare_cached("SELECT payload FROM bodies WHERE revision = ?1")?;
    while let Some(place) = places.next()? {
        let latest = revision_of(place.get(2)?);
        let revision = match latest > at {
            false if place.get(3)? => continue,
            false => latest,
            true => match state_before(connection, latest, at)? {
                Some(revision) => revision,
                None => continue,
            },
        };
        let (namespace, name) = (text_of(place, 0)?, text_of(place, 1)?);
        let key = ObjectKey { kind: scan.kind.clone(), namespace, name };
        let head = heads.query_row([number_of(revision)], |row| bytes_of(row, 0))?;
        if !(scan.keep)(&key, &head) {
            continue;
        }
        if range.rows.len() == scan.limit {
            range.is_cut = true;
            break;
        }
        let payload = bodies.query_row([number_of(revision)], |row| bytes_of(row, 0))?;
        range.rows.push(Row { key, revision, head, payload });
    }
    Ok(range)
}

fn state_before(
    connection: &Connection,
    latest: Revision,
    at: Revision,
) -> rusqlite::Result<Option<Revision>> {
    let sql = "SELECT previous, act FROM log WHERE revision = ?1";
    let link = |revision: Revision| {
        let read = |row: &SqlRow<'_>| Ok((row.get::<_, Option<i64>>(0)?, act_of(row.get(1)?)));
        one(connection, sql, [number_of(revision)], read)
    };
    let mut revision = latest;
    while revision > at {
        let Some((Some(previous), _)) = link(revision)? else { return Ok(None) };
        revision = revision_of(previous);
    }
    Ok(link(revision)?.filter(|(_, act)| *act != Act::Removed).map(|_| revision))
}

pub(super) fn tail(connection: &Connection, after: Revision, limit: usize) -> Result<Vec<Change>, Failure> {
    if after < bounds(connection).map_err(failure)?.compacted {
        return Err(Failure::Compacted);
    }
    let sql = "SELECT l.revision, k.group_name, k.kind, l.namespace, l.name, l.act, l.head, b.payload, \
               p.revision, p.head, pb.payload FROM log l JOIN kinds k ON k.id = l.kind \
               JOIN bodies b ON b.revision = l.revision \
               LEFT JOIN log p ON p.revision = l.previous AND l.act <> 0 \
               LEFT JOIN bodies pb ON pb.revision = p.revision \
               WHERE l.revision > ?1 ORDER BY l.revision LIMIT ?2";
    let read = |row: &SqlRow<'_>| {
        let key = key_of(row, 1)?;
        let previous = match row.get::<_, Option<i64>>(8)? {
            Some(revision) => Some(Row {
                key: key.clone(),
                revision: revision_of(revision),
                head: bytes_of(row, 9)?,
                payload: bytes_of(row, 10)?,
            }),
            None => None,
        };
        let (revision, act) = (revision_of(row.get(0)?), act_of(row.get(5)?));
        let row = Row { key, revision, head: bytes_of(row, 6)?, payload: bytes_of(row, 7)? };
        Ok(Change { row, act, previous })
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let weight = |change: &Change| {
        change.row.payload.len() + change.previous.as_ref().map_or(0, |row| row.payload.len())
    };
    some(connection, sql, params![number_of(after), limit], read, weight).map_err(failure)
}

pub(super) fn history(
    connection: &Connection,
    key: &ObjectKey,
    before: Option<Revision>,
    limit: usize,
) -> rusqlite::Result<Vec<Past>> {
    let Some(kind) = kind_id(connection, &key.kind)? else { return Ok(Vec::new()) };
    let sql = "SELECT revision FROM objects WHERE kind = ?1 AND namespace = ?2 AND name = ?3";
    let mut next: Option<i64> =
        one(connection, sql, params![kind, key.namespace, key.name], |row| row.get(0))?;
    let sql = "SELECT l.revision, l.previous, l.act, l.at, l.actor, l.reason, l.manager, l.head, b.payload \
               FROM log l LEFT JOIN bodies b ON b.revision = l.revision WHERE l.revision = ?1";
    let mut pasts = Vec::new();
    while let Some(revision) = next.filter(|_| pasts.len() < limit) {
        let read = |row: &SqlRow<'_>| {
            let stamp = Stamp {
                at: time_of(row.get(3)?),
                actor: text_of(row, 4)?,
                reason: text_of(row, 5)?,
                manager: text_of(row, 6)?,
            };
            let payload = bytes_or_none(row, 8)?;
            let (revision, act, head) = (revision_of(row.get(0)?), act_of(row.get(2)?), bytes_of(row, 7)?);
            Ok((row.get::<_, Option<i64>>(1)?, Past { revision, act, stamp, head, payload }))
        };
        let Some((previous, past)) = one(connection, sql, [revision], read)? else { break };
        if before.is_none_or(|before| past.revision < before) {
            pasts.push(past);
        }
        next = previous;
    }
    Ok(pasts)
}

pub(super) fn work(connection: &Connection, item: &ItemKey) -> rusqlite::Result<Option<WorkRow>> {
    let sql = "SELECT controller, item, fence, body FROM work WHERE controller = ?1 AND item = ?2";
    one(connection, sql, params![item.controller, item.item], work_row)
}

pub(super) fn work_of(connection: &Connection, controller: &str) -> rusqlite::Result<Vec<WorkRow>> {
    let sql = "SELECT controller, item, fence, body FROM work WHERE controller = ?1 ORDER BY item";
    all(connection, sql, params![controller], work_row)
}

fn work_row(row: &SqlRow<'_>) -> rusqlite::Result<WorkRow> {
    let fence = row.get::<_, i64>(2)?.cast_unsigned();
    Ok(WorkRow { item: item_of(row, 0)?, fence, body: bytes_of(row, 3)? })
}

pub(super) fn attempts(
    connection: &Connection,
    item: &ItemKey,
    limit: usize,
) -> rusqlite::Result<Vec<Attempt>> {
    let sql = "SELECT controller, item, at, body FROM attempts WHERE controller = ?1 AND item = ?2 \
               ORDER BY id DESC LIMIT ?3";
    let read = |row: &SqlRow<'_>| {
        Ok(Attempt { item: item_of(row, 0)?, at: time_of(row.get(2)?), body: bytes_of(row, 3)? })
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(connection, sql, params![item.controller, item.item, limit], read)
}

pub(super) fn payloads(
    connection: &Connection,
    shelf: Shelf,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Payload>> {
    let sql = match shelf {
        Shelf::Objects => {
            "SELECT b.revision, b.payload, k.group_name, k.kind, l.namespace, l.name FROM bodies b \
             JOIN log l ON l.revision = b.revision JOIN kinds k ON k.id = l.kind \
             WHERE b.revision > ?1 ORDER BY b.revision LIMIT ?2"
        }
        Shelf::Work => "SELECT id, body, controller, item FROM work WHERE id > ?1 ORDER BY id LIMIT ?2",
        Shelf::Attempts => {
            "SELECT id, body, controller, item FROM attempts WHERE id > ?1 ORDER BY id LIMIT ?2"
        }
    };
    let read = |row: &SqlRow<'_>| {
        let owner = match shelf {
            Shelf::Objects => Owner::Object(key_of(row, 2)?),
            Shelf::Work | Shelf::Attempts => Owner::Item(item_of(row, 2)?),
        };
        Ok(Payload { place: row.get::<_, i64>(0)?.cast_unsigned(), owner, bytes: bytes_of(row, 1)? })
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    some(connection, sql, params![after.cast_signed(), limit], read, |payload: &Payload| payload.bytes.len())
}

/// A key from four columns: group, kind, namespace, name.
pub(super) fn key_of(row: &SqlRow<'_>, first: usize) -> rusqlite::Result<ObjectKey> {
    let kind = GroupKind { group: text_of(row, first)?, kind: text_of(row, first + 1)? };
    Ok(ObjectKey { kind, namespace: text_of(row, first + 2)?, name: text_of(row, first + 3)? })
}

/// An item from two columns: controller, item.
pub(super) fn item_of(row: &SqlRow<'_>, first: usize) -> rusqlite::Result<ItemKey> {
    Ok(ItemKey { controller: text_of(row, first)?, item: text_of(row, first + 1)? })
}

pub(super) fn text_of(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<Arc<str>> {
    row.get_ref(column)?.as_str().map(Arc::from).map_err(Into::into)
}

pub(super) fn bytes_or_none(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<Option<Bytes>> {
    Ok(row.get_ref(column)?.as_blob_or_null()?.map(Bytes::copy_from_slice))
}
