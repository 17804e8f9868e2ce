//! How a pass ends: what is said of the object, and when it is looked at again.

use std::fmt::Write as _;
use std::time::Duration;

use concert_engine::Wait;
use concert_model::condition::{Condition, Status};
use concert_provider::{Change, Class, Error};

use super::decide::Progress;
use super::vocabulary::{annotation, condition, event, message, reason};

/// The end of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Conditions to set; those of other types stay.
    pub conditions: Vec<Condition>,
    /// What to tell in an event.
    pub event: Option<Box<Told>>,
    /// When to look again.
    pub next: Next,
    /// Whether a request to reconcile now has been answered by this pass.
    pub is_answer: bool,
}

/// An event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Whether something is wrong.
    pub is_warning: bool,
    /// One of [`event`].
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// When to look again.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// When the object changes.
    OnChange,
    /// At the next poll.
    Poll,
    /// At a poll in the far future, after a failure: nothing is expected to change by itself.
    SlowPoll(String),
    /// Soon, with back-off: nothing failed, but something is not there yet.
    Requeue(String),
    /// After exactly this time; the back-off stays as it is.
    After(String, Duration),
    /// When one of these changes.
    WaitFor(String, Vec<Wait>),
    /// With back-off, after a failure.
    Retry(String),
    /// With back-off, and without a word: somebody else was faster.
    Conflict,
}

/// Shortest wait that a provider may ask for. Nothing outside changes faster, and no back-off slows down who
/// asks for less again and again.
const WAIT_MIN: Duration = Duration::from_millis(100);

/// Longest diff in a condition; the rest is said to be left out.
const DIFF_BYTES_MAX: usize = 2_048;

fn synced() -> Condition {
    Condition::new(condition::SYNCED, Status::True, reason::RECONCILE_SUCCESS, "")
}

fn not_synced(text: &str) -> Condition {
    Condition::new(condition::SYNCED, Status::False, reason::RECONCILE_ERROR, text)
}

fn not_ready(why: &str, text: &str) -> Condition {
    Condition::new(condition::READY, Status::False, why, text)
}

fn up_to_date(status: Status, why: &str, text: &str) -> Condition {
    Condition::new(condition::UP_TO_DATE, status, why, text)
}

fn warning(reason: &'static str, text: &str) -> Option<Box<Told>> {
    Some(Box::new(Told { is_warning: true, reason, message: text.to_owned() }))
}

impl Verdict {
    fn new(conditions: Vec<Condition>, event: Option<Box<Told>>, next: Next) -> Self {
        Self { conditions, event, next, is_answer: true }
    }

    /// Nothing to say and nothing to do.
    pub fn nothing() -> Self {
        Self { is_answer: false, ..Self::new(Vec::new(), None, Next::OnChange) }
    }

    /// Somebody else was faster.
    pub fn conflict() -> Self {
        Self { is_answer: false, ..Self::new(Vec::new(), None, Next::Conflict) }
    }

    /// Nothing is done on request.
    pub fn paused(is_deleting: bool) -> Self {
        let text = if is_deleting {
            format!(
                "deletion waits until the pause ends, or until the annotation {}: \"true\" allows it",
                annotation::DELETE_WHILE_PAUSED
            )
        } else {
            String::new()
        };
        let conditions = vec![
            Condition::new(condition::SYNCED, Status::False, reason::RECONCILE_PAUSED, text),
            up_to_date(Status::Unknown, reason::RECONCILE_PAUSED, ""),
        ];
        let told = Told {
            is_warning: false,
            reason: event::PAUSED,
            message: "Reconciliation is paused via the pause annotation or an empty list of policies".into(),
        };
        Self { is_answer: false, ..Self::new(conditions, Some(Box::new(told)), Next::OnChange) }
    }

    /// The policies make no sense.
    pub fn invalid_policy(text: &str) -> Self {
        Self::new(vec![not_synced(text)], warning(event::INVALID_POLICY, text), Next::OnChange)
    }

