//! A plan as statements, each with whole columns of values: one statement for a hundred rows.

use std::borrow::Cow;

use concert_model::ObjectKey;
use tokio_postgres::types::ToSql;

use super::plan::{Plan, Reseal};
use crate::backend::Shelf;
use crate::backend::numbers::{micros, number_of_act};
use crate::contract::ItemKey;

pub(super) const INSERT_LOG: &str = "INSERT INTO log SELECT * \
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], \
    $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::bytea[])";
pub(super) const INSERT_BODIES: &str = "INSERT INTO bodies SELECT * FROM unnest($1::bigint[], $2::bytea[])";
const SET_PLACES: &str = "INSERT INTO objects \
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::boolean[]) \
    ON CONFLICT (kind, namespace, name) \
    DO UPDATE SET revision = excluded.revision, is_free = excluded.is_free";
pub(super) const SET_WORK: &str = "INSERT INTO work (controller, item, fence, body) \
    SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[]) \
    ON CONFLICT (controller, item) DO UPDATE SET fence = excluded.fence, body = excluded.body";
const DROP_WORK: &str = "DELETE FROM work w USING unnest($1::bytea[], $2::bytea[]) a (controller, item) \
    WHERE w.controller = a.controller AND w.item = a.item";
pub(super) const INSERT_ATTEMPTS: &str = "INSERT INTO attempts (controller, item, at, body) \
    SELECT controller, item, at, body \
    FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[]) WITH ORDINALITY \
    a (controller, item, at, body, n) ORDER BY n";
const RESEAL_OBJECTS: &str = "UPDATE bodies b SET payload = a.after \
    FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) a (place, before, after) \
    WHERE b.revision = a.place AND b.payload = a.before";
const RESEAL_WORK: &str = "UPDATE work w SET body = a.after \
    FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) a (place, before, after) \
    WHERE w.fence = a.place AND w.body = a.before";
const RESEAL_ATTEMPTS: &str = "UPDATE attempts t SET body = a.after \
    FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) a (place, before, after) \
    WHERE t.id = a.place AND t.body = a.before";
/// The numbers given out, that this batch was committed, and a word to the others if they shall look.
const FINISH: &str = "WITH numbers AS (UPDATE meta SET value = CASE name WHEN 'newest' THEN $1::bigint \
        ELSE $2::bigint END WHERE name IN ('newest', 'claims')), \
    mark AS (INSERT INTO writers VALUES ($3::bigint, $4::bigint, now()) \
        ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at) \
    SELECT pg_notify($5::text, $1::bigint::text) WHERE $6::boolean";

/// One statement and its values.
pub(super) struct Step<'a> {
    pub(super) sql: &'static str,
    values: Vec<Value<'a>>,
}

pub(super) type Value<'a> = Box<dyn ToSql + Sync + 'a>;

impl<'a> Step<'a> {
    pub(super) fn new(sql: &'static str, values: Vec<Value<'a>>) -> Self {
        Self { sql, values }
    }

    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}

/// Who commits which batch, and where others listen.
pub(super) struct Finish<'a> {
    pub(super) id: i64,
    pub(super) batch: i64,
    pub(super) channel: &'a str,
}

