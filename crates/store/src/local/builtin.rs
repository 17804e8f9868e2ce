//! The kinds that are always there.

use concert_model::metadata::NameRule;
use concert_model::name::SUBDOMAIN_BYTES_MAX;
use concert_model::{FieldError, FieldPath, GroupKind, Object, Rule};
use concert_schema::Schema;
use serde_json::{Value, json};

use super::definition;
use super::kinds::Served;
use crate::kind::Kind;

pub(super) const NAMESPACE: &str = "Namespace";
/// What keeps a namespace until its objects are gone.
pub(super) const NAMESPACE_FINALIZER: &str = "kubernetes";

pub(super) fn namespace_kind() -> GroupKind {
    GroupKind::new("", NAMESPACE)
}

pub(super) fn all() -> Vec<Served> {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let flag = json!({"type": "boolean"});
    vec![
        serve(
            Kind {
                is_namespaced: false,
                has_status: true,
                name_rule: NameRule::Label,
                selectable_fields: vec!["status.phase".into()],
                ..plain("", "v1", NAMESPACE, "namespaces")
            },
            &json!({"spec": {"type": "object", "properties": {"finalizers": {"type": "array", "items": {"type": "string"}}}},
                "status": free}),
        ),
        serve(
            Kind { selectable_fields: vec!["type".into()], ..plain("", "v1", "Secret", "secrets") },
            &json!({"type": {"type": "string", "default": "Opaque"}, "data": texts, "immutable": flag}),
        ),
        serve(
            plain("", "v1", "ConfigMap", "configmaps"),
            &json!({"data": texts, "binaryData": texts, "immutable": flag}),
        ),
        serve(
            Kind {
                selectable_fields: [
                    "involvedObject.kind",
                    "involvedObject.namespace",
                    "involvedObject.name",
                    "involvedObject.uid",
                    "involvedObject.apiVersion",
                    "reason",
                    "reportingComponent",
                    "source",
                    "type",
                ]
                .map(String::from)
                .into(),
                ..plain("", "v1", "Event", "events")
            },
            &event_fields(),
        ),
        serve(plain("coordination.k8s.io", "v1", "Lease", "leases"), &lease_fields()),
        serve(
            Kind {
                is_namespaced: false,
                has_status: true,
                has_generation: true,
                ..plain(
                    definition::DEFINITION_GROUP,
                    "v1",
                    definition::DEFINITION_KIND,
                    "customresourcedefinitions",
                )
            },
            &json!({"spec": free, "status": free}),
        ),
    ]
}

fn plain(group: &str, version: &str, kind: &str, plural: &str) -> Kind {
    Kind {
        group_kind: GroupKind::new(group, kind),
        storage_version: version.into(),
        versions: vec![version.into()],
        plural: plural.into(),
        is_namespaced: true,
        has_status: false,
        has_generation: false,
        name_rule: NameRule::Subdomain,
        selectable_fields: Vec::new(),
    }
}

fn serve(kind: Kind, properties: &Value) -> Served {
    let schema = Schema::compile(&json!({"type": "object", "properties": properties}));
    let schema = schema.expect("built-in schemas are structural");
    let schemas = vec![(kind.storage_version.clone(), schema)];
    Served { kind: kind.into(), schemas, definition: None, is_terminating: false }
}

fn event_fields() -> Value {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer", "format": "int32"}));
    json!({
        "involvedObject": free, "reason": text, "message": text, "source": free, "firstTimestamp": moment(),
        "lastTimestamp": moment(), "count": number, "type": text, "eventTime": moment(), "series": free,
        "action": text, "related": free, "reportingComponent": text, "reportingInstance": text,
    })
}

fn lease_fields() -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer", "format": "int32"}));
    json!({"spec": {"type": "object", "properties": {
        "holderIdentity": text, "leaseDurationSeconds": number, "acquireTime": moment(), "renewTime": moment(),
        "leaseTransitions": number, "strategy": text, "preferredHolder": text,
    }}})
}

fn moment() -> Value {
    json!({"type": "string", "format": "date-time", "nullable": true})
}

