//! A person asks for a pass now.

use concert_controllers::managed::vocabulary::annotation::{PAUSED, RECONCILE_REQUESTED_AT};
use serde_json::json;

use crate::bench::{Bench, boom, on_change, polled, retry};
use crate::faulty::Verb;
use crate::stores::Subject;

async fn handled(bench: &Bench) -> Option<String> {
    bench.get().await.status()["lastHandledReconcileAt"].as_str().map(str::to_owned)
}

pub async fn is_answered_once(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({})).await;
    for token in ["monday", "tuesday"] {
        bench.annotate(RECONCILE_REQUESTED_AT, Some(token)).await;
        assert_eq!(bench.reconcile().await, polled());
        assert_eq!(handled(&bench).await.as_deref(), Some(token));
        assert_eq!(
            (bench.events(), bench.writes()),
            (vec!["ReconcileRequestHandled".to_owned()], vec![Verb::Status])
        );
        assert_eq!(bench.reconcile().await, polled());
        assert_eq!((bench.events(), bench.writes()), (vec![], vec![]));
    }
}

pub async fn is_answered_by_a_pass_that_fails(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({})).await;
    bench.annotate(RECONCILE_REQUESTED_AT, Some("monday")).await;
    bench.provider.script(|script| script.observe.push_back(Err(boom())));
    assert_eq!(bench.reconcile().await, retry("observe failed: boom"));
    assert_eq!(handled(&bench).await.as_deref(), Some("monday"));
}

pub async fn is_not_answered_while_paused(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({})).await;
    bench.annotate(RECONCILE_REQUESTED_AT, Some("monday")).await;
    bench.annotate(PAUSED, Some("true")).await;
    assert_eq!(bench.reconcile().await, on_change());
    assert_eq!(handled(&bench).await, None);
    bench.annotate(PAUSED, None).await;
    assert_eq!(bench.reconcile().await, polled());
    assert_eq!(handled(&bench).await.as_deref(), Some("monday"));
}
