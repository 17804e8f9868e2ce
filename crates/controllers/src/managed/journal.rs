//! The intent journal of creates, kept in annotations of the object itself.
//!
//! Before the call: `external-create-pending` with a token. After it: `external-create-succeeded` or
//! `external-create-failed`, and the token goes. What is found open after a crash may have happened.

use std::time::Duration;

use concert_model::{Object, Patch, Timestamp, time};
use concert_provider::Token;
use serde_json::{Value, json};

use super::vocabulary::annotation;

/// Where the last create of an object stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// None is under way.
    Closed,
    /// One was begun whose outcome nobody wrote down.
    Open {
        /// By which its outcome can be asked for; none if somebody else than us began it.
        token: Option<Token>,
        /// When it was begun.
        since: Option<Timestamp>,
    },
}

/// Where the last create of `object` stands.
///
/// Our own creates are open exactly as long as their token stands there: times have a resolution of
/// one second, and a create may begin in the second in which the one before it failed. A person who
/// takes the pending annotation away closes it.
pub fn intent(object: &Object) -> Intent {
    let stamp = |name| object.annotation(name).and_then(time::parse);
    if object.annotation(annotation::CREATE_PENDING).is_none() {
        return Intent::Closed;
    }
    let pending = stamp(annotation::CREATE_PENDING);
    let token = object.annotation(annotation::CREATE_TOKEN).map(|text| Token(text.into()));
    let answered = stamp(annotation::CREATE_SUCCEEDED).max(stamp(annotation::CREATE_FAILED));
    if token.is_some() || pending > answered {
        return Intent::Open { token, since: pending };
    }
    Intent::Closed
}

/// Writes the intent down on `object`.
pub fn begin(object: &mut Object, token: &Token, now: Timestamp) {
    object.set_annotation(annotation::CREATE_PENDING, &time::seconds(now));
    object.set_annotation(annotation::CREATE_TOKEN, &token.0);
}

/// How a create ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It happened.
    Succeeded,
    /// It certainly did not.
    Failed,
}

impl Ending {
    fn annotation(self) -> &'static str {
        match self {
            Ending::Succeeded => annotation::CREATE_SUCCEEDED,
            Ending::Failed => annotation::CREATE_FAILED,
        }
    }
}

/// When a create of `object` ended. Never before it began: that may have been by another clock, and who
/// ends it may be behind. An answer that seems older than the question would leave it open for ever.
fn ended(object: &Object, now: Timestamp) -> String {
    let begun = object.annotation(annotation::CREATE_PENDING).and_then(time::parse);
    time::seconds(begun.map_or(now, |begun| begun.max(now)))
}

/// Closes the intent on `object`, to be written with everything else.
pub fn close(object: &mut Object, ending: Ending, now: Timestamp) {
    object.set_annotation(ending.annotation(), &ended(object, now));
    object.remove_annotation(annotation::CREATE_TOKEN);
}

/// Closes the intent of `token` wherever the object stands by now, unless somebody else has closed it
/// already: a fact that holds whatever else was written meanwhile. `annotations` go with it.
pub fn closing<'a>(
    object: &Object,
    token: &Token,
    ending: Ending,
    now: Timestamp,
    annotations: impl Iterator<Item = (&'a str, &'a str)>,
) -> Patch {
    let place = |name: &str| format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1"));
    let add = |name: &str, value: &str| json!({"op": "add", "path": place(name), "value": value});
    let test = |path: String, value: &str| json!({"op": "test", "path": path, "value": value});
    let uid = object.uid().map(|uid| uid.to_string()).unwrap_or_default();
    let mut operations = vec![
        test("/metadata/uid".into(), &uid),
        test(place(annotation::CREATE_TOKEN), &token.0),
        add(ending.annotation(), &ended(object, now)),
    ];
    operations.extend(annotations.map(|(name, value)| add(name, value)));
    operations.push(json!({"op": "remove", "path": place(annotation::CREATE_TOKEN)}));
    Patch::json(Value::Array(operations)).expect("a handful of well-formed operations")
}

