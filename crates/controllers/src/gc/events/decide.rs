//! Whether an event has expired. Touches nothing: `run.rs` has the hands.

use std::time::Duration;

use concert_model::time::{self, SignedDuration};
use concert_model::{Encoded, Timestamp};
use serde::Deserialize;

/// Where an event says when it was seen, in its old and in its new form.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Times {
    last_timestamp: Option<String>,
    event_time: Option<String>,
    series: Option<Series>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Series {
    last_observed_time: Option<String>,
}

/// Whether an event was last seen more than `lifetime` before `now`. Opens only those that are old
/// enough for that by their head.
pub fn is_expired(event: &Encoded, lifetime: Duration, now: Timestamp) -> bool {
    let lifetime = SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX);
    let is_old = |seen: Timestamp| now.duration_since(seen) > lifetime;
    is_old(event.head().created_at) && is_old(last_seen(event, now))
}

/// When an event was last seen. Times that are still to come were made up, and would never pass.
fn last_seen(event: &Encoded, now: Timestamp) -> Timestamp {
    let times: Times = serde_json::from_slice(event.body().rest()).unwrap_or_default();
    let series = times.series.and_then(|it| it.last_observed_time);
    let told = [times.last_timestamp, times.event_time, series].into_iter().flatten();
    let past = told.filter_map(|text| time::parse(&text)).filter(|seen| *seen <= now);
    past.fold(event.head().created_at, Timestamp::max)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use concert_model::{Body, Head, Object, ResourceVersion, Uid};
    use serde_json::{Value, json};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn event(created: i64, times: Value) -> Encoded {
        let mut whole =
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a", "namespace": "b"}});
        whole.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
        let object = Object::from_value(whole).unwrap();
        let head = Head {
            version: "v1".into(),
            uid: Uid::from_random(1),
            generation: 0,
            created_at: at(created),
            deleted_at: None,
            labels: Default::default(),
            owners: Vec::new(),
            fields: Default::default(),
        };
        let body = Body::encode(object.key().unwrap(), head, &object);
        Encoded::new(Arc::new(body), ResourceVersion("1".into()))
    }

    #[test]
    fn an_event_lives_for_its_lifetime_after_it_was_made() {
        let event = event(1000, json!({}));
        assert!(!is_expired(&event, HOUR, at(1000 + 3600)));
        assert!(is_expired(&event, HOUR, at(1000 + 3601)));
    }

    #[test]
    fn being_seen_again_keeps_it() {
        let again = time::seconds(at(3000));
        for times in [
            json!({"lastTimestamp": again}),
            json!({"eventTime": again, "lastTimestamp": null}),
            json!({"series": {"lastObservedTime": again}}),
        ] {
            let event = event(1000, times);
            assert!(!is_expired(&event, HOUR, at(3000 + 3600)));
            assert!(is_expired(&event, HOUR, at(3000 + 3601)));
        }
    }

    #[test]
    fn times_that_make_no_sense_do_not_count() {
        for times in [
            json!({"lastTimestamp": "9999-01-01T00:00:00Z"}),
            json!({"lastTimestamp": "yesterday"}),
            json!({"series": "often", "lastTimestamp": 7}),
        ] {
            assert!(is_expired(&event(1000, times), HOUR, at(1000 + 3601)));
        }
    }
}