    /// The provider failed in what `prefix` says.
    fn failed(prefix: &str, told: &'static str, error: &Error, more: Vec<Condition>) -> Self {
        if error.class == Class::Conflict {
            return Self::conflict();
        }
        // Whatever was asked for, it is the connection that does not work.
        let is_connection = matches!(error.class, Class::Denied | Class::NotServed);
        let (prefix, told) = if is_connection { ("connect", event::CANNOT_CONNECT) } else { (prefix, told) };
        let text = format!("{prefix} failed: {}", error.message);
        let next = match (error.class, wait(error.retry_after)) {
            (Class::Terminal | Class::NeedsHuman, _) => Next::SlowPoll(text.clone()),
            (Class::Throttled, None) => Next::Requeue(text.clone()),
            (_, Some(after)) => Next::After(text.clone(), after),
            (_, None) => Next::Retry(text.clone()),
        };
        let mut conditions = vec![not_synced(&text)];
        conditions.extend(more);
        Self::new(conditions, warning(told, &text), next)
    }

    /// The provider could not be reached for this object.
    pub fn connect_failed(error: &Error) -> Self {
        Self::failed("connect", event::CANNOT_CONNECT, error, Vec::new())
    }

    /// The account could not be found out, or is not there yet.
    pub fn config_failed(text: &str, waits: Vec<Wait>) -> Self {
        let text = format!("connect failed: {text}");
        let next =
            if waits.is_empty() { Next::Retry(text.clone()) } else { Next::WaitFor(text.clone(), waits) };
        Self::new(vec![not_synced(&text)], warning(event::CANNOT_CONNECT, &text), next)
    }

    /// The external thing could not be looked at.
    pub fn observe_failed(error: &Error) -> Self {
        Self::failed("observe", event::CANNOT_OBSERVE, error, Vec::new())
    }

    /// What became of a create could not be found out now.
    pub fn lookup_failed(error: &Error) -> Self {
        let text = format!("cannot look up what became of the last create: {}", error.message);
        let error = Error { message: text, ..error.clone() };
        let creating = not_ready(reason::CREATING, "");
        Self::failed("observe", event::CANNOT_INITIALIZE, &error, vec![creating])
    }

    /// Nobody but a person can tell what became of a create.
    pub fn create_in_doubt() -> Self {
        let text = format!(
            "{}; if it was made, first set {} to its identity",
            message::CREATE_IN_DOUBT,
            annotation::EXTERNAL_NAME
        );
        let conditions = vec![not_ready(reason::CREATING, ""), not_synced(&text)];
        // The thing may become visible under the name that the object has.
        Self::new(conditions, warning(event::CANNOT_INITIALIZE, &text), Next::Poll)
    }

    /// A create of a process that has died may still be on its way.
    pub fn create_under_way() -> Self {
        let text = "waiting until an earlier create can no longer be under way";
        Self::new(vec![not_ready(reason::DELETING, text)], None, Next::Requeue(text.into()))
    }

    /// References could not be resolved.
    pub fn references_failed(text: &str, waits: Vec<Wait>) -> Self {
        let next =
            if waits.is_empty() { Next::Retry(text.into()) } else { Next::WaitFor(text.into(), waits) };
        Self::new(vec![not_synced(text)], warning(event::CANNOT_RESOLVE, text), next)
    }

    /// The external thing is not there, and that is not for us to change.
    pub fn absent(why: String) -> Self {
        let text = format!("observe failed: {why}");
        Self::new(vec![not_synced(&text)], warning(event::CANNOT_OBSERVE, &text), Next::Poll)
    }

    /// It was made a moment ago and cannot be seen yet.
    pub fn pending() -> Self {
        let told = Told { is_warning: false, reason: event::PENDING, message: message::PENDING.into() };
        let conditions = vec![not_ready(reason::CREATING, message::PENDING)];
        Self::new(conditions, Some(Box::new(told)), Next::Requeue(message::PENDING.into()))
    }

    /// The same, while the object is being deleted.
    pub fn pending_deletion() -> Self {
        Self { conditions: vec![not_ready(reason::DELETING, message::PENDING)], ..Self::pending() }
    }

