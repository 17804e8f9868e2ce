//! Order among many writers, by revision; and histories that must be linearizable. (A Kubernetes store
//! reads from a cache, which promises less.)

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use concert_model::{Encoded, Patch, ResourceVersion};
use serde_json::json;
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::conformance::linear::{self, Model, Span};
use crate::conformance::load::{self, END};
use crate::conformance::{Own, Widgets, next};
use crate::contract::{By, Delete, Part};
use crate::error::Error;

/// Watchers see all kinds of writers in the order of their revisions, and every revision once.
pub async fn gives_revisions_in_one_order(own: &Own) {
    let widgets = Arc::new(own.subject.widgets().await);
    let start = own.store.newest().await.unwrap().0;
    let mut events = widgets.watch().await;
    load::run(&widgets, 12, 4, 50).await;
    let mut expected = start;
    loop {
        let event = next(&mut events).await;
        expected += 1;
        assert_eq!(event.position().to_string(), expected.to_string());
        if event.object().is_some_and(|object| &*object.key().name == END) {
            return;
        }
    }
}

/// Revisions told to one writer rise.
pub async fn gives_each_writer_rising_revisions(own: &Own) {
    let widgets = Arc::new(own.subject.widgets().await);
    let mut writers = JoinSet::new();
    for i in 0..4 {
        let widgets = widgets.clone();
        writers.spawn(async move {
            let mut told = Vec::new();
            let mut current = widgets.create(&format!("w{i}"), json!({"n": 0})).await;
            for n in 1..25 {
                told.push(current.resource_version().0.parse::<u64>().unwrap());
                current = widgets.set_n(&current, n).await;
            }
            assert!(told.is_sorted_by(|a, b| a < b), "{told:?}");
            told
        });
    }
    let all: Vec<u64> = writers.join_all().await.into_iter().flatten().collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}

/// Randomized concurrent histories of single objects are linearizable.
pub async fn is_linearizable(own: &Own) {
    let widgets = Arc::new(own.subject.widgets().await);
    for seed in 0..12 {
        let histories = record(&widgets, seed).await;
        for (name, history) in histories {
            if let Err(violation) = linear::check(&Objects, None, &history) {
                panic!("seed {seed}, {name}: not linearizable: {violation:?}");
            }
        }
    }
}

const TASKS: u64 = 6;
const OPERATIONS: usize = 60;
const KEYS: u64 = 3;

type Histories = BTreeMap<String, Vec<Span<Operation>>>;

/// One object: its version and the value in it, or nothing.
pub struct Objects;

/// What was asked of an object, and what came of it.
#[derive(Clone, Debug)]
pub enum Operation {
    /// With this value; the new version, or none if it was there.
    Create(i64, Option<ResourceVersion>),
    /// The version and the value; none if it was not there.
    Get(Option<(ResourceVersion, i64)>),
    /// From this version, to this value.
    Update(ResourceVersion, i64, Answer),
    /// To this value; the new version, or none if it was not there.
    Patch(i64, Option<ResourceVersion>),
    /// Of this version, or of any.
    Delete(Option<ResourceVersion>, Answer),
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The version that the write made.
    Done(ResourceVersion),
    /// It has another version.
    Conflict,
    /// It was not there.
    NotFound,
}

impl Model for Objects {
    type State = Option<(ResourceVersion, i64)>;
    type Operation = Operation;

    fn step(&self, state: &Self::State, operation: &Operation) -> Option<Self::State> {
        let version = state.as_ref().map(|(version, _)| version);
        let unchanged = |is_right: bool| is_right.then(|| state.clone());
        match operation {
            Operation::Create(n, Some(new)) => version.is_none().then(|| Some((new.clone(), *n))),
            Operation::Create(_, None) => unchanged(version.is_some()),
            Operation::Get(seen) => unchanged(seen == state),
            Operation::Update(from, n, Answer::Done(new)) => {
                (version == Some(from)).then(|| Some((new.clone(), *n)))
            }
            Operation::Patch(n, Some(new)) => version.is_some().then(|| Some((new.clone(), *n))),
            Operation::Patch(_, None) => unchanged(version.is_none()),
            Operation::Delete(from, Answer::Done(_)) => {
                (version.is_some() && (from.is_none() || version == from.as_ref())).then_some(None)
            }
            Operation::Update(from, _, Answer::Conflict)
            | Operation::Delete(Some(from), Answer::Conflict) => {
                unchanged(version.is_some_and(|version| version != from))
            }
            Operation::Delete(None, Answer::Conflict) => None,
            Operation::Update(_, _, Answer::NotFound) | Operation::Delete(_, Answer::NotFound) => {
                unchanged(version.is_none())
            }
        }
    }
}

