//! What the managed resource of a claim looks like.

use concert_model::Object;
use serde_json::{Map, Value, json};

use super::super::definition::Implementation;
use super::super::reference;
use super::super::vocabulary::annotation;

/// What Kubernetes allows in a label, and most clouds in a name.
const NAME_BYTES_MAX: usize = 63;
/// Where connection secrets of a class go: not a field of the managed resource.
const SECRETS_NAMESPACE: &str = "writeConnectionSecretsToNamespace";

/// The name of the managed resource of a claim. Whoever makes it, after whatever crash, makes the same.
pub fn name_of(claim: &Object) -> String {
    let uid = claim.uid().map(|it| it.to_string()).unwrap_or_default();
    let own = uid.rsplit('-').next().unwrap_or_default();
    let readable = format!("{}-{}", claim.namespace(), claim.name());
    let room = NAME_BYTES_MAX.saturating_sub(own.len() + 1);
    let readable = &readable[..readable.floor_char_boundary(room)];
    format!("{}-{own}", readable.trim_end_matches(['-', '.']))
}

/// The managed resource that `class` makes of `claim`.
///
/// # Errors
/// In words: what has to change in the class, the claim or the definition.
pub fn configure(claim: &Object, class: &Object, by: &Implementation) -> Result<Object, String> {
    let class_name = reference::named(class);
    let template = class.get("specTemplate").as_object().cloned().unwrap_or_default();
    let Some(namespace) = template.get(SECRETS_NAMESPACE).and_then(Value::as_str).filter(|it| !it.is_empty())
    else {
        return Err(format!(
            "{class_name} does not say where secrets go: set specTemplate.{SECRETS_NAMESPACE}"
        ));
    };
    let mut managed = Object::new(&by.managed, "", &name_of(claim));
    let mut spec: Map<String, Value> = template.clone();
    spec.remove(SECRETS_NAMESPACE);
    managed.set("spec", Value::Object(spec));
    let (claim_value, class_value) = (claim.clone().into_value(), class.clone().into_value());
    for rule in &by.mapping {
        rule.apply(&mut managed, &claim_value, &class_value)?;
    }
    let uid = claim.uid().ok_or("the claim has no uid")?;
    let spec = managed.get_mut("spec");
    if !reference::is_set(spec, "reclaimPolicy") {
        spec["reclaimPolicy"] = json!("Delete");
    }
    spec["writeConnectionSecretToRef"] = json!({"namespace": namespace, "name": &*uid.0});
    spec["claimRef"] = reference::to(claim);
    spec["classRef"] = reference::to(class);
    if let Some(name) = claim.annotation(annotation::EXTERNAL_NAME) {
        if !by.allows_external_names {
            return Err(format!(
                "the claim may not say which external resource it means: remove the annotation {}, or have the \
                 ClaimDefinition allow external names",
                annotation::EXTERNAL_NAME
            ));
        }
        managed.set_annotation(annotation::EXTERNAL_NAME, name);
    }
    Ok(managed)
}

#[cfg(test)]
mod tests {
    use concert_model::{FieldPath, GroupKind};

    use super::super::super::definition::Rule;
    use super::*;

    fn claim(name: &str) -> Object {
        Object::from_value(json!({"apiVersion": "cache.dev/v1", "kind": "Redis",
            "metadata": {"name": name, "namespace": "team-a", "uid": "11111111-2222-4333-8444-555555555555"},
            "spec": {"engineVersion": "3.2"}}))
        .unwrap()
    }

    fn class() -> Object {
        Object::from_value(json!({"apiVersion": "cloud.dev/v1", "kind": "StoreClass",
            "metadata": {"name": "ha", "uid": "c1"},
            "specTemplate": {"writeConnectionSecretsToNamespace": "system", "providerRef": {"name": "gcp"},
                "reclaimPolicy": "Retain", "forProvider": {"tier": "HA"}}}))
        .unwrap()
    }