    /// Others hold the object back.
    pub fn waits_for_finalizers(others: &[String]) -> Self {
        let text = format!("waiting for other finalizers: {}", others.join(", "));
        // Their going is a change of the object that counts while it is being deleted.
        Self::new(vec![not_ready(reason::DELETING, &text), synced()], None, Next::Poll)
    }

    /// Its making has begun.
    pub fn creating(progress: &Progress) -> Self {
        let conditions =
            vec![not_ready(reason::CREATING, progress.text.as_deref().unwrap_or_default()), synced()];
        Self::new(conditions, None, again(progress, message::PENDING))
    }

    /// It is to be made, and this pass has too little time left to see how that ends.
    pub fn out_of_time() -> Self {
        let text = "too little time was left to create it: the provider is slow to say what is there";
        Self::new(vec![not_ready(reason::CREATING, text)], None, Next::Requeue(text.into()))
    }

    /// It could not be made, or nobody knows.
    pub fn create_failed(error: &Error) -> Self {
        Self::failed("create", event::CANNOT_CREATE, error, vec![not_ready(reason::CREATING, "")])
    }

    /// Its going has begun.
    pub fn deleting(progress: &Progress) -> Self {
        let conditions =
            vec![not_ready(reason::DELETING, progress.text.as_deref().unwrap_or_default()), synced()];
        Self::new(conditions, None, again(progress, "waiting until the external resource is gone"))
    }

    /// It could not be removed.
    pub fn delete_failed(error: &Error) -> Self {
        Self::failed("delete", event::CANNOT_DELETE, error, vec![not_ready(reason::DELETING, "")])
    }

    /// All is as declared.
    pub fn up_to_date() -> Self {
        let matched = up_to_date(Status::True, reason::OBSERVE_MATCHED, "");
        Self::new(vec![synced(), matched], None, Next::Poll)
    }

    /// It is not as declared, and that is not for us to change.
    pub fn update_restricted(diff: &str) -> Self {
        let restricted = up_to_date(Status::False, reason::UPDATE_RESTRICTED, diff);
        Self::new(vec![synced(), restricted], None, Next::Poll)
    }

    /// Its changing has begun.
    pub fn updating(diff: &str, progress: &Progress) -> Self {
        let requested = up_to_date(Status::False, reason::UPDATE_REQUESTED, diff);
        let next = match wait(progress.again_after) {
            Some(after) => Next::After("waiting until the update is visible".into(), after),
            None => Next::Poll,
        };
        Self::new(vec![synced(), requested], None, next)
    }

    /// It was made in this pass and is not yet as declared: the next pass sees to that.
    pub fn looks_again(diff: &str) -> Self {
        let requested = up_to_date(Status::False, reason::UPDATE_REQUESTED, diff);
        Self::new(vec![synced(), requested], None, Next::Requeue("not yet as declared".into()))
    }

    /// It could not be changed.
    pub fn update_failed(error: &Error, diff: &str) -> Self {
        let failed = up_to_date(Status::False, reason::UPDATE_FAILED, diff);
        Self::failed("update", event::CANNOT_UPDATE, error, vec![failed])
    }

    /// Connection details could not be written.
    pub fn publish_failed(text: &str) -> Self {
        Self::new(vec![not_synced(text)], warning(event::CANNOT_PUBLISH, text), Next::Retry(text.into()))
    }

    /// The object itself could not be written.
    pub fn write_failed(text: &str, is_creating: bool) -> Self {
        let text = format!("cannot update managed resource: {text}");
        let mut conditions = vec![not_synced(&text)];
        if is_creating {
            conditions.push(not_ready(reason::CREATING, ""));
        }
        Self::new(conditions, warning(event::CANNOT_UPDATE_MANAGED, &text), Next::Retry(text.clone()))
    }

    /// The finalizer could not be taken away.
    pub fn finalize_failed(text: &str) -> Self {
        let conditions = vec![not_synced(text), not_ready(reason::DELETING, "")];
        Self::new(conditions, None, Next::Retry(text.into()))
    }
}

