//! What a webhook wants changed: `add`, `replace` and `remove` by JSON pointer (RFC 6901, RFC 6902).
//!
//! Paths lead into the spec, with or without `/spec` in front. Either all of them fit, or none is done.

use serde_json::Value;

/// Why the patches of an answer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPatch {
    #[error("patches is no list")]
    NoList,
    #[error("patch {0} is no object with op and path")]
    NoPatch(usize),
    #[error("patch {index}: unknown op {op:?}: it is add, replace or remove")]
    Op { index: usize, op: String },
    #[error("patch {index}: {path:?} is no path: it starts with /")]
    Path { index: usize, path: String },
    #[error("patch {0}: value is required")]
    Value(usize),
    #[error("patch {index}: {op} {path}: the path does not exist")]
    Missing { index: usize, op: String, path: String },
    #[error("patch {0}: the spec would be no object")]
    Whole(usize),
}

/// `spec` with all `patches` done.
pub fn apply(spec: &Value, patches: &Value) -> Result<Value, BadPatch> {
    let patches = match patches {
        Value::Null => return Ok(spec.clone()),
        Value::Array(patches) => patches,
        _ => return Err(BadPatch::NoList),
    };
    let mut spec = spec.clone();
    for (index, patch) in patches.iter().enumerate() {
        let text = |field: &str| patch.get(field).and_then(Value::as_str);
        let (Some(op), Some(path)) = (text("op"), text("path")) else { return Err(BadPatch::NoPatch(index)) };
        one(&mut spec, index, op, path, patch.get("value"))?;
        if !spec.is_object() {
            return Err(BadPatch::Whole(index));
        }
    }
    Ok(spec)
}

fn one(spec: &mut Value, index: usize, op: &str, path: &str, value: Option<&Value>) -> Result<(), BadPatch> {
    let value = match (op, value) {
        ("remove", _) => None,
        ("add" | "replace", Some(value)) => Some(value.clone()),
        ("add" | "replace", None) => return Err(BadPatch::Value(index)),
        _ => return Err(BadPatch::Op { index, op: op.to_owned() }),
    };
    let steps = steps(path).ok_or_else(|| BadPatch::Path { index, path: path.to_owned() })?;
    let missing = || BadPatch::Missing { index, op: op.to_owned(), path: path.to_owned() };
    let Some((last, parents)) = steps.split_last() else {
        *spec = value.ok_or(BadPatch::Whole(index))?;
        return Ok(());
    };
    let parent = parents.iter().try_fold(spec, |place, step| child(place, step)).ok_or_else(missing)?;
    set(parent, last, op, value).ok_or_else(missing)
}

/// The steps of a pointer below the spec; none if it is no pointer.
fn steps(path: &str) -> Option<Vec<String>> {
    let mut steps: Vec<String> = path.strip_prefix('/')?.split('/').map(unescape).collect::<Option<_>>()?;
    if steps.first().is_some_and(|step| step == "spec") {
        steps.remove(0);
    }
    Some(steps)
}

