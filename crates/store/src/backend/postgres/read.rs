//! The reading side. Each read is one statement, and so of one moment.

use std::sync::Arc;

use bytes::Bytes;
use concert_model::{GroupKind, ObjectKey, Revision};
use tokio_postgres::Row as SqlRow;

use super::connect::Connection;
use super::trouble::Trouble;
use crate::backend::numbers::{act_of, number_of, revision_of, time_of};
use crate::backend::{Attempt, Bounds, Change, Owner, Past, Payload, Row, Shelf, Stamp};
use crate::contract::ItemKey;
use crate::work::WorkRow;

/// Payloads read at once where the reader comes back for more: objects may have megabytes.
const READ_BYTES_MAX: i64 = 4 * 1024 * 1024;

pub(super) async fn bounds(connection: &mut Connection) -> Result<Bounds, Trouble> {
    let sql = "SELECT (SELECT value FROM meta WHERE name = 'newest'), \
               (SELECT value FROM meta WHERE name = 'compacted')";
    let row = connection.one(sql, &[]).await?;
    Ok(Bounds { newest: revision_of(row.get(0)), compacted: revision_of(row.get(1)) })
}

pub(super) async fn get(connection: &mut Connection, key: &ObjectKey) -> Result<Option<Row>, Trouble> {
    let sql = "SELECT l.revision, l.head, b.payload FROM objects o \
               JOIN log l ON l.revision = o.revision JOIN bodies b ON b.revision = o.revision \
               WHERE o.kind = $1 AND o.namespace = $2 AND o.name = $3 AND NOT o.is_free";
    let rows = connection.rows(sql, &[&key.kind.to_string(), &&*key.namespace, &&*key.name]).await?;
    Ok(rows.first().map(|row| Row {
        key: key.clone(),
        revision: revision_of(row.get(0)),
        head: bytes_of(row, 1),
        payload: bytes_of(row, 2),
    }))
}

pub(super) async fn count(
    connection: &mut Connection,
    kind: &GroupKind,
    namespace: Option<&str>,
    after: &ObjectKey,
) -> Result<usize, Trouble> {
    let sql = match namespace {
        Some(_) => {
            "SELECT count(*) FROM objects WHERE kind = $1 AND namespace = $2 AND name > $3 AND NOT is_free"
        }
        None => {
            "SELECT count(*) FROM objects WHERE kind = $1 AND (namespace, name) > ($2, $3) AND NOT is_free"
        }
    };
    let row = connection.one(sql, &[&kind.to_string(), &&*after.namespace, &&*after.name]).await?;
    Ok(usize::try_from(row.get::<_, i64>(0)).unwrap_or_default())
}

/// Log rows after a revision; none if one of them may be gone. Sizes are added up before anything is sent.
pub(super) async fn tail(
    connection: &mut Connection,
    after: Revision,
    limit: usize,
) -> Result<Option<Vec<Change>>, Trouble> {
    let sql = "SELECT c.value, r.* FROM (SELECT value FROM meta WHERE name = 'compacted') c \
        LEFT JOIN LATERAL (SELECT l.revision, l.kind, l.namespace, l.name, l.act, l.head, b.payload, \
            p.revision AS before, p.head AS before_head, pb.payload AS before_payload, \
            sum(octet_length(b.payload) + coalesce(octet_length(pb.payload), 0)) OVER (ORDER BY l.revision) \
                - octet_length(b.payload) - coalesce(octet_length(pb.payload), 0) AS weight \
            FROM (SELECT * FROM log WHERE revision > $1 ORDER BY revision LIMIT $2) l \
            JOIN bodies b ON b.revision = l.revision \
            LEFT JOIN log p ON p.revision = l.previous AND l.act <> 0 \
            LEFT JOIN bodies pb ON pb.revision = p.revision \
        ) r ON c.value <= $1 AND r.weight <= $3::bigint ORDER BY r.revision";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection.rows(sql, &[&number_of(after), &limit, &READ_BYTES_MAX]).await?;
    if rows.first().is_none_or(|row| row.get::<_, i64>(0) > number_of(after)) {
        return Ok(None);
    }
    let rows = rows.iter().filter(|row| row.get::<_, Option<i64>>(1).is_some());
    Ok(Some(rows.map(change_of).collect()))
}

fn change_of(row: &SqlRow) -> Change {
    let key = key_of(row, 2);
    let previous = row.get::<_, Option<i64>>(8).map(|revision| Row {
        key: key.clone(),
        revision: revision_of(revision),
        head: bytes_of(row, 9),
        payload: bytes_of(row, 10),
    });
    let (head, payload) = (bytes_of(row, 6), bytes_of(row, 7));
    let state = Row { key, revision: revision_of(row.get(1)), head, payload };
    Change { row: state, act: act_of(row.get(5)), previous }
}

