//! `POST /events`: an agent in a target cluster says what has happened there. That only wakes: state is
//! read again by whoever is woken.

use std::collections::BTreeSet;

use concert_model::inventory::names;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::door::{Door, Event, NOT_YET};
use crate::kube::Body;
use crate::rest::call::answer;
use crate::rest::{Call, Error, Fields};

/// Events of one request: an agent that has more sends two.
const EVENTS_MAX: usize = 1000;
/// Longest name of anything.
const NAME_MAX: usize = 253;

pub(super) async fn take(door: &Door, call: &Call<'_>) -> Result<Response<Body>, Error> {
    let events = read(&call.body()?)?;
    let entries: BTreeSet<&str> = events.iter().map(|it| it.entry.as_str()).collect();
    for entry in &entries {
        door.permit(call, "create", "events", entry).await?;
    }
    if entries.is_empty() {
        door.permit(call, "create", "events", "").await?;
    }
    // What was taken would be lost.
    let woken = door.0.control.events(&events).ok_or_else(|| Error::unavailable(NOT_YET))?;
    Ok(answer(StatusCode::ACCEPTED, &json!({"accepted": events.len(), "woken": woken})))
}

fn read(body: &Value) -> Result<Vec<Event>, Error> {
    let mut fields = Fields::of(body)?;
    let list = fields.list("events");
    if list.is_none_or(|it| it.len() > EVENTS_MAX) && !fields.is_noted("events") {
        fields.refuse_unshown("events", "events must be a list of at most 1000");
    }
    fields.check()?;
    let read: Option<Vec<Event>> = list.unwrap_or_default().iter().map(event).collect();
    read.ok_or_else(|| Error::unprocessable("each event must have an entry, a group and a kind"))
}

fn event(value: &Value) -> Option<Event> {
    let text = |field: &str| match &value[field] {
        Value::Null => Some(String::new()),
        Value::String(text) if text.len() <= NAME_MAX => Some(text.clone()),
        _ => None,
    };
    let entry = text("entry").filter(|it| names::check_entry(it).is_ok())?;
    let kind = text("kind").filter(|it| !it.is_empty())?;
    Some(Event { entry, kind, group: text("group")?, namespace: text("namespace")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_an_entry_and_a_kind() {
        let good = json!({"events": [{"entry": "rt-1", "group": "a.b", "kind": "C", "namespace": "d",
            "name": "e", "verb": "update"}]});
        assert_eq!(read(&good).unwrap()[0].group, "a.b");
        let many = vec![json!({"entry": "rt-1", "kind": "C"}); EVENTS_MAX + 1];
        for bad in [
            json!({}),
            json!({"events": {}}),
            json!({"events": [{}]}),
            json!({"events": [{"entry": "rt-1"}]}),
            json!({"events": [{"entry": "A B", "kind": "C"}]}),
            json!({"events": [{"entry": "rt-1", "kind": 7}]}),
            json!({"events": many}),
        ] {
            assert!(read(&bad).is_err());
        }
    }
}
