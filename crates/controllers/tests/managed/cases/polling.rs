//! How often an object is looked at that is as declared.

use std::sync::Arc;
use std::time::Duration;

use concert_controllers::managed::poll::Poll;
use concert_controllers::managed::rest::GLANCES_MAX;
use concert_controllers::managed::vocabulary::annotation::{EXTERNAL_NAME, POLL_INTERVAL};
use concert_engine::Outcome;
use concert_model::ObjectKey;
use concert_store::{Delete, Error, Store};
use serde_json::json;

use crate::bench::{Bench, POLL, all_well, annotated, boom, polled, retry, secret, user};
use crate::faulty::Verb;
use crate::line::At;
use crate::stores::Subject;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn asking(subject: &Subject, interval: &str) -> Outcome {
    let mut bench = Bench::new(subject).await;
    bench.managed.poll.min = seconds(5);
    bench.declare(annotated(&[(POLL_INTERVAL, interval)])).await;
    bench.reconcile().await
}

pub async fn is_every_interval(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(bench.reconcile().await, polled());
}

pub async fn is_spread_by_jitter(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.poll = Poll::every(POLL);
    bench.declare(json!({})).await;
    let mut waits = Vec::new();
    for _ in 0..10 {
        match bench.reconcile().await {
            Outcome::Poll(wait) => waits.push(wait),
            other => panic!("not as declared: {other:?}"),
        }
    }
    assert!(waits.iter().all(|it| (seconds(54)..=seconds(66)).contains(it)), "{waits:?}");
    assert!(waits.iter().any(|it| *it != waits[0]), "{waits:?}");
}

pub async fn is_what_a_hook_makes_of_it(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.managed.poll.hook = Some(Arc::new(|object, interval| {
        assert!(!object.name().is_empty());
        interval * 3
    }));
    bench.declare(annotated(&[(POLL_INTERVAL, "10s")])).await;
    assert_eq!(bench.reconcile().await, Outcome::Poll(seconds(30)));
}

pub async fn is_what_the_object_asks_for(subject: &Subject) {
    assert_eq!(asking(subject, "10m").await, Outcome::Poll(seconds(600)));
}

pub async fn is_never_less_than_allowed(subject: &Subject) {
    assert_eq!(asking(subject, "1s").await, Outcome::Poll(seconds(5)));
}

pub async fn is_as_usual_where_an_object_asks_for_nonsense(subject: &Subject) {
    for nonsense in ["soon", "-1s", "0s", ""] {
        assert_eq!(asking(subject, nonsense).await, polled(), "{nonsense:?}");
    }
}

/// An object that was found as declared twice, so that it is at rest.
async fn resting(subject: &Subject) -> Bench {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({})).await;
    assert_eq!(bench.reconcile().await, polled());
    let stored = bench.store.get(&bench.key).await.unwrap();
    assert!(bench.managed.at_rest.of(&stored).is_some());
    bench.forget();
    bench
}

pub async fn asks_once_and_writes_nothing_at_rest(subject: &Subject) {
    let bench = resting(subject).await;
    for _ in 0..3 {
        assert_eq!(bench.poll().await, polled());
        assert_eq!((bench.calls(), bench.writes(), bench.events()), (vec!["observe"], vec![], vec![]));
    }
}

pub async fn mends_what_it_finds_at_a_glance(subject: &Subject) {
    let bench = resting(subject).await;
    let name = bench.annotation(EXTERNAL_NAME).await.unwrap();
    bench.provider.put(&name, json!({"size": 9}));
    assert_eq!(bench.poll().await, polled());
    assert_eq!(bench.calls(), ["observe", "update", "observe"]);
    assert_eq!(bench.provider.things()[&name], json!({"size": 1}));
    assert_eq!(bench.conditions().await, all_well(1));
}

pub async fn says_what_failed_at_a_glance(subject: &Subject) {
    let bench = resting(subject).await;
    bench.provider.script(|script| script.observe.push_back(Err(boom())));
    assert_eq!(bench.poll().await, retry("observe failed: boom"));
    assert_eq!((bench.calls(), bench.writes()), (vec!["observe"], vec![Verb::Status]));
    assert_eq!(bench.poll().await, polled());
    assert_eq!(bench.conditions().await, all_well(1));
}

pub async fn is_a_whole_pass_over_what_was_edited(subject: &Subject) {
    let bench = resting(subject).await;
    bench.edit(json!({"spec": {"forProvider": {"size": 2}}})).await;
    assert_eq!(bench.poll().await, polled());
    assert_eq!(bench.calls(), ["observe", "update", "observe"]);
    assert_eq!(bench.conditions().await, all_well(2));
}

pub async fn takes_a_failing_goodbye_for_nothing(subject: &Subject) {
    let bench = resting(subject).await;
    bench.line.breaks(At::Disconnect, boom());
    assert_eq!(bench.poll().await, polled());
    assert_eq!((bench.calls(), bench.writes(), bench.events()), (vec!["observe"], vec![], vec![]));
}

pub async fn looks_at_everything_now_and_then(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({"spec": {"writeConnectionSecretToRef": {"name": "details"}}})).await;
    assert_eq!(bench.reconcile().await, polled());
    let key = ObjectKey::namespaced(secret(), bench.key.namespace.clone(), "details");
    // Nobody tells the reconciler: its watch has a gap.
    bench.direct.delete(&key, &Delete::default(), &user()).await.unwrap();
    for _ in 0..GLANCES_MAX {
        assert_eq!(bench.poll().await, polled());
    }
    assert!(matches!(bench.direct.get(&key).await, Err(Error::NotFound { .. })));
    assert_eq!(bench.poll().await, polled());
    assert!(bench.secret("details").await["endpoint"].is_string());
}