    fn implementation() -> Implementation {
        let rule = json!({"to": "spec.forProvider.redisVersion",
            "expression": "has(class.specTemplate.forProvider.redisVersion) ? null \
                : 'REDIS_' + claim.spec.engineVersion.replace('.', '_')"});
        Implementation {
            index: 0,
            class: GroupKind::new("cloud.dev", "StoreClass").at_version("v1"),
            managed: GroupKind::new("cloud.dev", "Store").at_version("v1"),
            mapping: vec![Rule::read(&rule, &FieldPath::new("mapping")).unwrap()],
            allows_external_names: false,
            unusable: None,
        }
    }

    #[test]
    fn the_class_and_the_claim_make_the_managed_resource() {
        let managed = configure(&claim("app"), &class(), &implementation()).unwrap();
        assert_eq!(managed.name(), "team-a-app-555555555555");
        assert_eq!(
            managed.spec(),
            &json!({
                "providerRef": {"name": "gcp"},
                "reclaimPolicy": "Retain",
                "forProvider": {"tier": "HA", "redisVersion": "REDIS_3_2"},
                "writeConnectionSecretToRef":
                    {"namespace": "system", "name": "11111111-2222-4333-8444-555555555555"},
                "claimRef": {"apiVersion": "cache.dev/v1", "kind": "Redis", "namespace": "team-a",
                    "name": "app", "uid": "11111111-2222-4333-8444-555555555555"},
                "classRef": {"apiVersion": "cloud.dev/v1", "kind": "StoreClass", "name": "ha", "uid": "c1"},
            })
        );
    }

    #[test]
    fn what_the_class_says_comes_before_the_claim() {
        let mut class = class();
        class.get_mut("specTemplate")["forProvider"]["redisVersion"] = json!("REDIS_5_0");
        let managed = configure(&claim("app"), &class, &implementation()).unwrap();
        assert_eq!(managed.spec()["forProvider"]["redisVersion"], "REDIS_5_0");
    }

    #[test]
    fn a_class_that_says_nothing_about_reclaiming_deletes() {
        let mut class = class();
        class.get_mut("specTemplate")["reclaimPolicy"] = json!(null);
        let managed = configure(&claim("app"), &class, &implementation()).unwrap();
        assert_eq!(managed.spec()["reclaimPolicy"], "Delete");
    }

    #[test]
    fn a_class_must_say_where_secrets_go() {
        let mut class = class();
        class.get_mut("specTemplate")[SECRETS_NAMESPACE] = json!(null);
        let error = configure(&claim("app"), &class, &implementation()).unwrap_err();
        assert_eq!(
            error,
            "StoreClass ha does not say where secrets go: set specTemplate.writeConnectionSecretsToNamespace"
        );
    }

    #[test]
    fn external_names_are_for_those_who_are_allowed_to_say_them() {
        let mut claim = claim("app");
        claim.set_annotation(annotation::EXTERNAL_NAME, "somebody-elses");
        let error = configure(&claim, &class(), &implementation()).unwrap_err();
        assert!(error.contains("remove the annotation"), "{error}");
        let allowed = Implementation { allows_external_names: true, ..implementation() };
        let managed = configure(&claim, &class(), &allowed).unwrap();
        assert_eq!(managed.annotation(annotation::EXTERNAL_NAME), Some("somebody-elses"));
    }

    #[test]
    fn a_mapping_that_fails_says_where() {
        let mut claim = claim("app");
        claim.set("spec", json!({}));
        let error = configure(&claim, &class(), &implementation()).unwrap_err();
        assert_eq!(error, "mapping: no such key: engineVersion");
    }

    #[test]
    fn names_are_short_enough_and_tell_claims_apart() {
        let long = name_of(&claim(&"x".repeat(200)));
        assert_eq!(long.len(), NAME_BYTES_MAX);
        assert!(long.starts_with("team-a-xxx") && long.ends_with("-555555555555"), "{long}");
        assert_eq!(name_of(&claim(&format!("{}.", "y".repeat(42)))).matches(".-").count(), 0);
        let mut other = claim("app");
        other.set_metadata("uid", json!("11111111-2222-4333-8444-666666666666"));
        assert_ne!(name_of(&claim("app")), name_of(&other));
    }
}
