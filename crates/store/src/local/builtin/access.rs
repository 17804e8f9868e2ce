//! Roles and bindings: who may do what. Their meaning is the API's; here is what they must be like.

use concert_model::metadata::NameRule;
use concert_model::{FieldError, FieldPath, LabelSelector, Object, Rule};
use serde_json::{Value, json};

use super::{Told, plain, texts};
use crate::kind::Kind;

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";
const CLUSTER_ROLE: &str = "ClusterRole";
const ROLE_BINDING: &str = "RoleBinding";
const CLUSTER_ROLE_BINDING: &str = "ClusterRoleBinding";
const CREATED: (&str, &str, &str, i64) = ("Created At", "string", ".metadata.creationTimestamp", 0);

pub(super) fn all() -> Vec<Told> {
    let kind = |kind: &str, plural: &str, is_namespaced| Kind {
        is_namespaced,
        name_rule: NameRule::PathSegment,
        ..plain(GROUP, "v1", kind, plural)
    };
    let rule = json!({"type": "object", "properties": {"apiGroups": texts(), "resources": texts(), "verbs": texts(),
        "resourceNames": texts(), "nonResourceURLs": texts()}});
    let rules = json!({"type": "array", "items": rule, "nullable": true});
    let text = json!({"type": "string"});
    let expression = json!({"type": "object",
        "properties": {"key": text, "operator": text, "values": texts()}});
    let selector = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "matchLabels": {"type": "object", "additionalProperties": text},
        "matchExpressions": {"type": "array", "items": expression},
    }});
    let aggregation = json!({"type": "object",
        "properties": {"clusterRoleSelectors": {"type": "array", "items": selector}}});
    let role_ref = json!({"type": "object", "x-kubernetes-map-type": "atomic",
        "properties": {"apiGroup": text, "kind": text, "name": text}});
    let subject = json!({"type": "object", "x-kubernetes-map-type": "atomic",
        "properties": {"apiGroup": text, "kind": text, "name": text, "namespace": text}});
    let subjects = json!({"type": "array", "items": subject, "nullable": true});
    let role = |kind, fields| Told { columns: &[CREATED], ..Told::new(kind, fields) };
    let binding = |kind| Told {
        columns: &[
            ("Role", "string", ".roleRef.name", 0),
            ("Age", "date", ".metadata.creationTimestamp", 0),
            ("Role Kind", "string", ".roleRef.kind", 1),
            ("Subjects", "string", ".subjects[*].name", 1),
        ],
        ..Told::new(kind, json!({"roleRef": role_ref, "subjects": subjects}))
    };
    vec![
        role(kind("Role", "roles", true), json!({"rules": rules})),
        role(
            kind(CLUSTER_ROLE, "clusterroles", false),
            json!({"rules": rules, "aggregationRule": aggregation}),
        ),
        binding(kind(ROLE_BINDING, "rolebindings", true)),
        binding(kind(CLUSTER_ROLE_BINDING, "clusterrolebindings", false)),
    ]
}

/// Fills in the groups that a binding may leave out.
pub(super) fn fill_in(object: &mut Object) {
    if !matches!(object.kind(), ROLE_BINDING | CLUSTER_ROLE_BINDING) {
        return;
    }
    if let Value::Object(role) = object.get_mut("roleRef") {
        role.entry("apiGroup").or_insert_with(|| GROUP.into());
    }
    if object.get("subjects").is_null() {
        return;
    }
    for subject in object.get_mut("subjects").as_array_mut().into_iter().flatten() {
        let is_named = matches!(subject["kind"].as_str(), Some("User" | "Group"));
        if let Value::Object(subject) = subject
            && is_named
        {
            subject.entry("apiGroup").or_insert_with(|| GROUP.into());
        }
    }
}

/// All that is wrong with a role or binding and that its schema cannot say.
pub(super) fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match object.kind() {
        "Role" | CLUSTER_ROLE => check_role(object, &mut errors),
        ROLE_BINDING | CLUSTER_ROLE_BINDING => {
            check_role_ref(object, &mut errors);
            let path = FieldPath::new("subjects");
            for (i, subject) in object.get("subjects").as_array().into_iter().flatten().enumerate() {
                check_subject(object, subject, &path.index(i), &mut errors);
            }
        }
        // Somebody else's, from a definition.
        _ => {}
    }
    errors
}