pub(super) async fn history(
    connection: &mut Connection,
    key: &ObjectKey,
    before: Option<Revision>,
    limit: usize,
) -> Result<Vec<Past>, Trouble> {
    // Along the chain, newest first, and no further than is asked for.
    let sql = "WITH RECURSIVE chain AS ( \
            SELECT l.* FROM log l WHERE l.revision = \
                (SELECT revision FROM objects WHERE kind = $1 AND namespace = $2 AND name = $3) \
            UNION ALL SELECT l.* FROM chain c JOIN log l ON l.revision = c.previous) \
        SELECT c.revision, c.act, c.at, c.actor, c.reason, c.manager, c.head, b.payload \
        FROM (SELECT * FROM chain WHERE revision < $4 LIMIT $5) c \
        LEFT JOIN bodies b ON b.revision = c.revision ORDER BY c.revision DESC";
    let before = before.map_or(i64::MAX, number_of);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (kind, namespace, name) = (key.kind.to_string(), &*key.namespace, &*key.name);
    let rows = connection.rows(sql, &[&kind, &namespace, &name, &before, &limit]).await?;
    let past = |row: &SqlRow| Past {
        revision: revision_of(row.get(0)),
        act: act_of(row.get(1)),
        stamp: Stamp {
            at: time_of(row.get(2)),
            actor: text_of(row, 3),
            reason: text_of(row, 4),
            manager: text_of(row, 5),
        },
        head: bytes_of(row, 6),
        payload: row.get::<_, Option<&[u8]>>(7).map(Bytes::copy_from_slice),
    };
    Ok(rows.iter().map(past).collect())
}

pub(super) async fn work(connection: &mut Connection, item: &ItemKey) -> Result<Option<WorkRow>, Trouble> {
    let sql = "SELECT fence, body FROM work WHERE controller = $1 AND item = $2";
    let rows = connection.rows(sql, &[&item.controller.as_bytes(), &item.item.as_bytes()]).await?;
    let read = |row: &SqlRow| WorkRow {
        item: item.clone(),
        fence: row.get::<_, i64>(0).cast_unsigned(),
        body: bytes_of(row, 1),
    };
    Ok(rows.first().map(read))
}

pub(super) async fn work_of(connection: &mut Connection, controller: &str) -> Result<Vec<WorkRow>, Trouble> {
    let sql = "SELECT controller, item, fence, body FROM work WHERE controller = $1 ORDER BY item";
    let rows = connection.rows(sql, &[&controller.as_bytes()]).await?;
    let read = |row: &SqlRow| WorkRow {
        item: item_of(row, 0),
        fence: row.get::<_, i64>(2).cast_unsigned(),
        body: bytes_of(row, 3),
    };
    Ok(rows.iter().map(read).collect())
}

pub(super) async fn attempts(
    connection: &mut Connection,
    item: &ItemKey,
    limit: usize,
) -> Result<Vec<Attempt>, Trouble> {
    let sql = "SELECT at, body FROM attempts WHERE controller = $1 AND item = $2 ORDER BY id DESC LIMIT $3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (controller, name) = (item.controller.as_bytes(), item.item.as_bytes());
    let rows = connection.rows(sql, &[&controller, &name, &limit]).await?;
    let read = |row: &SqlRow| Attempt { item: item.clone(), at: time_of(row.get(0)), body: bytes_of(row, 1) };
    Ok(rows.iter().map(read).collect())
}

pub(super) async fn payloads(
    connection: &mut Connection,
    shelf: Shelf,
    after: u64,
    limit: usize,
) -> Result<Vec<Payload>, Trouble> {
    let sql = match shelf {
        Shelf::Objects => {
            "SELECT revision, payload, kind, namespace, name FROM (SELECT b.revision, b.payload, l.kind, \
             l.namespace, l.name, sum(octet_length(b.payload)) OVER (ORDER BY b.revision) \
             - octet_length(b.payload) AS weight \
             FROM (SELECT * FROM bodies WHERE revision > $1 ORDER BY revision LIMIT $2) b \
             JOIN log l ON l.revision = b.revision) r WHERE weight <= $3::bigint ORDER BY revision"
        }
        Shelf::Work => {
            "SELECT fence, body, controller, item FROM work WHERE fence > $1 AND $3::bigint > 0 \
             ORDER BY fence LIMIT $2"
        }
        Shelf::Attempts => {
            "SELECT id, body, controller, item FROM attempts WHERE id > $1 AND $3::bigint > 0 \
             ORDER BY id LIMIT $2"
        }
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection.rows(sql, &[&after.cast_signed(), &limit, &READ_BYTES_MAX]).await?;
    let read = |row: &SqlRow| {
        let owner = match shelf {
            Shelf::Objects => Owner::Object(key_of(row, 2)),
            Shelf::Work | Shelf::Attempts => Owner::Item(item_of(row, 2)),
        };
        Payload { place: row.get::<_, i64>(0).cast_unsigned(), owner, bytes: bytes_of(row, 1) }
    };
    Ok(rows.iter().map(read).collect())
}

/// A key from three columns: kind, namespace, name.
fn key_of(row: &SqlRow, first: usize) -> ObjectKey {
    let (kind, group) = match row.get::<_, &str>(first).split_once('.') {
        Some((kind, group)) => (kind, group),
        None => (row.get(first), ""),
    };
    let kind = GroupKind::new(group, kind);
    ObjectKey { kind, namespace: text_of(row, first + 1), name: text_of(row, first + 2) }
}

/// An item from two columns: controller, item.
fn item_of(row: &SqlRow, first: usize) -> ItemKey {
    let text = |column| String::from_utf8_lossy(row.get::<_, &[u8]>(column)).into();
    ItemKey { controller: text(first), item: text(first + 1) }
}

pub(super) fn bytes_of(row: &SqlRow, column: usize) -> Bytes {
    Bytes::copy_from_slice(row.get::<_, &[u8]>(column))
}

pub(super) fn text_of(row: &SqlRow, column: usize) -> Arc<str> {
    row.get::<_, &str>(column).into()
}
