//! CustomResourceDefinitions: objects that define kinds.

use std::sync::Arc;

use concert_model::condition::{self, Condition, Status};
use concert_model::metadata::NameRule;
use concert_model::{FieldError, FieldPath, GroupKind, Object, ObjectKey, Revision, Rule, Timestamp, name};
use concert_schema::Schema;
use concert_schema::columns::Column;
use serde_json::{Value, json};

use super::kinds::{Kinds, Served, Version};
use super::{names, present, rules, selectable};
use crate::kind::Kind;

/// Group of the kind that defines kinds.
pub const DEFINITION_GROUP: &str = "apiextensions.k8s.io";
/// The kind that defines kinds.
pub const DEFINITION_KIND: &str = "CustomResourceDefinition";
/// Keeps a definition until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) fn kind() -> GroupKind {
    GroupKind::new(DEFINITION_GROUP, DEFINITION_KIND)
}

pub(super) fn is_definition(kind: &GroupKind) -> bool {
    &*kind.kind == DEFINITION_KIND && &*kind.group == DEFINITION_GROUP
}

/// The kind that a definition is for.
pub(super) fn defined_kind(definition: &Object) -> GroupKind {
    let spec = definition.spec();
    GroupKind::new(text(&spec["group"]), text(&spec["names"]["kind"]))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Fills in what a definition may leave out.
pub(super) fn default(definition: &mut Object) {
    let kind = text(&definition.spec()["names"]["kind"]).to_owned();
    let Some(spec) = definition.get_mut("spec").as_object_mut() else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
        names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    }
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
}

/// All that is wrong with a definition, by itself.
pub(super) fn validate(definition: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (spec, path) = (definition.spec(), FieldPath::new("spec"));
    let (group, names) = (text(&spec["group"]), &spec["names"]);
    check_text(&path.child("group"), group, name::check_subdomain, &mut errors);
    let names_path = path.child("names");
    for part in ["plural", "singular"] {
        check_text(&names_path.child(part), text(&names[part]), name::check_label, &mut errors);
    }
    for part in ["kind", "listKind"] {
        let lower = text(&names[part]).to_ascii_lowercase();
        check_text(&names_path.child(part), &lower, name::check_label, &mut errors);
    }
    check_lists(names, &names_path, &mut errors);
    let expected = format!("{}.{group}", text(&names["plural"]));
    if definition.name() != expected {
        let detail = format!("must be spec.names.plural+\".\"+spec.group, {expected}");
        errors.push(FieldError::invalid_text(FieldPath::new("metadata.name"), definition.name(), detail));
    }
    check_choice(&path.child("scope"), &spec["scope"], &["Cluster", "Namespaced"], &mut errors);
    let strategy = path.child("conversion").child("strategy");
    check_choice(&strategy, &spec["conversion"]["strategy"], &["None"], &mut errors);
    if spec["preserveUnknownFields"] == json!(true) {
        let detail = "must be false, set x-kubernetes-preserve-unknown-fields in the schema instead";
        errors.push(FieldError::invalid(path.child("preserveUnknownFields"), &json!(true), detail));
    }
    check_versions(&spec["versions"], &path.child("versions"), &mut errors);
    errors
}

/// Short names and categories are lists of labels.
fn check_lists(names: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for field in ["shortNames", "categories"] {
        let path = path.child(field);
        let list = match &names[field] {
            Value::Null => continue,
            Value::Array(list) => list,
            other => {
                errors.push(FieldError::new(path, Rule::Type, other, "must be a list of strings"));
                continue;
            }
        };
        for (i, name) in list.iter().enumerate() {
            check_text(&path.index(i), text(name), name::check_label, errors);
        }
    }
}

fn check_versions(versions: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let empty = Vec::new();
    let versions = versions.as_array().unwrap_or(&empty);
    if versions.is_empty() {
        errors.push(FieldError::required(path.clone(), "must have at least one version"));
        return;
    }
    if versions.iter().filter(|v| v["storage"] == json!(true)).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(path.clone(), &json!([]), detail));
    }
    for (i, version) in versions.iter().enumerate() {
        let path = path.index(i);
        let version_name = text(&version["name"]);
        check_text(&path.child("name"), version_name, name::check_version, errors);
        if versions[..i].iter().any(|earlier| text(&earlier["name"]) == version_name) {
            errors.push(FieldError::new(path.child("name"), Rule::Duplicate, &version["name"], ""));
        }
        for flag in ["served", "storage"] {
            if !version[flag].is_boolean() {
                errors.push(FieldError::required(path.child(flag), "must be true or false"));
            }
        }
        let columns =
            Column::read_at(&path.child("additionalPrinterColumns"), &version["additionalPrinterColumns"]);
        errors.extend(columns.err().into_iter().flatten());
        let schema_path = path.child("schema").child("openAPIV3Schema");
        match &version["schema"]["openAPIV3Schema"] {
            Value::Null => errors.push(FieldError::required(schema_path, "schemas are required")),
            source => match Schema::compile_at(&schema_path, source) {
                Ok(schema) => {
                    let fields = &version["selectableFields"];
                    errors.extend(selectable::validate(&path.child("selectableFields"), fields, &schema));
                }
                Err(wrong) => errors.extend(wrong),
            },
        }
    }
}

fn check_text(
    path: &FieldPath,
    text: &str,
    check: impl Fn(&str) -> Result<(), name::SyntaxError>,
    errors: &mut Vec<FieldError>,
) {
    if text.is_empty() {
        errors.push(FieldError::required(path.clone(), ""));
    } else if let Err(e) = check(text) {
        errors.push(FieldError::invalid_text(path.clone(), text, e.to_string()));
    }
}

