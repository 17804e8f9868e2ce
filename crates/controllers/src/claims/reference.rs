//! References from one object to another, as `spec` holds them.

use concert_model::{GroupKind, GroupVersionKind, Object, ObjectKey, Uid};
use serde_json::{Value, json};

/// A reference to an object. Of its version only the writer knows more than anybody needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Of which kind.
    pub kind: GroupKind,
    /// Empty for objects outside of namespaces, and where it does not count.
    pub namespace: String,
    /// Which.
    pub name: String,
    /// Which incarnation, where that is known.
    pub uid: Option<Uid>,
}

impl Reference {
    /// The reference at `field` of `fields`; none if there is none, or one that names nothing.
    pub fn read(fields: &Value, field: &str) -> Option<Self> {
        let value = fields.get(field)?;
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = GroupVersionKind::parse(text("apiVersion"), text("kind")).ok();
        let uid = Some(text("uid")).filter(|it| !it.is_empty()).map(|it| Uid(it.into()));
        let (namespace, name) = (text("namespace").to_owned(), text("name").to_owned());
        if name.is_empty() {
            return None;
        }
        let kind = kind.map_or_else(|| GroupKind::new("", text("kind")), |it| it.group_kind);
        Some(Self { kind, namespace, name, uid })
    }

    /// The key of what is referred to, which lives outside of namespaces.
    pub fn cluster_key(&self) -> ObjectKey {
        ObjectKey::cluster(self.kind.clone(), self.name.as_str())
    }

    /// Whether `object` is what is referred to: by uid where one is known, by name otherwise.
    pub fn means(&self, object: &Object) -> bool {
        let is_named = self.name == object.name() && self.namespace == object.namespace();
        let is_kind = object.gvk().is_ok_and(|it| it.group_kind == self.kind);
        is_named && is_kind && self.uid.as_ref().is_none_or(|uid| Some(uid) == object.uid().as_ref())
    }
}

/// Whether `fields` has anything at `field`.
pub fn is_set(fields: &Value, field: &str) -> bool {
    fields.get(field).is_some_and(|it| !it.is_null())
}

/// The reference to `object`, to be written.
pub fn to(object: &Object) -> Value {
    let mut reference = json!({"apiVersion": object.api_version(), "kind": object.kind(),
        "name": object.name()});
    if !object.namespace().is_empty() {
        reference["namespace"] = json!(object.namespace());
    }
    if let Some(uid) = object.uid() {
        reference["uid"] = json!(&*uid.0);
    }
    reference
}

/// `Kind name` or `Kind namespace/name`, for sentences.
pub fn shown(kind: &GroupKind, namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        format!("{} {name}", kind.kind)
    } else {
        format!("{} {namespace}/{name}", kind.kind)
    }
}

/// The same, of an object.
pub fn named(object: &Object) -> String {
    shown(&GroupKind::new("", object.kind()), object.namespace(), object.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Object {
        Object::from_value(json!({"apiVersion": "cache.dev/v1", "kind": "Redis",
            "metadata": {"name": "a", "namespace": "team", "uid": "u1"}}))
        .unwrap()
    }

    #[test]
    fn what_is_written_is_read_back_and_means_the_same() {
        let spec = json!({"claimRef": to(&claim())});
        let read = Reference::read(&spec, "claimRef").unwrap();
        assert!(read.means(&claim()));
        assert_eq!(read.uid, Some(Uid("u1".into())));
    }

    #[test]
    fn another_incarnation_is_another_object_and_another_version_is_not() {
        let mut other = claim();
        other.set_metadata("uid", json!("u2"));
        let reference = Reference::read(&json!({"r": to(&claim())}), "r").unwrap();
        assert!(!reference.means(&other));
        let mut later = claim();
        later.set("apiVersion", json!("cache.dev/v2"));
        assert!(reference.means(&later));
        let without = Reference { uid: None, ..reference };
        assert!(without.means(&other));
    }

    #[test]
    fn what_names_nothing_is_no_reference() {
        for spec in [json!({}), json!({"r": null}), json!({"r": {"kind": "A", "apiVersion": "v1"}})] {
            assert_eq!(Reference::read(&spec, "r"), None);
        }
    }
}