/// What to send for a plan. Each statement is there only if it has something to do.
pub(super) fn steps<'a>(plan: &'a Plan<'a>, finish: &'a Finish<'a>) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    // What was sealed before goes first: it says what it expects to find.
    for (shelf, sql) in
        [(Shelf::Objects, RESEAL_OBJECTS), (Shelf::Work, RESEAL_WORK), (Shelf::Attempts, RESEAL_ATTEMPTS)]
    {
        let all: Vec<&Reseal<'_>> = plan.reseals.iter().filter(|reseal| reseal.shelf == shelf).collect();
        if !all.is_empty() {
            let values =
                vec![column(&all, |it| it.place), column(&all, |it| &**it.from), column(&all, |it| &**it.to)];
            steps.push(Step { sql, values });
        }
    }
    if !plan.log.is_empty() {
        steps.extend(log_steps(plan));
    }
    steps.extend(work_steps(plan));
    if !plan.attempts.is_empty() {
        let all = &plan.attempts;
        let values = vec![
            column(all, |it| it.item.controller.as_bytes()),
            column(all, |it| it.item.item.as_bytes()),
            column(all, |it| micros(it.at)),
            column(all, |it| &*it.body),
        ];
        steps.push(Step { sql: INSERT_ATTEMPTS, values });
    }
    let is_news = !plan.log.is_empty();
    let numbers: [Value<'a>; 4] =
        [Box::new(plan.newest), Box::new(plan.claims), Box::new(finish.id), Box::new(finish.batch)];
    let values = numbers.into_iter().chain([Box::new(finish.channel) as Value<'a>, Box::new(is_news)]);
    steps.push(Step { sql: FINISH, values: values.collect() });
    steps
}

fn log_steps<'a>(plan: &'a Plan<'a>) -> [Step<'a>; 3] {
    let log = &plan.log;
    let rows = vec![
        column(log, |it| it.revision),
        column(log, |it| it.write.key.kind.to_string()),
        column(log, |it| &*it.write.key.namespace),
        column(log, |it| &*it.write.key.name),
        column(log, |it| number_of_act(it.act)),
        column(log, |it| it.previous),
        column(log, |it| micros(it.write.stamp.at)),
        column(log, |it| text(&it.write.stamp.actor)),
        column(log, |it| text(&it.write.stamp.reason)),
        column(log, |it| text(&it.write.stamp.manager)),
        column(log, |it| &*it.write.head),
    ];
    let bodies = vec![column(log, |it| it.revision), column(log, |it| &*it.write.payload)];
    let places: Vec<_> = plan.places.iter().collect();
    let objects = vec![
        column(&places, |(key, _)| key.kind.to_string()),
        column(&places, |(key, _)| &*key.namespace),
        column(&places, |(key, _)| &*key.name),
        column(&places, |(_, place)| place.revision),
        column(&places, |(_, place)| place.is_free),
    ];
    [
        Step { sql: INSERT_LOG, values: rows },
        Step { sql: INSERT_BODIES, values: bodies },
        Step { sql: SET_PLACES, values: objects },
    ]
}

fn work_steps<'a>(plan: &'a Plan<'a>) -> Vec<Step<'a>> {
    let dropped = plan.work.iter().filter(|(_, row)| row.is_none());
    let dropped: Vec<&ItemKey> = dropped.map(|(item, _)| *item).collect();
    let kept = plan.work.iter().filter_map(|(item, row)| row.map(|(fence, body)| (*item, fence, body)));
    let kept: Vec<_> = kept.collect();
    let mut steps = Vec::new();
    if !dropped.is_empty() {
        let values = of_items(&dropped).map(|values| Box::new(values) as Value<'a>);
        steps.push(Step { sql: DROP_WORK, values: values.into() });
    }
    if !kept.is_empty() {
        let values = vec![
            column(&kept, |(item, ..)| item.controller.as_bytes()),
            column(&kept, |(item, ..)| item.item.as_bytes()),
            column(&kept, |(_, fence, _)| *fence),
            column(&kept, |(.., body)| &***body),
        ];
        steps.push(Step { sql: SET_WORK, values });
    }
    steps
}

fn column<'a, R, V: 'a>(rows: &[R], value: impl Fn(&R) -> V) -> Value<'a>
where
    Vec<V>: ToSql + Sync,
{
    Box::new(rows.iter().map(value).collect::<Vec<V>>())
}

/// The same, for values that are part of the rows.
pub(super) fn column_of<'a, R, V: 'a>(rows: &'a [R], value: impl Fn(&'a R) -> V) -> Value<'a>
where
    Vec<V>: ToSql + Sync,
{
    Box::new(rows.iter().map(value).collect::<Vec<V>>())
}

/// Kinds, namespaces and names.
pub(super) fn of_keys(keys: &[&ObjectKey]) -> [Vec<String>; 3] {
    let column = |part: fn(&ObjectKey) -> String| keys.iter().map(|key| part(key)).collect();
    [
        column(|key| key.kind.to_string()),
        column(|key| key.namespace.to_string()),
        column(|key| key.name.to_string()),
    ]
}

/// Controllers and items.
pub(super) fn of_items<'a>(items: &[&'a ItemKey]) -> [Vec<&'a [u8]>; 2] {
    [
        items.iter().map(|item| item.controller.as_bytes()).collect(),
        items.iter().map(|item| item.item.as_bytes()).collect(),
    ]
}

/// What PostgreSQL can hold of a text: everything but the character with the number 0.
pub(super) fn text(value: &str) -> Cow<'_, str> {
    if value.contains('\0') { value.replace('\0', "\u{fffd}").into() } else { value.into() }
}
