//! Rows of a kind as of one moment.

use std::collections::HashMap;

use bytes::Bytes;
use concert_model::ObjectKey;

use super::connect::Connection;
use super::read::{bounds, bytes_of, text_of};
use super::trouble::Trouble;
use crate::backend::numbers::{number_of, revision_of};
use crate::backend::{Range, Row, Scan};

/// Heads read at once.
const HEADS: i64 = 500;

/// The state of each key that had one at a moment. Every key that existed then still has its row in
/// `objects`; where that was written later, the chain of rows before it leads back.
const OF_NAMESPACE: &str = "SELECT o.namespace, o.name, l.revision, l.head FROM (\
        SELECT * FROM objects WHERE kind = $1 AND namespace = $2 AND name > $3 ORDER BY name LIMIT $5) o \
    LEFT JOIN LATERAL (WITH RECURSIVE chain AS (\
            SELECT revision, previous, act FROM log WHERE revision = o.revision \
            UNION ALL SELECT l.revision, l.previous, l.act FROM chain c \
            JOIN log l ON l.revision = c.previous WHERE c.revision > $4) \
        SELECT revision, act FROM chain WHERE revision <= $4 LIMIT 1) s ON true \
    LEFT JOIN log l ON l.revision = s.revision AND s.act <> 2 ORDER BY o.namespace, o.name";
const OF_KIND: &str = "SELECT o.namespace, o.name, l.revision, l.head FROM (\
        SELECT * FROM objects WHERE kind = $1 AND (namespace, name) > ($2, $3) \
        ORDER BY namespace, name LIMIT $5) o \
    LEFT JOIN LATERAL (WITH RECURSIVE chain AS (\
            SELECT revision, previous, act FROM log WHERE revision = o.revision \
            UNION ALL SELECT l.revision, l.previous, l.act FROM chain c \
            JOIN log l ON l.revision = c.previous WHERE c.revision > $4) \
        SELECT revision, act FROM chain WHERE revision <= $4 LIMIT 1) s ON true \
    LEFT JOIN log l ON l.revision = s.revision AND s.act <> 2 ORDER BY o.namespace, o.name";
const PAYLOADS: &str = "SELECT revision, payload FROM bodies WHERE revision = ANY($1)";

/// The rows of `scan`; none if its moment is compacted. All within one transaction, which ends with it.
pub(super) async fn range(connection: &mut Connection, scan: &Scan<'_>) -> Result<Option<Range>, Trouble> {
    connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let bounds = bounds(connection).await?;
    let at = scan.at.unwrap_or(bounds.newest);
    if at < bounds.compacted {
        connection.run("COMMIT").await?;
        return Ok(None);
    }
    let mut range = Range { revision: at, rows: Vec::new(), is_cut: false };
    let kind = scan.kind.to_string();
    let sql = if scan.namespace.is_some() { OF_NAMESPACE } else { OF_KIND };
    let (namespace, name) = scan.after.unwrap_or((scan.namespace.unwrap_or_default(), ""));
    let mut after = (scan.namespace.unwrap_or(namespace).to_owned(), name.to_owned());
    loop {
        let values: super::connect::Values<'_> = &[&kind, &after.0, &after.1, &number_of(at), &HEADS];
        let rows = connection.rows(sql, values).await?;
        let mut picked = Vec::new();
        for row in &rows {
            let (namespace, name) = (text_of(row, 0), text_of(row, 1));
            after = (namespace.to_string(), name.to_string());
            let Some(revision) = row.get::<_, Option<i64>>(2) else { continue };
            let key = ObjectKey { kind: scan.kind.clone(), namespace, name };
            let head = bytes_of(row, 3);
            if !(scan.keep)(&key, &head) {
                continue;
            }
            if range.rows.len() + picked.len() == scan.limit {
                range.is_cut = true;
                break;
            }
            picked.push((key, revision, head));
        }
        range.rows.extend(with_payloads(connection, picked).await?);
        if range.is_cut || rows.len() < usize::try_from(HEADS).unwrap_or(usize::MAX) {
            break;
        }
    }
    connection.run("COMMIT").await?;
    Ok(Some(range))
}

async fn with_payloads(
    connection: &mut Connection,
    picked: Vec<(ObjectKey, i64, Bytes)>,
) -> Result<Vec<Row>, Trouble> {
    let revisions: Vec<i64> = picked.iter().map(|(_, revision, _)| *revision).collect();
    if revisions.is_empty() {
        return Ok(Vec::new());
    }
    let rows = connection.rows(PAYLOADS, &[&revisions]).await?;
    let mut payloads: HashMap<i64, Bytes> = rows.iter().map(|row| (row.get(0), bytes_of(row, 1))).collect();
    let row = |(key, revision, head): (ObjectKey, i64, Bytes)| {
        let payload = payloads.remove(&revision)?;
        Some(Row { key, revision: revision_of(revision), head, payload })
    };
    Ok(picked.into_iter().filter_map(row).collect())
}