/// What a built-in kind does to an object before its schema sees it.
pub(super) fn normalise(kind: &GroupKind, object: &mut Object) -> Vec<FieldError> {
    if !kind.group.is_empty() {
        return Vec::new();
    }
    match &*kind.kind {
        "Secret" => {
            let mut errors = encode_string_data(object);
            check_keys(object, "data", &mut errors);
            check_base64(object, "data", &mut errors);
            errors
        }
        "ConfigMap" => {
            let mut errors = Vec::new();
            check_keys(object, "data", &mut errors);
            check_keys(object, "binaryData", &mut errors);
            check_base64(object, "binaryData", &mut errors);
            errors
        }
        _ => Vec::new(),
    }
}

/// An update of a namespace that does not speak of its finalizers leaves them alone: only who means to
/// finish a namespace empties them.
pub(super) fn keep_finalizers(old: &Object, new: &mut Object) {
    let kept = old.spec().get("finalizers").filter(|_| new.spec().get("finalizers").is_none()).cloned();
    if let Some(kept) = kept
        && new.kind() == NAMESPACE
        && let Value::Object(spec) = new.get_mut("spec")
    {
        spec.insert("finalizers".into(), kept);
    }
}

/// Keys of data become file names: Kubernetes' rule.
fn check_keys(object: &Object, field: &str, errors: &mut Vec<FieldError>) {
    let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let is_key = |key: &str| {
        (1..=SUBDOMAIN_BYTES_MAX).contains(&key.len())
            && key.bytes().all(inside)
            && key != "."
            && !key.starts_with("..")
    };
    let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.', be no more than \
                  253 bytes and not start with '..'";
    for key in object.get(field).as_object().into_iter().flat_map(|entries| entries.keys()) {
        if !is_key(key) {
            errors.push(FieldError::invalid_text(FieldPath::new(field).key(key), key, detail));
        }
    }
}

/// `stringData` is written in clear and stored in `data` as base64; a write-only convenience.
fn encode_string_data(object: &mut Object) -> Vec<FieldError> {
    let given = object.get("stringData").clone();
    object.set("stringData", Value::Null);
    let given = match given {
        Value::Null => return Vec::new(),
        Value::Object(given) => given,
        // Never repeated: it may be the secret itself.
        _ => return vec![FieldError::forbidden(FieldPath::new("stringData"), "must be a map of strings")],
    };
    let mut errors = Vec::new();
    for (key, value) in given {
        match (value.as_str(), object.get_mut("data").as_object_mut()) {
            (Some(text), Some(data)) => drop(data.insert(key, base64(text.as_bytes()).into())),
            _ => {
                errors.push(FieldError::required(FieldPath::new("stringData").key(&key), "must be a string"));
            }
        }
    }
    errors
}

/// Bytes must be base64. Not a matter of the schema, whose errors would repeat what may be a secret.
fn check_base64(object: &Object, field: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in object.get(field).as_object().into_iter().flatten() {
        if value.as_str().is_some_and(|text| !is_base64(text)) {
            let (field, detail) = (FieldPath::new(field).key(key), "must be base64".to_owned());
            errors.push(FieldError { field, rule: Rule::Invalid, value: None, detail });
        }
    }
}

fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let is_inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    // Padding stands for at most two of the last four characters.
    text.len().is_multiple_of(4) && text.len() - data.len() <= 2 && data.bytes().all(is_inside)
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0u32, |bits, (i, b)| bits | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            let sextet = (bits >> (18 - 6 * i)) & 63;
            out.push(if i <= chunk.len() { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (clear, encoded) in cases {
            assert_eq!(base64(clear.as_bytes()), encoded);
            assert!(is_base64(encoded));
        }
        for bad in ["Zg", "Zg=", "Z===", "====", "Zm9v=", "Zm 9", "Zm-_", "=Zm9"] {
            assert!(!is_base64(bad), "{bad}");
        }
    }

    #[test]
    fn every_built_in_kind_has_a_schema() {
        for served in all() {
            assert!(served.schema(&served.kind.storage_version).is_some(), "{}", served.kind.group_kind);
        }
    }
}
