//! Answers, taken apart.

use concert_model::Encoded;

use crate::contract::{Event, Events, Result};
use crate::error::Error;

/// The next event of a watch that goes on.
pub async fn next(events: &mut Events) -> Event {
    match events.next().await {
        Some(Ok(event)) => event,
        Some(Err(error)) => panic!("the watch failed: {error}"),
        None => panic!("the watch ended"),
    }
}

/// The next event that is about an object.
pub async fn next_change(events: &mut Events) -> Event {
    loop {
        let event = next(events).await;
        if event.object().is_some() {
            return event;
        }
    }
}

/// The next event about an object, as `A name`, `M name` or `D name`.
pub(super) async fn next_word(events: &mut Events) -> String {
    word(&next_change(events).await)
}

/// An event as `A name`, `M name`, `D name` or `B`.
pub(super) fn word(event: &Event) -> String {
    let name = event.object().map(|object| object.key().name.to_string()).unwrap_or_default();
    match event {
        Event::Added(_) => format!("A {name}"),
        Event::Modified(_) => format!("M {name}"),
        Event::Deleted(_) => format!("D {name}"),
        Event::Bookmark { .. } => "B".to_owned(),
    }
}

/// The object of the next event, which says that it is gone.
pub async fn deleted(events: &mut Events) -> Encoded {
    match next_change(events).await {
        Event::Deleted(object) => object,
        other => panic!("not a deletion: {other:?}"),
    }
}

/// The fields that an invalid request is told about, each once: one may break several rules.
pub fn invalid_fields<T>(result: Result<T>) -> Vec<String> {
    match result {
        Err(Error::Invalid { errors, .. }) => {
            assert!(!errors.is_empty(), "an invalid request is told what is wrong");
            let mut fields: Vec<String> = errors.iter().map(|error| error.field.to_string()).collect();
            fields.dedup();
            fields
        }
        Err(error) => panic!("not refused as invalid: {error}"),
        Ok(_) => panic!("not refused"),
    }
}

/// Asserts that a result is one kind of error.
macro_rules! refused {
    ($result:expr, $error:pat $(if $guard:expr)?) => {
        match $result {
            Err($error) $(if $guard)? => {}
            Err(error) => panic!("refused for another reason: {error}"),
            Ok(_) => panic!("not refused"),
        }
    };
}
pub(super) use refused;