fn check_choice(path: &FieldPath, value: &Value, choices: &[&str], errors: &mut Vec<FieldError>) {
    if choices.contains(&text(value)) {
        return;
    }
    let listed: Vec<String> = choices.iter().map(|c| format!("{c:?}")).collect();
    let detail = format!("supported values: {}", listed.join(", "));
    errors.push(FieldError::new(path.clone(), Rule::NotSupported, value, detail));
}

/// What may not change once a definition is there: objects are stored under it.
pub(super) fn validate_change(old: &Object, new: &Object) -> Vec<FieldError> {
    let fixed = ["/spec/group", "/spec/names/kind", "/spec/names/plural", "/spec/scope"];
    let changed = fixed.iter().filter(|pointer| old.pointer(pointer) != new.pointer(pointer));
    let error = |pointer: &&str| {
        let value = new.pointer(pointer).unwrap_or(&Value::Null);
        let path = FieldPath::new(pointer[1..].replace('/', "."));
        FieldError::invalid(path, value, "field is immutable")
    };
    let mut errors: Vec<FieldError> = changed.map(error).collect();
    let versions = new.spec()["versions"].as_array();
    let is_kept = |stored: &Value| versions.is_some_and(|all| all.iter().any(|v| v["name"] == *stored));
    let stored = old.status().get("storedVersions").and_then(Value::as_array);
    for (i, version) in stored.into_iter().flatten().enumerate().filter(|(_, stored)| !is_kept(stored)) {
        let path = FieldPath::new("status.storedVersions").index(i);
        errors.push(FieldError::invalid(path, version, "must appear in spec.versions"));
    }
    errors
}

/// Sets the status a definition gets when it is stored: kinds are served from that moment on.
pub(super) fn establish(definition: &mut Object, kinds: &Kinds, now: Timestamp) {
    let spec = definition.spec().clone();
    let mut status = definition.status().clone();
    if !status.is_object() {
        status = json!({});
    }
    let kind = defined_kind(definition);
    // Not what the status says of itself: anybody may have written that.
    let had = kinds.served_by(&kind, definition.name());
    let taken = kinds.taken(&kind.group, definition.name());
    let (given, clash) = names::accept(&spec["names"], had.as_deref(), &taken);
    let is_established = had.is_some() || clash.is_none();
    let accepted = match clash {
        None => Condition::new("NamesAccepted", Status::True, "NoConflicts", "no conflicts found"),
        Some(clash) => Condition::new("NamesAccepted", Status::False, clash.reason, clash.message),
    };
    let established = if is_established {
        let message = "the initial names have been accepted";
        Condition::new("Established", Status::True, "InitialNamesAccepted", message)
    } else {
        Condition::new("Established", Status::False, "NotAccepted", "not all names are accepted")
    };
    if is_established {
        status["acceptedNames"] = given;
    }
    condition::set(&mut status, accepted, now);
    condition::set(&mut status, established, now);
    let storage = storage_version(&spec);
    let mut stored: Vec<Value> = status["storedVersions"].as_array().cloned().unwrap_or_default();
    if !stored.iter().any(|v| text(v) == storage) {
        stored.push(storage.into());
    }
    status["storedVersions"] = stored.into();
    definition.set("status", status);
    if definition.deleted_at().is_none() {
        definition.add_finalizer(CLEANUP_FINALIZER);
    }
}

fn storage_version(spec: &Value) -> &str {
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions.filter(|v| v["storage"] == json!(true)).map(|v| text(&v["name"])).next().unwrap_or_default()
}

/// The kind that a stored definition serves.
pub(super) fn serve(
    definition: &Object,
    key: ObjectKey,
    revision: Revision,
) -> Result<Served, Vec<FieldError>> {
    let established = condition::find(definition.status(), "Established");
    if established.is_none_or(|c| c.status != Status::True) {
        let path = FieldPath::new("status.conditions");
        return Err(vec![FieldError::required(path, "the definition is not established")]);
    }
    let spec = definition.spec();
    let versions: Vec<&Value> = spec["versions"].as_array().into_iter().flatten().collect();
    let storage = storage_version(spec);
    let mut compiled = Vec::new();
    for version in &versions {
        let source = &version["schema"]["openAPIV3Schema"];
        let (schema, has_rules) = (Schema::compile(source)?, rules::are_in(source));
        compiled.push(Version { name: text(&version["name"]).into(), schema, has_rules });
    }
    let stored = versions.iter().find(|v| text(&v["name"]) == storage);
    let has_status = stored.is_some_and(|version| present::has_status(version));
    let fields = stored.and_then(|v| v["selectableFields"].as_array()).into_iter().flatten();
    let selectable_fields = fields.map(|f| text(&f["jsonPath"]).trim_start_matches('.').to_owned());
    let served = versions.iter().filter(|v| v["served"] == json!(true));
    let kind = Arc::new(Kind {
        group_kind: defined_kind(definition),
        storage_version: storage.into(),
        versions: served.map(|v| text(&v["name"]).into()).collect(),
        plural: text(&spec["names"]["plural"]).into(),
        is_namespaced: text(&spec["scope"]) == "Namespaced",
        has_status,
        has_generation: true,
        name_rule: NameRule::Subdomain,
        selectable_fields: selectable_fields.collect(),
    });
    Ok(Served {
        card: present::card(definition, kind.clone()).into(),
        kind,
        versions: compiled,
        definition: Some((key, revision)),
        is_terminating: definition.deleted_at().is_some(),
    })
}
