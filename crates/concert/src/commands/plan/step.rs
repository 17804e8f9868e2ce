//! One object of a plan: what would become of it in the store, and outside.

use concert_model::Object;
use serde_json::Value;

use crate::client::apply::Applied;
use crate::client::diff::{Change, diff};

/// One object.
pub struct Step {
    /// What would be sent.
    pub manifest: Object,
    /// Which incarnation in which state it is based on; none if there was none.
    pub base: Option<Base>,
    /// What would be in the store; none if nobody can tell.
    pub wanted: Option<Value>,
    pub store: Result<Store, String>,
    /// Who has fields that would be taken over, in the words of the server.
    pub conflict: Option<String>,
    pub provider: Option<Provider>,
}

/// What a step is based on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    pub uid: String,
    pub resource_version: String,
}

/// What would change in the store.
pub struct Store {
    /// `create`, `update` or `none`.
    pub action: &'static str,
    pub changes: Vec<Change>,
}

/// What a provider would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// `create`, `update`, `replace`, `delete`, `none` or `unknown`.
    pub action: String,
    pub reason: String,
    pub changes: Vec<(Change, bool)>,
    /// Fields that are not to be seen, whether they change outside or not.
    sensitive: Vec<String>,
    about: [String; 4],
}

impl Base {
    /// Of an object as it is.
    pub fn of(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self { uid: text("uid"), resource_version: text("resourceVersion") }
    }
}

/// What would change by what the manifest says. A status that it does not have is for others to write: that
/// of a new definition, say, is the server's.
fn changes(manifest: &Object, before: Option<&Value>, after: &Value) -> Vec<Change> {
    if !manifest.status().is_null() {
        return diff(before, after);
    }
    let bare = |whole: &Value| {
        let mut bare = whole.clone();
        bare.as_object_mut().map(|fields| fields.remove("status"));
        bare
    };
    diff(before.map(bare).as_ref(), &bare(after))
}

impl Store {
    pub fn has_changes(&self) -> bool {
        self.action != "none"
    }
}

impl Step {
    /// A dry run has told what would be.
    pub fn known(manifest: Object, applied: &Applied) -> Self {
        let changes = changes(&manifest, applied.before.as_ref(), &applied.object);
        let action = match (&applied.before, changes.is_empty()) {
            (None, _) => "create",
            (Some(_), true) => "none",
            (Some(_), false) => "update",
        };
        Self {
            manifest,
            base: applied.before.as_ref().map(Base::of),
            wanted: Some(applied.object.clone()),
            store: Ok(Store { action, changes }),
            conflict: None,
            provider: None,
        }
    }

    /// Nobody can tell what would be, for this reason.
    pub fn unknown(manifest: Object, why: &str) -> Self {
        let store = Err(why.to_owned());
        Self { manifest, base: None, wanted: None, store, conflict: None, provider: None }
    }

    /// Whether anything would change, or may.
    pub fn has_changes(&self) -> bool {
        self.store.as_ref().map_or(true, Store::has_changes)
            || self.provider.as_ref().is_some_and(|it| it.action != "none")
    }

