//! JSON patch (RFC 6902) and merge patch (RFC 7386).

use json_patch::PatchOperation;
use serde_json::Value;

use crate::field::{FieldError, FieldPath};
use crate::object::DEPTH_MAX;

/// Most operations in one JSON patch: Kubernetes' own bound.
pub const OPERATIONS_MAX: usize = 10_000;

/// Most that the copies and moves of one JSON patch may handle, in bytes: thirty copies of an object into
/// itself would make it a billion times as large.
pub const MOVED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A change to an object, computed against what is stored when it is applied.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// A list of operations, all or none of which are done.
    Json(json_patch::Patch),
    /// A tree laid over the object; null removes.
    Merge(Value),
}

/// Why a patch could not be applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PatchError {
    /// It is not a patch, whatever the object.
    #[error("{0}")]
    Malformed(FieldError),
    /// A `test` failed, or a path is not there: it does not fit this object.
    #[error("the patch does not fit the object: {0}")]
    Unfit(String),
}

impl Patch {
    /// Reads a JSON patch.
    ///
    /// # Errors
    /// [`PatchError::Malformed`] names the operation that cannot be read.
    pub fn json(document: Value) -> Result<Self, PatchError> {
        let malformed = |field: String, value: &Value, detail: String| {
            PatchError::Malformed(FieldError::invalid(FieldPath::new(field), value, detail))
        };
        let Value::Array(operations) = document else {
            return Err(malformed("patch".into(), &document, "must be a list of operations".into()));
        };
        if operations.len() > OPERATIONS_MAX {
            let detail = format!("must have at most {OPERATIONS_MAX} operations");
            return Err(malformed("patch".into(), &Value::from(operations.len()), detail));
        }
        let read = |(i, operation): (usize, Value)| {
            serde_json::from_value(operation.clone())
                .map_err(|e| malformed(format!("patch[{i}]"), &operation, e.to_string()))
        };
        let operations = operations.into_iter().enumerate().map(read);
        Ok(Self::Json(json_patch::Patch(operations.collect::<Result<_, _>>()?)))
    }

    /// Reads a merge patch.
    ///
    /// # Errors
    /// [`PatchError::Malformed`] if it is not an object: it would replace the whole.
    pub fn merge(document: Value) -> Result<Self, PatchError> {
        if document.is_object() {
            return Ok(Self::Merge(document));
        }
        let error = FieldError::invalid(FieldPath::new("patch"), &document, "must be an object");
        Err(PatchError::Malformed(error))
    }

    /// The patched form of `target`.
    ///
    /// # Errors
    /// [`PatchError::Unfit`] when a `test` fails or a path is missing.
    pub fn apply(&self, target: &Value) -> Result<Value, PatchError> {
        let mut result = target.clone();
        match self {
            Patch::Json(patch) => {
                let mut moved = 0;
                for operation in &patch.0 {
                    moved += check_growth(operation, &result)?;
                    if moved > MOVED_BYTES_MAX {
                        let why = format!("it copies and moves more than {MOVED_BYTES_MAX} bytes");
                        return Err(PatchError::Unfit(why));
                    }
                    json_patch::patch(&mut result, std::slice::from_ref(operation))
                        .map_err(|e| PatchError::Unfit(e.to_string()))?;
                }
            }
            Patch::Merge(patch) => json_patch::merge(&mut result, patch),
        }
        Ok(result)
    }
}

/// How many bytes an operation copies or moves within `target`.
fn check_growth(operation: &PatchOperation, target: &Value) -> Result<usize, PatchError> {
    let (path, value, is_inside) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value), false),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value), false),
        PatchOperation::Copy(copy) => (&copy.path, target.pointer(copy.from.as_str()), true),
        PatchOperation::Move(move_) => (&move_.path, target.pointer(move_.from.as_str()), true),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(0),
    };
    let Some(value) = value else { return Ok(0) };
    let (bytes, depth) = measure(value);
    if path.as_str().matches('/').count() + depth > DEPTH_MAX {
        return Err(PatchError::Unfit(format!("it nests the object deeper than {DEPTH_MAX} levels")));
    }
    Ok(if is_inside { bytes } else { 0 })
}

/// Roughly how many bytes a tree has, and how many levels. Not recursive: it may be deep.
fn measure(value: &Value) -> (usize, usize) {
    let (mut bytes, mut depth) = (0, 0);
    let mut rest = vec![(value, 1)];
    while let Some((value, level)) = rest.pop() {
        depth = depth.max(level);
        bytes += 8;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => rest.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(fields) => {
                bytes += fields.keys().map(String::len).sum::<usize>();
                rest.extend(fields.values().map(|field| (field, level + 1)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    (bytes, depth)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_patch_does_all_or_nothing() {
        let target = json!({"a": 1});
        let good = Patch::json(
            json!([{"op": "test", "path": "/a", "value": 1}, {"op": "add", "path": "/b", "value": 2}]),
        );
        assert_eq!(good.unwrap().apply(&target).unwrap(), json!({"a": 1, "b": 2}));
        let unfit = Patch::json(
            json!([{"op": "add", "path": "/b", "value": 2}, {"op": "test", "path": "/a", "value": 9}]),
        );
        assert!(matches!(unfit.unwrap().apply(&target), Err(PatchError::Unfit(_))));
    }

    #[test]
    fn merge_patch_removes_with_null() {
        let patch = Patch::merge(json!({"a": null, "b": {"c": 1}})).unwrap();
        assert_eq!(patch.apply(&json!({"a": 1, "b": 2})).unwrap(), json!({"b": {"c": 1}}));
    }

    #[test]
    fn malformed_patches_name_the_operation() {
        let error =
            Patch::json(json!([{"op": "add", "path": "/a", "value": 1}, {"op": "jump"}])).unwrap_err();
        assert!(error.to_string().starts_with("patch[1]: Invalid value"), "{error}");
        assert!(Patch::json(json!({})).is_err());
        assert!(Patch::merge(json!([])).is_err());
    }

    #[test]
    fn a_patch_cannot_blow_an_object_up() {
        let copies = |path: &dyn Fn(usize) -> String| {
            let copy = |n| json!({"op": "copy", "from": "/spec", "path": path(n)});
            Patch::json((0..60).map(copy).collect()).unwrap()
        };
        let target = json!({"spec": {"a": "x".repeat(1000)}});
        let wide = copies(&|n| format!("/spec/b{n}")).apply(&target).unwrap_err();
        assert!(wide.to_string().contains("copies and moves more than"), "{wide}");
        let deep = copies(&|n| format!("/spec{}", "/c".repeat(n + 1))).apply(&json!({"spec": {"c": 1}}));
        assert!(deep.unwrap_err().to_string().contains("deeper than"));
    }

    #[test]
    fn integers_survive_exactly() {
        let patch = Patch::json(json!([{"op": "replace", "path": "/a", "value": i64::MAX}])).unwrap();
        assert_eq!(patch.apply(&json!({"a": 0})).unwrap()["a"].as_i64(), Some(i64::MAX));
    }
}