/// Whether the external thing was made so recently that it may not be visible yet.
pub fn is_within_grace(object: &Object, grace: Duration, now: Timestamp) -> bool {
    let made = object.annotation(annotation::CREATE_SUCCEEDED).and_then(time::parse);
    // A success in the future is one by a clock that is ahead of ours: recent all the same.
    made.is_some_and(|made| !Duration::try_from(now.duration_since(made)).is_ok_and(|age| age >= grace))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn object(annotations: &[(&str, &str)]) -> Object {
        let mut object =
            Object::from_value(json!({"apiVersion": "example.com/v1", "kind": "Thing"})).unwrap();
        annotations.iter().for_each(|(name, value)| object.set_annotation(name, value));
        object
    }

    fn token() -> Token {
        Token("t-1".into())
    }

    #[test]
    fn a_create_is_open_until_its_outcome_is_written() {
        let mut object = object(&[]);
        assert_eq!(intent(&object), Intent::Closed);
        begin(&mut object, &token(), at(10));
        assert_eq!(intent(&object), Intent::Open { token: Some(token()), since: Some(at(10)) });
        close(&mut object, Ending::Succeeded, at(10));
        assert_eq!(intent(&object), Intent::Closed);
    }

    #[test]
    fn a_create_that_ends_by_a_clock_behind_that_of_its_beginning_is_closed() {
        for ending in [Ending::Succeeded, Ending::Failed] {
            let mut object = object(&[]);
            begin(&mut object, &token(), at(600));
            let patch = closing(&object, &token(), ending, at(10), std::iter::empty());
            assert!(format!("{patch:?}").contains(&time::seconds(at(600))), "{patch:?}");
            close(&mut object, ending, at(10));
            assert_eq!(intent(&object), Intent::Closed);
        }
    }

    #[test]
    fn a_create_in_the_second_of_the_failure_before_it_is_open() {
        let mut object = object(&[]);
        begin(&mut object, &token(), at(10));
        close(&mut object, Ending::Failed, at(10));
        begin(&mut object, &Token("t-2".into()), at(10));
        assert!(matches!(intent(&object), Intent::Open { .. }));
    }

    #[test]
    fn a_create_that_another_program_began_is_open_by_its_times() {
        let pending = (annotation::CREATE_PENDING, "2026-01-01T00:00:10Z");
        let open = Intent::Open { token: None, since: time::parse(pending.1) };
        assert_eq!(intent(&object(&[pending])), open);
        let failed = |at| object(&[pending, (annotation::CREATE_FAILED, at)]);
        assert_eq!(intent(&failed("2026-01-01T00:00:09Z")), open);
        assert_eq!(intent(&failed("2026-01-01T00:00:10Z")), Intent::Closed);
    }

    #[test]
    fn a_person_closes_it_by_taking_pending_away() {
        assert_eq!(intent(&object(&[(annotation::CREATE_TOKEN, "t-1")])), Intent::Closed);
    }

    #[test]
    fn grace_counts_from_the_last_success() {
        let grace = Duration::from_secs(30);
        let object = object(&[(annotation::CREATE_SUCCEEDED, &time::seconds(at(100)))]);
        assert!(is_within_grace(&object, grace, at(129)));
        assert!(!is_within_grace(&object, grace, at(130)));
        assert!(!is_within_grace(&self::object(&[]), grace, at(0)));
    }

    #[test]
    fn a_closing_patch_applies_only_to_its_own_intent() {
        let mut object = object(&[]);
        object.set_metadata("uid", json!("u"));
        begin(&mut object, &token(), at(10));
        let name = [(annotation::EXTERNAL_NAME, "bkt-7")];
        let patch = closing(&object, &token(), Ending::Succeeded, at(11), name.into_iter());
        let done = Object::from_value(patch.apply(&object.clone().into_value()).unwrap()).unwrap();
        assert_eq!(
            (intent(&done), done.annotation(annotation::EXTERNAL_NAME)),
            (Intent::Closed, Some("bkt-7"))
        );
        let other = closing(&object, &Token("t-2".into()), Ending::Failed, at(11), [].into_iter());
        assert!(other.apply(&object.into_value()).is_err());
    }
}