fn check_role(object: &Object, errors: &mut Vec<FieldError>) {
    let (path, is_namespaced) = (FieldPath::new("rules"), object.kind() == "Role");
    for (i, rule) in object.get("rules").as_array().into_iter().flatten().enumerate() {
        check_policy(rule, is_namespaced, &path.index(i), errors);
    }
    let path = FieldPath::new("aggregationRule.clusterRoleSelectors");
    let selectors = object.get("aggregationRule").get("clusterRoleSelectors").and_then(Value::as_array);
    for (i, selector) in selectors.into_iter().flatten().enumerate() {
        errors.extend(LabelSelector::from_json(&path.index(i), selector).err().into_iter().flatten());
    }
}

fn check_policy(rule: &Value, is_namespaced: bool, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let has = |field: &str| rule[field].as_array().is_some_and(|list| !list.is_empty());
    if !has("verbs") {
        errors.push(FieldError::required(path.child("verbs"), "verbs must contain at least one value"));
    }
    if has("nonResourceURLs") {
        let path = path.child("nonResourceURLs");
        if is_namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(path, &rule["nonResourceURLs"], detail));
        } else if has("apiGroups") || has("resources") || has("resourceNames") {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(path, &rule["nonResourceURLs"], detail));
        }
        return;
    }
    for (field, what) in [("apiGroups", "api group"), ("resources", "resource")] {
        if !has(field) {
            let detail = format!("resource rules must supply at least one {what}");
            errors.push(FieldError::required(path.child(field), detail));
        }
    }
}

fn check_role_ref(object: &Object, errors: &mut Vec<FieldError>) {
    let (role, path) = (object.get("roleRef"), FieldPath::new("roleRef"));
    check_one_of(&role["apiGroup"], &[GROUP], path.child("apiGroup"), errors);
    let is_cluster_wide = object.kind() == CLUSTER_ROLE_BINDING;
    let kinds: &[&str] = if is_cluster_wide { &[CLUSTER_ROLE] } else { &["Role", CLUSTER_ROLE] };
    check_one_of(&role["kind"], kinds, path.child("kind"), errors);
    check_name(&role["name"], NameRule::PathSegment, path.child("name"), errors);
}

