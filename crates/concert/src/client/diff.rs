//! What differs between two states of an object, field by field.

use serde_json::Value;

/// What the server writes by itself with each change.
const NOISE: &[&str] = &[
    "managedFields",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "uid",
    "selfLink",
    "deletionGracePeriodSeconds",
];

/// Annotations that may hold a whole object, secrets included.
const COPIES: &[&str] = &["kubectl.kubernetes.io/last-applied-configuration"];

/// Stands for a value that is not to be seen.
pub const SENSITIVE: &str = "(sensitive)";

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// As in `spec.forProvider.size`.
    pub path: String,
    /// None if it was not there.
    pub from: Option<Value>,
    /// None if it is to go.
    pub to: Option<Value>,
    /// Whether the values are not to be seen.
    pub is_sensitive: bool,
}

/// All that differs, in the order of fields. Secret values are marked, and left in for comparison only:
/// whoever prints must look at the mark.
pub fn diff(from: Option<&Value>, to: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    let kind = to["kind"].as_str().unwrap_or_default();
    let empty = Value::Object(serde_json::Map::new());
    compare(&mut Walk { changes: &mut changes, is_secret: kind == "Secret" }, "", from.unwrap_or(&empty), to);
    changes
}

struct Walk<'a> {
    changes: &'a mut Vec<Change>,
    is_secret: bool,
}

fn compare(walk: &mut Walk<'_>, path: &str, from: &Value, to: &Value) {
    match (from, to) {
        (Value::Object(old), Value::Object(new)) => {
            let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
            names.sort();
            names.dedup();
            for name in names.into_iter().filter(|it| !is_noise(path, it)) {
                sides(walk, &child(path, name), old.get(name), new.get(name));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                sides(walk, &format!("{path}[{index}]"), old.get(index), new.get(index));
            }
        }
        _ if from == to => {}
        _ => leaf(walk, path, Some(from), Some(to)),
    }
}

fn sides(walk: &mut Walk<'_>, path: &str, from: Option<&Value>, to: Option<&Value>) {
    let whole = |value: &Value| match value {
        Value::Object(_) => Value::Object(serde_json::Map::new()),
        _ => Value::Array(Vec::new()),
    };
    let has_parts = |value: &Value| match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    };
    match (from, to) {
        (Some(from), Some(to)) => compare(walk, path, from, to),
        // What appears or goes as a whole is shown in its parts.
        (None, Some(to)) if has_parts(to) => compare(walk, path, &whole(to), to),
        (Some(from), None) if has_parts(from) => compare(walk, path, from, &whole(from)),
        (from, to) => leaf(walk, path, from, to),
    }
}

fn leaf(walk: &mut Walk<'_>, path: &str, from: Option<&Value>, to: Option<&Value>) {
    let is_in_secret = walk.is_secret && (path.starts_with("data") || path.starts_with("stringData"));
    let is_sensitive = is_in_secret || COPIES.iter().any(|it| path.contains(it));
    walk.changes.push(Change { path: path.to_owned(), from: from.cloned(), to: to.cloned(), is_sensitive });
}

fn is_noise(path: &str, name: &str) -> bool {
    path == "metadata" && NOISE.contains(&name)
}

fn child(path: &str, name: &str) -> String {
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    match (path.is_empty(), name.chars().all(is_word) && !name.is_empty()) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{}]", Value::String(name.to_owned())),
    }
}

impl Change {
    /// `spec.size: 3 -> 5`, not yet fit for a terminal.
    pub fn to_line(&self) -> String {
        // Whoever leaves both out has not said that there is none.
        let is_hidden = self.is_sensitive && self.from.is_none() && self.to.is_none();
        let shown = |value: &Option<Value>| match value {
            None if is_hidden => SENSITIVE.to_owned(),
            None => "(none)".to_owned(),
            Some(_) if self.is_sensitive => SENSITIVE.to_owned(),
            Some(value) => value.to_string(),
        };
        format!("{}: {} -> {}", self.path, shown(&self.from), shown(&self.to))
    }

    /// For programs.
    pub fn to_value(&self) -> Value {
        let shown = |value: &Option<Value>| value.clone().filter(|_| !self.is_sensitive);
        serde_json::json!({"path": self.path, "from": shown(&self.from), "to": shown(&self.to),
            "isSensitive": self.is_sensitive})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(from: Option<Value>, to: Value) -> Vec<String> {
        diff(from.as_ref(), &to).iter().map(Change::to_line).collect()
    }

    #[test]
    fn fields_are_compared_one_by_one() {
        let from = json!({"kind": "A", "metadata": {"resourceVersion": "1", "labels": {"a.b/c": "x"}},
            "spec": {"size": 3, "tags": ["a", "b"], "gone": {"deep": true}}});
        let to = json!({"kind": "A", "metadata": {"resourceVersion": "2", "labels": {"a.b/c": "y"}},
            "spec": {"size": 5, "tags": ["a"], "new": [{"x": 1}], "empty": {}}});
        assert_eq!(
            lines(Some(from.clone()), to),
            [
                "metadata.labels[\"a.b/c\"]: \"x\" -> \"y\"",
                "spec.empty: (none) -> {}",
                "spec.gone.deep: true -> (none)",
                "spec.new[0].x: (none) -> 1",
                "spec.size: 3 -> 5",
                "spec.tags[1]: \"b\" -> (none)",
            ]
        );
        assert_eq!(lines(Some(from.clone()), from), [""; 0]);
    }

    #[test]
    fn a_new_object_is_all_new() {
        assert_eq!(
            lines(None, json!({"kind": "A", "spec": {"a": 1}})),
            ["kind: (none) -> \"A\"", "spec.a: (none) -> 1"]
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let secret = |value: &str| {
            json!({"kind": "Secret", "data": {"password": value}, "metadata": {"annotations":
            {"kubectl.kubernetes.io/last-applied-configuration": value, "note": value}}})
        };
        let all = diff(Some(&secret("b2xk")), &secret("bmV3"));
        let texts: Vec<String> = all.iter().map(|it| it.to_line() + &it.to_value().to_string()).collect();
        assert_eq!(texts.len(), 3);
        let shown: Vec<&String> =
            texts.iter().filter(|it| it.contains("bmV3") || it.contains("b2xk")).collect();
        assert!(shown.len() == 1 && shown[0].contains("note"), "{texts:?}");
    }

    #[test]
    fn a_secret_that_was_not_told_is_not_said_to_be_absent() {
        let change = Change { path: "spec.password".into(), from: None, to: None, is_sensitive: true };
        assert_eq!(change.to_line(), "spec.password: (sensitive) -> (sensitive)");
    }

    #[test]
    fn another_type_is_one_change() {
        assert_eq!(lines(Some(json!({"a": {"b": 1}})), json!({"a": [1]})), ["a: {\"b\":1} -> [1]"]);
    }
}