async fn record(widgets: &Arc<Widgets>, seed: u64) -> Histories {
    let (chance, clock) = (Chance::seeded(seed), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (widgets, chance, clock) = (widgets.clone(), chance.fork(), clock.clone());
        tasks.spawn(async move {
            let mut spans = Vec::new();
            // Versions this task has seen, to compare and set with.
            let mut known = BTreeMap::new();
            for i in 0..OPERATIONS {
                let name = format!("seed-{seed}-key-{}", chance.below(KEYS));
                let value = i64::try_from(task).unwrap() * 1_000_000 + i64::try_from(i).unwrap();
                let called = clock.fetch_add(1, Ordering::SeqCst);
                let operation = act(&widgets, &chance, &name, value, &mut known).await;
                let answered = clock.fetch_add(1, Ordering::SeqCst);
                spans.push((name, Span { called, answered, operation }));
            }
            spans
        });
    }
    let mut histories = Histories::new();
    for (name, span) in tasks.join_all().await.into_iter().flatten() {
        histories.entry(name).or_default().push(span);
    }
    histories
}

async fn act(
    widgets: &Widgets,
    chance: &Chance,
    name: &str,
    n: i64,
    known: &mut BTreeMap<String, Encoded>,
) -> Operation {
    let version = |object: &Encoded| object.resource_version().clone();
    let from = known.get(name).cloned();
    match (chance.below(10), from) {
        (0..=1, _) | (4..=6, None) => match widgets.try_create(widgets.object(name, json!({"n": n}))).await {
            Ok(object) => {
                Operation::Create(n, Some(version(known.entry(name.into()).insert_entry(object).get())))
            }
            Err(Error::AlreadyExists { .. }) => Operation::Create(n, None),
            Err(error) => panic!("{error}"),
        },
        (2..=3, _) => match widgets.store.get(&widgets.key(name)).await {
            Ok(object) => {
                let seen = (version(&object), object.decode().spec()["n"].as_i64().unwrap());
                known.insert(name.into(), object);
                Operation::Get(Some(seen))
            }
            Err(Error::NotFound { .. }) => Operation::Get(None),
            Err(error) => panic!("{error}"),
        },
        (4..=6, Some(read)) => {
            // Without the uid, so that an object made anew is a matter of its version alone.
            let update = widgets.try_update(&read, |object| {
                object.set_metadata("uid", json!(null));
                object.set("spec", json!({"n": n}));
            });
            let answer = answer(update.await, |object| {
                known.insert(name.into(), object.clone());
                version(&object)
            });
            Operation::Update(version(&read), n, answer)
        }
        (7, _) => {
            let patch = Patch::merge(json!({"spec": {"n": n}})).unwrap();
            match widgets.store.patch(&widgets.key(name), Part::Main, &patch, &By::actor("suite")).await {
                Ok(object) => Operation::Patch(n, Some(version(&object))),
                Err(Error::NotFound { .. }) => Operation::Patch(n, None),
                Err(error) => panic!("{error}"),
            }
        }
        (_, read) => {
            let resource_version = read.filter(|_| chance.is_hit(0.5)).as_ref().map(version);
            let options = Delete { resource_version: resource_version.clone(), ..Delete::default() };
            let gone = widgets.try_delete(name, &options).await;
            Operation::Delete(resource_version, answer(gone, |gone| version(&gone.into_object())))
        }
    }
}

fn answer<T>(result: crate::Result<T>, version: impl FnOnce(T) -> ResourceVersion) -> Answer {
    match result {
        Ok(done) => Answer::Done(version(done)),
        Err(Error::Conflict { .. }) => Answer::Conflict,
        Err(Error::NotFound { .. }) => Answer::NotFound,
        Err(error) => panic!("{error}"),
    }
}
