use concert_engine::Phase;
use concert_model::{GroupKind, ObjectKey};
use serde_json::json;

use super::scene::{Scene, after, bucket, network, not_synced, time};
use crate::explain::{Explanation, Facts, Relation, State, Told, explain};

fn failing() -> Facts {
    let claim = ObjectKey::namespaced(GroupKind::new("cloud.concert.dev", "Storage"), "default", "site");
    let text = "create failed: quota exceeded";
    let mut facts = bucket(&[not_synced(text)])
        .with_item(Phase::BackingOff { until: after(42) })
        .failing(3, text)
        .with_related(Relation::Reference, network(), State::Ready)
        .with_related(Relation::Owner, claim, State::NotReady("Waiting".into()));
    let event = json!({"type": "Warning", "reason": "CannotCreateExternalResource", "message": text, "count": 3,
        "lastTimestamp": "2026-11-15T11:59:30Z", "firstTimestamp": "2026-11-15T11:50:00Z"});
    facts.events.push(Told::of(&event).unwrap());
    facts
}

#[test]
fn the_chain_is_below_the_sentence() {
    assert_eq!(
        explain(&failing()).to_string(),
        "Bucket default/a is not ready: create failed: quota exceeded (provider example, attempt 3, next try in 42s).
  owner      Storage default/site          not ready: Waiting
  reference  Network default/n             ready
  provider   example                       up
  item       managed/buckets               backing off, attempt 3, next run in 42s: create failed: quota exceeded
  warning    CannotCreateExternalResource  30s ago, 3 times: create failed: quota exceeded
"
    );
}

#[test]
fn programs_get_it_as_json() {
    let explanation = explain(&failing());
    let value = serde_json::to_value(&explanation).unwrap();
    assert_eq!(value["isReady"], false);
    assert_eq!(value["nextTry"], "2026-11-15T12:00:42Z");
    assert_eq!(
        value["chain"][1],
        json!({"relation": "reference", "name": "Network default/n", "state": "ready"})
    );
    assert_eq!(serde_json::from_value::<Explanation>(value).unwrap(), explanation);
    assert_eq!(explanation.next_try, Some(time("2026-11-15T12:00:42Z")));
}

#[test]
fn events_without_any_time_are_left_out() {
    assert_eq!(Told::of(&json!({"reason": "Odd"})), None);
    let new = json!({"reason": "New", "eventTime": "2026-11-15T11:59:30.000001Z", "series": {"count": 7,
        "lastObservedTime": "2026-11-15T11:59:40Z"}});
    let told = Told::of(&new).unwrap();
    assert_eq!((told.count, told.at), (7, time("2026-11-15T11:59:40Z")));
}
