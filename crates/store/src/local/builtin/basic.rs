//! Namespaces, Secrets, ConfigMaps, Events, ServiceAccounts and Leases.

use concert_model::metadata::NameRule;
use concert_model::{GroupKind, Object};
use serde_json::{Value, json};

use super::{Told, conditions, moment, plain};
use crate::kind::Kind;

const NAMESPACE: &str = "Namespace";
/// What keeps a namespace until its objects are gone.
pub(in crate::local) const NAMESPACE_FINALIZER: &str = "kubernetes";

const AGE: (&str, &str, &str, i64) = ("Age", "date", ".metadata.creationTimestamp", 0);

pub(in crate::local) fn namespace_kind() -> GroupKind {
    GroupKind::new("", NAMESPACE)
}

pub(super) fn all() -> Vec<Told> {
    vec![namespace(), secret(), config_map(), event(), service_account(), lease()]
}

fn text_map() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

/// Which object something is about.
fn reference() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "apiVersion": text, "kind": text, "namespace": text, "name": text, "uid": text,
        "resourceVersion": text, "fieldPath": text,
    }})
}

fn namespace() -> Told {
    let kind = Kind {
        is_namespaced: false,
        has_status: true,
        name_rule: NameRule::Label,
        selectable_fields: vec!["status.phase".into()],
        ..plain("", "v1", NAMESPACE, "namespaces")
    };
    let finalizers = super::texts();
    let spec = json!({"type": "object", "properties": {"finalizers": finalizers}});
    let status = json!({"type": "object",
        "properties": {"phase": {"type": "string"}, "conditions": conditions()}});
    Told {
        short_names: &["ns"],
        columns: &[("Status", "string", ".status.phase", 0), AGE],
        ..Told::new(kind, json!({"spec": spec, "status": status}))
    }
}

fn secret() -> Told {
    let kind = Kind { selectable_fields: vec!["type".into()], ..plain("", "v1", "Secret", "secrets") };
    let flag = json!({"type": "boolean"});
    let fields =
        json!({"type": {"type": "string", "default": "Opaque"}, "data": text_map(), "immutable": flag});
    Told { columns: &[("Type", "string", ".type", 0), AGE], ..Told::new(kind, fields) }
}

fn config_map() -> Told {
    let flag = json!({"type": "boolean"});
    let fields = json!({"data": text_map(), "binaryData": text_map(), "immutable": flag});
    Told { short_names: &["cm"], ..Told::new(plain("", "v1", "ConfigMap", "configmaps"), fields) }
}

fn event() -> Told {
    let selectable = [
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ];
    let kind =
        Kind { selectable_fields: selectable.map(String::from).into(), ..plain("", "v1", "Event", "events") };
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer", "format": "int32"}));
    let source = json!({"type": "object", "properties": {"component": text, "host": text}});
    let series = json!({"type": "object", "properties": {"count": number, "lastObservedTime": moment()}});
    let fields = json!({
        "involvedObject": reference(), "reason": text, "message": text, "source": source,
        "firstTimestamp": moment(), "lastTimestamp": moment(), "count": number, "type": text,
        "eventTime": moment(), "series": series, "action": text, "related": reference(),
        "reportingComponent": text, "reportingInstance": text,
    });
    Told {
        short_names: &["ev"],
        columns: &[
            ("Last Seen", "date", ".lastTimestamp", 0),
            ("Type", "string", ".type", 0),
            ("Reason", "string", ".reason", 0),
            ("Kind", "string", ".involvedObject.kind", 0),
            ("Object", "string", ".involvedObject.name", 0),
            ("Message", "string", ".message", 0),
            ("Source", "string", ".source.component", 1),
            ("Count", "integer", ".count", 1),
        ],
        ..Told::new(kind, fields)
    }
}

fn service_account() -> Told {
    let mut secret = reference();
    secret["required"] = json!(["name"]);
    let secrets = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"], "items": secret});
    let image_secret = json!({"type": "object", "x-kubernetes-map-type": "atomic",
        "properties": {"name": {"type": "string"}}});
    let flag = json!({"type": "boolean"});
    let fields = json!({"secrets": secrets, "imagePullSecrets": {"type": "array", "items": image_secret},
        "automountServiceAccountToken": flag});
    let kind = plain("", "v1", "ServiceAccount", "serviceaccounts");
    Told { short_names: &["sa"], ..Told::new(kind, fields) }
}

fn lease() -> Told {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer", "format": "int32"}));
    let spec = json!({"type": "object", "properties": {
        "holderIdentity": text, "leaseDurationSeconds": number, "acquireTime": moment(), "renewTime": moment(),
        "leaseTransitions": number, "strategy": text, "preferredHolder": text,
    }});
    Told {
        columns: &[("Holder", "string", ".spec.holderIdentity", 0), AGE],
        ..Told::new(plain("coordination.k8s.io", "v1", "Lease", "leases"), json!({"spec": spec}))
    }
}

/// An update of a namespace that does not speak of its finalizers leaves them alone: only who means to
/// finish a namespace empties them. One that `is_bound` to leave them alone does, whatever it says.
pub(in crate::local) fn keep_finalizers(old: &Object, new: &mut Object, is_bound: bool) {
    let (before, after) = (old.spec().get("finalizers"), new.spec().get("finalizers"));
    if new.kind() != NAMESPACE || before == after || !(is_bound || after.is_none()) {
        return;
    }
    if let Value::Object(spec) = new.get_mut("spec") {
        match before {
            Some(kept) => drop(spec.insert("finalizers".into(), kept.clone())),
            None => drop(spec.remove("finalizers")),
        }
    }
}
