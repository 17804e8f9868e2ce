//! Tying a write to the state it was checked against.

use concert_model::{Patch, ResourceVersion};
use serde_json::{Value, json};

use super::{Change, Operation};

/// `operation`, so that it is refused with a conflict unless the stored state is still `version`.
/// One that names a version itself keeps it: if that is another one, it fails for that reason.
pub(super) fn to(operation: Operation, version: &ResourceVersion) -> Operation {
    let version = Value::from(&*version.0);
    match operation {
        Operation::Update(mut object, part) => {
            if object.resource_version().is_none() {
                object.set_metadata("resourceVersion", version);
            }
            Operation::Update(object, part)
        }
        Operation::Apply { mut object, part, is_forced } => {
            if object.resource_version().is_none() {
                object.set_metadata("resourceVersion", version);
            }
            Operation::Apply { object, part, is_forced }
        }
        Operation::Patch(key, part, change) => Operation::Patch(key, part, pinned(change, version)),
        other @ (Operation::Create(_) | Operation::Delete(..)) => other,
    }
}

fn pinned(change: Change, version: Value) -> Change {
    match change {
        Change::Strategic(patch) => Change::Strategic(named(patch, version)),
        Change::Plain { version: written_in, patch } => {
            Change::Plain { version: written_in, patch: tested(patch, version) }
        }
    }
}

fn tested(patch: Patch, version: Value) -> Patch {
    match patch {
        Patch::Merge(patch) => Patch::Merge(named(patch, version)),
        Patch::Json(mut patch) => {
            let test = json!([{"op": "test", "path": "/metadata/resourceVersion", "value": version}]);
            if let Ok(Patch::Json(mut test)) = Patch::json(test) {
                test.0.append(&mut patch.0);
                patch = test;
            }
            Patch::Json(patch)
        }
    }
}

fn named(mut patch: Value, version: Value) -> Value {
    if let Some(fields) = patch.as_object_mut() {
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.entry("resourceVersion").or_insert(version);
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use concert_model::{GroupKind, ObjectKey};
    use concert_store::Part;

    use super::*;

    fn patched(change: Change) -> Change {
        let key = ObjectKey::cluster(GroupKind::new("", "A"), "a");
        let pinned = to(Operation::Patch(key, Part::Main, change), &ResourceVersion("7".into()));
        let Operation::Patch(_, _, change) = pinned else { panic!("still a patch") };
        change
    }

    fn plain(patch: Patch) -> Change {
        Change::Plain { version: "v1".into(), patch }
    }

    #[test]
    fn every_patch_can_be_pinned() {
        let merge = Patch::merge(json!({"spec": 1})).unwrap();
        let Change::Plain { patch: Patch::Merge(merge), .. } = patched(plain(merge)) else { panic!() };
        assert_eq!(merge, json!({"metadata": {"resourceVersion": "7"}, "spec": 1}));
        let own = json!({"metadata": {"resourceVersion": "5"}});
        let Change::Strategic(kept) = patched(Change::Strategic(own.clone())) else { panic!() };
        assert_eq!(kept, own);
        let json = Patch::json(json!([{"op": "remove", "path": "/spec"}])).unwrap();
        let Change::Plain { patch: json, version } = patched(plain(json)) else { panic!() };
        assert_eq!(version, "v1");
        let target = |version: &str| json!({"metadata": {"resourceVersion": version}, "spec": 1});
        assert!(json.apply(&target("7")).is_ok());
        assert!(json.apply(&target("8")).is_err());
    }
}
