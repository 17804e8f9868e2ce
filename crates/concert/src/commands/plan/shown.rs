//! Plans for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::step::{Provider, Step, Store};
use crate::client::diff::Change;
use crate::print::{Paint, plain};

/// One line for each object, its fields below; then what its provider would do.
pub fn text(steps: &[Step], paint: Paint) -> String {
    let mut text = String::new();
    for step in steps {
        let name = place(step);
        match &step.store {
            Ok(Store { action, changes }) => {
                let _ = writeln!(text, "{} {name}", painted(action, paint));
                for change in changes {
                    let _ = writeln!(text, "  {}", line(change, paint));
                }
            }
            Err(why) => {
                let _ = writeln!(text, "{} {name} ({})", painted("unknown", paint), plain(why));
            }
        }
        if let Some(conflict) = &step.conflict {
            let _ = writeln!(text, "  {}: {}", painted("conflict", paint), plain(&one_line(conflict)));
        }
        if let Some(provider) = &step.provider {
            text += &of_provider(provider, paint);
        }
    }
    let count = steps.iter().filter(|it| it.has_changes()).count();
    let _ = match count {
        0 => writeln!(text, "nothing would change"),
        count => writeln!(text, "{count} of {} would change", steps.len()),
    };
    text
}

/// Who has what, and what to do about it. The server lists several fields below each other.
pub fn one_line(conflict: &str) -> String {
    let who = match conflict.split_once(": ") {
        Some((start, who)) if start.starts_with("Apply failed") => who,
        _ => conflict,
    };
    let words: Vec<&str> = who.split_whitespace().collect();
    format!("{}; to take it over: --force-conflicts", words.join(" "))
}

fn of_provider(plan: &Provider, paint: Paint) -> String {
    let reason = if plan.reason.is_empty() { String::new() } else { format!(" ({})", plain(&plan.reason)) };
    let mut text = format!("  provider: {}{reason}\n", painted(&plain(&plan.action), paint));
    for (change, replaces) in &plan.changes {
        let note = if *replaces { " (replaces it)" } else { "" };
        let _ = writeln!(text, "    {}{note}", line(change, paint));
    }
    text
}

fn place(step: &Step) -> String {
    let it = &step.manifest;
    let namespace = if it.namespace().is_empty() { String::new() } else { format!("{}/", it.namespace()) };
    plain(&format!("{} {namespace}{}", it.kind(), it.name()))
}

fn line(change: &Change, paint: Paint) -> String {
    let line = plain(&change.to_line());
    match (&change.from, &change.to) {
        (None, Some(_)) => paint.green(&line),
        (Some(_), None) => paint.red(&line),
        _ => line,
    }
}

fn painted(action: &str, paint: Paint) -> String {
    match action {
        "create" => paint.green(action),
        "update" | "unknown" | "conflict" => paint.yellow(action),
        "delete" | "replace" => paint.red(action),
        _ => action.to_owned(),
    }
}

/// The same for programs.
pub fn value(steps: &[Step]) -> Value {
    let one = |step: &Step| {
        let it = &step.manifest;
        let mut value = json!({"apiVersion": it.api_version(), "kind": it.kind(), "namespace": it.namespace(),
            "name": it.name(), "hasChanges": step.has_changes()});
        value["store"] = match &step.store {
            Ok(store) => json!({"action": store.action, "changes": values(store.changes.iter())}),
            Err(why) => json!({"action": "unknown", "reason": why, "changes": []}),
        };
        if let Some(conflict) = &step.conflict {
            value["conflict"] = json!(conflict);
        }
        if let Some(plan) = &step.provider {
            value["provider"] = answer(plan);
            value["provider"]["reason"] = json!(plan.reason);
        }
        value
    };
    json!({"items": steps.iter().map(one).collect::<Vec<_>>()})
}

/// What a provider would do, without why.
pub fn answer(plan: &Provider) -> Value {
    let mut changes = values(plan.changes.iter().map(|(it, _)| it));
    for (change, (_, replaces)) in changes.iter_mut().zip(&plan.changes) {
        change["replaces"] = json!(replaces);
    }
    json!({"action": plan.action, "changes": changes})
}

fn values<'a>(changes: impl Iterator<Item = &'a Change>) -> Vec<Value> {
    changes.map(Change::to_value).collect()
}

#[cfg(test)]
mod tests {
    use concert_model::Object;

    use super::*;

    fn steps() -> Vec<Step> {
        let manifest = |name: &str| {
            let value = json!({"apiVersion": "g.io/v1", "kind": "Bucket", "metadata": {"name": name, "namespace": "n"}});
            Object::from_value(value).unwrap()
        };
        let change = |from: Option<i64>, to: Option<i64>| Change {
            path: "spec.size".into(),
            from: from.map(Value::from),
            to: to.map(Value::from),
            is_sensitive: false,
        };
        let mut edited = Step::unknown(manifest("edited"), "");
        edited.store = Ok(Store { action: "update", changes: vec![change(Some(3), Some(5))] });
        edited.provider =
            Provider::of(&json!({"action": "replace", "reason": "size is fixed\u{7}", "changes": [
            {"path": "spec.size", "from": 3, "to": 5, "replaces": true, "isSensitive": false}]}));
        edited.conflict =
            Some("Apply failed with 2 conflicts: conflicts with \"ann\":\n- .spec.size\n- .spec.x".into());
        let mut same = Step::unknown(manifest("same"), "");
        same.store = Ok(Store { action: "none", changes: vec![] });
        vec![edited, same, Step::unknown(manifest("new"), "its kind is defined by this plan")]
    }

    #[test]
    fn people_see_fields_and_what_is_unknown() {
        assert_eq!(
            text(&steps(), Paint::default()),
            "update Bucket n/edited
  spec.size: 3 -> 5
  conflict: conflicts with \"ann\": - .spec.size - .spec.x; to take it over: --force-conflicts
  provider: replace (size is fixed\\u{7})
    spec.size: 3 -> 5 (replaces it)
none Bucket n/same
unknown Bucket n/new (its kind is defined by this plan)
2 of 3 would change
"
        );
        assert!(text(&steps()[1..2], Paint::default()).ends_with("nothing would change\n"));
    }

    #[test]
    fn programs_see_the_same() {
        let value = value(&steps());
        assert_eq!(value["items"][0]["store"]["changes"][0]["to"], 5);
        assert_eq!(value["items"][0]["provider"]["changes"][0]["replaces"], true);
        assert_eq!(value["items"][0]["provider"]["reason"], "size is fixed\u{7}");
        assert!(value["items"][0]["conflict"].as_str().is_some_and(|it| it.contains("ann")));
        assert_eq!(value["items"][1]["hasChanges"], false);
        assert_eq!(value["items"][2]["store"]["action"], "unknown");
    }
}
