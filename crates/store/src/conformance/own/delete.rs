//! Deletion that is asked for again, where no collector runs beside the case.

use crate::conformance::Subject;
use crate::contract::{Delete, Deleted, Propagation};

fn asking(propagation: Propagation) -> Delete {
    Delete { propagation, ..Delete::default() }
}

/// Without a word on the policy, the one that was asked for stays.
pub async fn asked_for_again_without_a_policy_keeps_it(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create_finalized("a", &["a.dev/f"]).await;
    for propagation in [Propagation::Orphan, Propagation::Foreground] {
        let first = widgets.try_delete("a", &asking(propagation)).await.unwrap();
        let again = widgets.try_delete("a", &Delete::default()).await.unwrap();
        assert_eq!(first, again);
        assert!(again.into_object().decode().finalizers().len() == 2);
    }
}

/// What only the collector held goes when nothing is left to the collector.
pub async fn asked_for_again_lets_go_of_what_only_the_collector_held(subject: &Subject) {
    let widgets = subject.widgets().await;
    widgets.create("a", serde_json::json!({"n": 1})).await;
    let held = widgets.try_delete("a", &asking(Propagation::Foreground)).await.unwrap();
    assert!(matches!(held, Deleted::Waiting(_)));
    let gone = widgets.try_delete("a", &asking(Propagation::Background)).await.unwrap();
    let Deleted::Gone(last) = gone else { panic!("still there") };
    assert!(last.decode().finalizers().is_empty());
    assert!(widgets.is_gone("a").await);
}
