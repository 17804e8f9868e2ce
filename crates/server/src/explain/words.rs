//! Pieces of sentences.

use std::time::Duration;

use concert_model::{Object, ObjectKey};

use super::facts::{Facts, Related, Service, State};

/// Longest text of somebody else in a sentence.
const QUOTE_CHARS_MAX: usize = 300;

/// `Bucket default/a`.
pub(super) fn subject(object: &Object) -> String {
    place(object.kind(), object.namespace(), object.name())
}

/// `Network default/n`.
pub(super) fn key(key: &ObjectKey) -> String {
    place(&key.kind.kind, &key.namespace, &key.name)
}

fn place(kind: &str, namespace: &str, name: &str) -> String {
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

/// A time span for people, at most two units: `42s`, `3m5s`, `2h`, `3d4h`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts =
        [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(parts.len() - 1);
    let shown = parts.iter().skip(first).take(2);
    let text: String =
        shown.filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// `in 42s`; `now` for what is due.
pub(super) fn within(time: Duration) -> String {
    // The last part of a second is a second to whoever waits.
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    if seconds == 0 { "now".to_owned() } else { format!("in {}", span(Duration::from_secs(seconds))) }
}

/// Somebody else's words, fit for the middle of a sentence: one line, bounded, without a final period.
pub(super) fn quote(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    let text = lines.join("; ");
    let text = text.trim_end_matches('.');
    match text.char_indices().nth(QUOTE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// ` (why)`, or nothing.
pub(super) fn because(why: &str) -> String {
    let why = quote(why);
    if why.is_empty() { why } else { format!(" ({why})") }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn enumerate(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// `Network default/n, which does not exist`.
pub(super) fn waited_for(related: &Related) -> String {
    let name = key(&related.key);
    match &related.state {
        State::Missing => format!("{name}, which does not exist"),
        State::Deleting => format!("{name}, which is being deleted"),
        State::NotReady(why) => format!("{name}, which is not ready{}", because(why)),
        State::Unknown | State::Present | State::Ready => name,
    }
}

/// Who is to blame, which attempt, when the next try is: ` (provider example, attempt 3, next try in 42s)`.
pub(super) fn circumstances(facts: &Facts) -> String {
    let mut parts = Vec::new();
    let item = facts.item();
    match (&facts.service, item) {
        (Service::Up { provider } | Service::Down { provider, .. }, _) => {
            parts.push(format!("provider {provider}"));
        }
        (_, Some(item)) => parts.push(format!("controller {}", item.controller)),
        _ => {}
    }
    if let Some(item) = item {
        if item.state.attempt > 0 {
            parts.push(format!("attempt {}", item.state.attempt));
        }
        if let Some(due) = item.state.next_due {
            parts.push(format!("next try {}", within(facts.until(due))));
        }
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        for (seconds, text) in [
            (0, "0s"),
            (42, "42s"),
            (60, "1m"),
            (185, "3m5s"),
            (7_200, "2h"),
            (7_265, "2h1m"),
            (273_900, "3d4h"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
        assert_eq!(within(Duration::from_millis(41_200)), "in 42s");
    }

    #[test]
    fn quotes_are_one_bounded_line() {
        assert_eq!(quote("a\n  b.\n"), "a; b");
        assert_eq!(quote(&"é".repeat(500)).chars().count(), QUOTE_CHARS_MAX + 1);
    }
}
