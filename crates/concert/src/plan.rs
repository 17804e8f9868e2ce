//! Printing plans: data on standard output, one line per object, its fields indented below.

use std::fmt::Write as _;

use concert_server::managed::plan::{Action, FieldChange, Planned};
use serde_json::Value;

/// Plans as text.
pub fn text(plans: &[Planned]) -> String {
    let mut text = String::new();
    for plan in plans {
        let place = if plan.namespace.is_empty() { String::new() } else { format!("{}/", plan.namespace) };
        let _ = write!(text, "{} {} {place}{}", verb(plan.action), plan.kind, plan.name);
        if !plan.reason.is_empty() {
            let _ = write!(text, " ({})", plain(&plan.reason));
        }
        text.push('\n');
        for change in &plan.changes {
            let _ = writeln!(text, "  {}", line(change));
        }
    }
    text
}

/// Plans as JSON.
pub fn json(plans: &[Planned]) -> String {
    // Strings, booleans and JSON values can always be written.
    serde_json::to_string_pretty(plans).unwrap_or_default() + "\n"
}

/// Whether anything would change, or may.
pub fn has_changes(plans: &[Planned]) -> bool {
    plans.iter().any(|it| it.action != Action::None)
}

fn line(change: &FieldChange) -> String {
    let shown = |value: &Option<Value>| match value {
        _ if change.is_sensitive => "(sensitive)".to_owned(),
        Some(value) => value.to_string(),
        None => "(none)".to_owned(),
    };
    let note = if change.replaces { " (replaces)" } else { "" };
    format!("{}: {} -> {}{note}", plain(&change.path), shown(&change.from), shown(&change.to))
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Replace => "replace",
        Action::Delete => "delete",
        Action::None => "none",
        Action::Unknown => "unknown",
    }
}

/// What comes from providers must not steer a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn planned(action: Action, changes: Vec<FieldChange>) -> Planned {
        Planned {
            action,
            api_version: "g.io/v1".into(),
            kind: "Bucket".into(),
            namespace: "default".into(),
            name: "a".into(),
            changes,
            sensitive: Vec::new(),
            reason: String::new(),
        }
    }

    fn change(from: Value, to: Value) -> FieldChange {
        let path = "spec.forProvider.size".to_owned();
        FieldChange { path, from: Some(from), to: Some(to), replaces: false, is_sensitive: false }
    }

    #[test]
    fn one_line_per_object_and_one_per_field() {
        let secret = FieldChange { is_sensitive: true, from: None, to: None, ..change(json!(0), json!(0)) };
        let fixed = FieldChange { replaces: true, to: None, ..change(json!("a"), json!("b")) };
        let mut lost = planned(Action::Unknown, vec![]);
        (lost.namespace, lost.reason) = (String::new(), "no provider\nserves it".into());
        let plans = [
            planned(Action::Update, vec![change(json!(3), json!(5)), secret]),
            planned(Action::Replace, vec![fixed]),
            planned(Action::None, vec![]),
            lost,
        ];
        assert_eq!(
            text(&plans),
            "update Bucket default/a\n  spec.forProvider.size: 3 -> 5\n  \
             spec.forProvider.size: (sensitive) -> (sensitive)\n\
             replace Bucket default/a\n  spec.forProvider.size: \"a\" -> (none) (replaces)\n\
             none Bucket default/a\nunknown Bucket a (no provider serves it)\n"
        );
        assert!(has_changes(&plans) && !has_changes(&plans[2..3]));
        let read: Value = serde_json::from_str(&json(&plans)).unwrap();
        assert_eq!(
            read[0]["changes"][0],
            json!({"path": "spec.forProvider.size", "from": 3, "to": 5,
            "replaces": false, "isSensitive": false})
        );
        assert_eq!(read[3]["action"], "unknown");
    }
}