fn unescape(step: &str) -> Option<String> {
    let mut text = String::with_capacity(step.len());
    let mut rest = step.chars();
    while let Some(character) = rest.next() {
        text.push(match character {
            '~' => match rest.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(text)
}

fn child<'a>(place: &'a mut Value, step: &str) -> Option<&'a mut Value> {
    match place {
        Value::Object(fields) => fields.get_mut(step),
        Value::Array(items) => items.get_mut(position(step)?),
        _ => None,
    }
}

fn set(place: &mut Value, step: &str, op: &str, value: Option<Value>) -> Option<()> {
    match (place, op, value) {
        (Value::Object(fields), "add", Some(value)) => drop(fields.insert(step.to_owned(), value)),
        (Value::Object(fields), "replace", Some(value)) => *fields.get_mut(step)? = value,
        (Value::Object(fields), _, None) => drop(fields.remove(step)?),
        (Value::Array(items), "add", Some(value)) if step == "-" => items.push(value),
        (Value::Array(items), "add", Some(value)) => {
            let position = position(step).filter(|position| *position <= items.len())?;
            items.insert(position, value);
        }
        (Value::Array(items), "replace", Some(value)) => *items.get_mut(position(step)?)? = value,
        (Value::Array(items), _, None) => {
            let position = position(step).filter(|position| *position < items.len())?;
            items.remove(position);
        }
        _ => return None,
    }
    Some(())
}

/// A place in a list: digits, without a zero in front.
fn position(step: &str) -> Option<usize> {
    let is_number = step.bytes().all(|byte| byte.is_ascii_digit()) && (step == "0" || !step.starts_with('0'));
    if is_number { step.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(patches: Value) -> Result<Value, String> {
        let spec = json!({"a": {"b": 1}, "list": [1, 2], "x/y": 1, "~": 2});
        apply(&spec, &patches).map_err(|error| error.to_string())
    }

    fn part(patches: Value, pointer: &str) -> Value {
        patched(patches).unwrap().pointer(pointer).cloned().unwrap_or_default()
    }

    #[test]
    fn paths_lead_into_the_spec_with_or_without_its_name() {
        assert_eq!(part(json!([{"op": "replace", "path": "/spec/a/b", "value": 2}]), "/a/b"), 2);
        assert_eq!(part(json!([{"op": "replace", "path": "/a/b", "value": 2}]), "/a/b"), 2);
        assert_eq!(
            part(json!([{"op": "add", "path": "/spec/a/c", "value": null}]), "/a"),
            json!({"b": 1, "c": null})
        );
        assert_eq!(part(json!([{"op": "remove", "path": "/spec/a/b"}]), "/a"), json!({}));
        assert_eq!(
            patched(json!([{"op": "replace", "path": "/spec", "value": {"n": 1}}])),
            Ok(json!({"n": 1}))
        );
    }

    #[test]
    fn names_are_unescaped_and_lists_have_places() {
        assert_eq!(part(json!([{"op": "replace", "path": "/spec/x~1y", "value": 3}]), "/x~1y"), 3);
        assert_eq!(part(json!([{"op": "replace", "path": "/~0", "value": 3}]), "/~0"), 3);
        assert_eq!(part(json!([{"op": "add", "path": "/list/-", "value": 3}]), "/list"), json!([1, 2, 3]));
        assert_eq!(part(json!([{"op": "add", "path": "/list/0", "value": 0}]), "/list"), json!([0, 1, 2]));
        assert_eq!(part(json!([{"op": "remove", "path": "/list/1"}]), "/list"), json!([1]));
        assert_eq!(part(json!([{"op": "replace", "path": "/list/1", "value": 9}]), "/list"), json!([1, 9]));
    }

    #[test]
    fn one_that_does_not_fit_spoils_all() {
        let refused =
            |patch: Value| patched(json!([{"op": "add", "path": "/fine", "value": 1}, patch])).unwrap_err();
        let missing = [
            json!({"op": "replace", "path": "/spec/nope", "value": 1}),
            json!({"op": "remove", "path": "/spec/nope"}),
            json!({"op": "add", "path": "/spec/nope/deeper", "value": 1}),
            json!({"op": "add", "path": "/a/b/c", "value": 1}),
            json!({"op": "add", "path": "/list/3", "value": 1}),
            json!({"op": "add", "path": "/list/01", "value": 1}),
            json!({"op": "remove", "path": "/list/2"}),
            json!({"op": "remove", "path": "/list/-"}),
        ];
        for patch in missing {
            let path = patch["path"].as_str().unwrap();
            let op = patch["op"].as_str().unwrap();
            assert_eq!(refused(patch.clone()), format!("patch 1: {op} {path}: the path does not exist"));
        }
        assert_eq!(
            refused(json!({"op": "move", "path": "/a", "from": "/b"})),
            "patch 1: unknown op \"move\": it is add, replace or remove"
        );
        assert_eq!(
            refused(json!({"op": "add", "path": "a", "value": 1})),
            "patch 1: \"a\" is no path: it starts with /"
        );
        assert_eq!(
            refused(json!({"op": "add", "path": "/~2", "value": 1})),
            "patch 1: \"/~2\" is no path: it starts with /"
        );
        assert_eq!(refused(json!({"op": "add", "path": "/a"})), "patch 1: value is required");
        assert_eq!(refused(json!({"path": "/a"})), "patch 1 is no object with op and path");
        assert_eq!(refused(json!(7)), "patch 1 is no object with op and path");
        assert_eq!(
            refused(json!({"op": "replace", "path": "/spec", "value": 7})),
            "patch 1: the spec would be no object"
        );
        assert_eq!(refused(json!({"op": "remove", "path": "/spec"})), "patch 1: the spec would be no object");
        assert_eq!(patched(json!({})), Err("patches is no list".into()));
        assert!(patched(json!(null)).is_ok());
    }
}