/// How long to wait at a provider's word. One that asks for no time at all does not say how long.
fn wait(asked: Option<Duration>) -> Option<Duration> {
    asked.filter(|it| !it.is_zero()).map(|it| it.max(WAIT_MIN))
}

fn again(progress: &Progress, why: &str) -> Next {
    match wait(progress.again_after) {
        Some(after) => Next::After(why.into(), after),
        None => Next::Requeue(why.into()),
    }
}

/// The diff for people: one line per field, sensitive values left out.
pub fn diff_text(diff: &[Change]) -> String {
    let mut text = String::new();
    for change in diff {
        let line = change_text(change);
        if text.len() + line.len() > DIFF_BYTES_MAX {
            let _ = write!(text, "\n(and more)");
            break;
        }
        let _ = write!(text, "{}{line}", if text.is_empty() { "" } else { "\n" });
    }
    text
}

fn change_text(change: &Change) -> String {
    let shown = |value: &Option<serde_json::Value>| match value {
        _ if change.is_sensitive => "(sensitive)".to_owned(),
        None => "(none)".to_owned(),
        Some(value) => value.to_string(),
    };
    let replaces = if change.replaces { " (replaces it)" } else { "" };
    format!("{}: {} -> {}{replaces}", change.path, shown(&change.from), shown(&change.to))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sensitive_values_are_not_shown_and_long_diffs_are_cut() {
        let change = |path: &str, is_sensitive: bool| Change {
            path: path.into(),
            from: Some(json!("old")),
            to: None,
            replaces: !is_sensitive,
            is_sensitive,
        };
        assert_eq!(
            diff_text(&[change("spec.a", false), change("spec.b", true)]),
            "spec.a: \"old\" -> (none) (replaces it)\nspec.b: (sensitive) -> (sensitive)"
        );
        let many: Vec<Change> = (0..1000).map(|n| change(&format!("spec.field{n}"), true)).collect();
        let text = diff_text(&many);
        assert!(text.len() < DIFF_BYTES_MAX + 20 && text.ends_with("(and more)"));
    }

    #[test]
    fn conflicts_are_silent() {
        let verdict = Verdict::observe_failed(&Error::new(Class::Conflict, "somebody wrote"));
        assert_eq!((verdict.conditions.len(), verdict.event, verdict.next), (0, None, Next::Conflict));
    }

    #[test]
    fn quota_is_waited_out_exactly_and_is_no_failure() {
        let error = Error::new(Class::Throttled, "slow down").after(Duration::from_secs(7));
        let verdict = Verdict::create_failed(&error);
        assert_eq!(verdict.next, Next::After("create failed: slow down".into(), Duration::from_secs(7)));
    }

    #[test]
    fn no_time_to_wait_is_no_word_of_when_and_a_moment_is_waited_at_least() {
        let failed = |class, after| Verdict::create_failed(&Error::new(class, "boom").after(after)).next;
        let text = || "create failed: boom".to_owned();
        assert_eq!(failed(Class::Throttled, Duration::ZERO), Next::Requeue(text()));
        assert_eq!(failed(Class::Transient, Duration::ZERO), Next::Retry(text()));
        assert_eq!(failed(Class::Transient, Duration::from_nanos(1)), Next::After(text(), WAIT_MIN));
        let progress = |after| Progress { text: None, again_after: Some(after) };
        let (none, moment) = (progress(Duration::ZERO), progress(Duration::from_nanos(1)));
        assert!(matches!(Verdict::creating(&none).next, Next::Requeue(_)));
        assert!(matches!(Verdict::deleting(&none).next, Next::Requeue(_)));
        assert_eq!(Verdict::updating("", &none).next, Next::Poll);
        for verdict in
            [Verdict::creating(&moment), Verdict::deleting(&moment), Verdict::updating("", &moment)]
        {
            assert!(matches!(&verdict.next, Next::After(_, after) if *after == WAIT_MIN), "{verdict:?}");
        }
    }
}
