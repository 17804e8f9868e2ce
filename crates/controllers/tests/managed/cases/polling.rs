//! How often an object is looked at that is as declared.

use std::sync::Arc;
use std::time::Duration;

use concert_controllers::managed::poll::Poll;
use concert_controllers::managed::vocabulary::annotation::POLL_INTERVAL;
use concert_engine::Outcome;
use serde_json::json;

use crate::bench::{Bench, POLL, annotated, polled};
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