fn check_subject(binding: &Object, subject: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let kind = subject["kind"].as_str().unwrap_or_default();
    match kind {
        "ServiceAccount" => {
            check_name(&subject["name"], NameRule::Subdomain, path.child("name"), errors);
            if subject["apiGroup"].as_str().is_some_and(|group| !group.is_empty()) {
                check_one_of(&subject["apiGroup"], &[""], path.child("apiGroup"), errors);
            }
            let is_placed = subject["namespace"].as_str().is_some_and(|name| !name.is_empty());
            if binding.kind() == CLUSTER_ROLE_BINDING && !is_placed {
                errors.push(FieldError::required(path.child("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if subject["name"].as_str().is_none_or(str::is_empty) {
                errors.push(FieldError::required(path.child("name"), ""));
            }
            check_one_of(&subject["apiGroup"], &[GROUP], path.child("apiGroup"), errors);
        }
        _ => {
            check_one_of(&subject["kind"], &["ServiceAccount", "User", "Group"], path.child("kind"), errors);
        }
    }
}

fn check_name(name: &Value, rule: NameRule, path: FieldPath, errors: &mut Vec<FieldError>) {
    let name = name.as_str().unwrap_or_default();
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if let Err(error) = rule.check(name) {
        errors.push(FieldError::invalid_text(path, name, error.to_string()));
    }
}

fn check_one_of(value: &Value, choices: &[&str], path: FieldPath, errors: &mut Vec<FieldError>) {
    if value.as_str().is_some_and(|value| choices.contains(&value)) {
        return;
    }
    let listed: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
    let detail = format!("supported values: {}", listed.join(", "));
    errors.push(FieldError::new(path, Rule::NotSupported, value, detail));
}

/// A binding stays with its role: who was allowed to bind one was not asked about another.
pub(super) fn validate_change(old: &Object, new: &Object) -> Vec<FieldError> {
    if old.get("roleRef") == new.get("roleRef") {
        return Vec::new();
    }
    vec![FieldError::invalid(FieldPath::new("roleRef"), new.get("roleRef"), "cannot change roleRef")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(kind: &str, fields: Value) -> Vec<String> {
        let mut whole = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind});
        whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let mut object = Object::from_value(whole).unwrap();
        fill_in(&mut object);
        validate(&object).iter().map(|error| error.field.to_string()).collect()
    }

    #[test]
    fn rules_speak_of_resources_or_of_paths() {
        let good = json!({"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
        assert!(fields("Role", good.clone()).is_empty());
        assert!(fields("ClusterRole", good).is_empty());
        for (rule, field) in [
            (json!({"apiGroups": [""], "resources": ["a"]}), "rules[0].verbs"),
            (json!({"resources": ["a"], "verbs": ["get"]}), "rules[0].apiGroups"),
            (json!({"apiGroups": [""], "verbs": ["get"]}), "rules[0].resources"),
            (
                json!({"nonResourceURLs": ["/a"], "resources": ["a"], "verbs": ["get"]}),
                "rules[0].nonResourceURLs",
            ),
        ] {
            assert_eq!(fields("ClusterRole", json!({"rules": [rule]})), [field]);
        }
        let path = json!({"rules": [{"nonResourceURLs": ["/version"], "verbs": ["get"]}]});
        assert!(fields("ClusterRole", path.clone()).is_empty());
        assert_eq!(fields("Role", path), ["rules[0].nonResourceURLs"]);
        assert!(fields("ClusterRole", json!({"aggregationRule": {}})).is_empty());
    }

    #[test]
    fn selectors_of_an_aggregation_must_be_selectors() {
        let of = |selector: Value| json!({"aggregationRule": {"clusterRoleSelectors": [selector]}});
        let good =
            json!({"matchLabels": {"to": "view"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]});
        assert!(fields("ClusterRole", of(good)).is_empty());
        let place = "aggregationRule.clusterRoleSelectors[0]";
        for (bad, field) in [
            (json!({"matchLabels": "to=view"}), ".matchLabels"),
            (json!({"matchExpressions": {"key": "a"}}), ".matchExpressions"),
            (json!({"matchExpressions": [{"key": "a", "operator": "Is"}]}), ".matchExpressions[0]"),
        ] {
            assert_eq!(fields("ClusterRole", of(bad)), [format!("{place}{field}")]);
        }
    }

    #[test]
    fn bindings_name_a_role_and_whom() {
        let binding = |role: Value, subject: Value| json!({"roleRef": role, "subjects": [subject]});
        let (role, user) =
            (json!({"kind": "ClusterRole", "name": "a"}), json!({"kind": "User", "name": "x"}));
        assert!(fields("RoleBinding", binding(role.clone(), user.clone())).is_empty());
        assert!(fields("ClusterRoleBinding", binding(role.clone(), user.clone())).is_empty());
        let own = json!({"kind": "Role", "name": "a"});
        assert!(fields("RoleBinding", binding(own.clone(), user.clone())).is_empty());
        assert_eq!(fields("ClusterRoleBinding", binding(own, user)), ["roleRef.kind"]);
        for (subject, field) in [
            (json!({"kind": "Robot", "name": "x"}), "subjects[0].kind"),
            (json!({"kind": "User"}), "subjects[0].name"),
            (json!({"kind": "Group", "name": "x", "apiGroup": "other"}), "subjects[0].apiGroup"),
            (json!({"kind": "ServiceAccount", "name": "x"}), "subjects[0].namespace"),
            (json!({"kind": "ServiceAccount", "name": "X", "namespace": "a"}), "subjects[0].name"),
        ] {
            assert_eq!(fields("ClusterRoleBinding", binding(role.clone(), subject)), [field]);
        }
        let local = json!({"kind": "ServiceAccount", "name": "x"});
        assert!(fields("RoleBinding", binding(role, local)).is_empty());
    }
}