    /// Hides in the store's changes what the provider says is not to be seen.
    pub fn hide(&mut self, plan: &Provider) {
        let changed = plan.changes.iter().filter(|(it, _)| it.is_sensitive).map(|(it, _)| &it.path);
        let secret: Vec<&str> = changed.chain(&plan.sensitive).map(String::as_str).collect();
        for change in self.store.iter_mut().flat_map(|it| &mut it.changes) {
            let is_within = |path: &&str| {
                change
                    .path
                    .strip_prefix(*path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            change.is_sensitive |= secret.iter().any(is_within);
        }
    }
}

impl Provider {
    /// Reads one plan of the server.
    pub fn of(plan: &Value) -> Option<Self> {
        let text = |field: &str| plan[field].as_str().unwrap_or_default().to_owned();
        let changes = plan["changes"].as_array().into_iter().flatten().map(|it| {
            let side = |field: &str| it.get(field).filter(|value| !value.is_null()).cloned();
            let path = it["path"].as_str().unwrap_or_default().to_owned();
            let is_sensitive = it["isSensitive"] == true;
            (Change { path, from: side("from"), to: side("to"), is_sensitive }, it["replaces"] == true)
        });
        Some(Self {
            action: plan["action"].as_str()?.to_owned(),
            reason: text("reason"),
            changes: changes.collect(),
            sensitive: plan["sensitive"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|it| Some(it.as_str()?.to_owned()))
                .collect(),
            about: [text("apiVersion"), text("kind"), text("namespace"), text("name")],
        })
    }

    pub fn is_about(&self, step: &Step) -> bool {
        let it = &step.manifest;
        self.about == [it.api_version(), it.kind(), it.namespace(), it.name()]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::Resource;

    pub fn step(before: Option<Value>, after: Value) -> Step {
        let manifest = Object::from_value(after.clone()).unwrap();
        Step::known(manifest, &Applied { resource: Resource::default(), before, object: after })
    }

    fn bucket(size: i64, version: &str) -> Value {
        json!({"apiVersion": "g.io/v1", "kind": "Bucket", "metadata": {"name": "a", "namespace": "n", "uid": "u",
            "resourceVersion": version}, "spec": {"size": size, "password": {"value": "geheim"}}})
    }

    #[test]
    fn the_store_is_compared_with_a_dry_run() {
        let action = |before, after| step(before, after).store.map(|it| it.action).unwrap_or_default();
        assert_eq!(action(None, bucket(1, "")), "create");
        assert_eq!(action(Some(bucket(1, "7")), bucket(1, "7")), "none");
        assert_eq!(action(Some(bucket(1, "7")), bucket(2, "7")), "update");
        let base = step(Some(bucket(1, "7")), bucket(2, "7")).base.unwrap();
        assert_eq!((base.uid.as_str(), base.resource_version.as_str()), ("u", "7"));
    }

    #[test]
    fn a_status_is_no_part_of_a_plan_that_does_not_write_it() {
        let mut manifest = Object::from_value(bucket(1, "")).unwrap();
        let mut after = bucket(1, "7");
        after["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        let paths = |manifest: &Object, before: Option<&Value>| -> Vec<String> {
            changes(manifest, before, &after).into_iter().map(|it| it.path).collect()
        };
        assert!(!paths(&manifest, None).iter().any(|it| it.starts_with("status")));
        let mut before = after.clone();
        before["status"] = json!({});
        assert_eq!(paths(&manifest, Some(&before)), Vec::<String>::new());
        manifest.set("status", after["status"].clone());
        assert!(paths(&manifest, Some(&before)).iter().any(|it| it.starts_with("status")));
    }

    #[test]
    fn what_the_provider_calls_sensitive_is_hidden_everywhere() {
        let changes = json!([{"path": "spec.password", "to": null, "isSensitive": true, "replaces": false}]);
        for more in [
            json!({"action": "create", "changes": changes}),
            json!({"action": "unknown", "reason": "it does not answer", "sensitive": ["spec.password"]}),
        ] {
            let mut plan = json!({"apiVersion": "g.io/v1", "kind": "Bucket", "namespace": "n", "name": "a"});
            plan.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let plan = Provider::of(&plan).unwrap();
            let mut step = step(None, bucket(1, ""));
            assert!(plan.is_about(&step));
            step.hide(&plan);
            let lines: Vec<String> =
                step.store.unwrap_or_else(|_| unreachable!()).changes.iter().map(Change::to_line).collect();
            assert!(lines.contains(&"spec.password.value: (none) -> (sensitive)".to_owned()), "{lines:?}");
            assert!(!lines.concat().contains("geheim"));
        }
    }

    #[test]
    fn the_unknown_may_change() {
        let manifest = Object::from_value(bucket(1, "")).unwrap();
        assert!(Step::unknown(manifest, "why").has_changes());
        let mut same = step(Some(bucket(1, "7")), bucket(1, "7"));
        assert!(!same.has_changes());
        same.provider = Provider::of(&json!({"action": "unknown"}));
        assert!(same.has_changes());
    }
}
