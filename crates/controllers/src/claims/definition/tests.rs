use serde_json::json;

use super::*;

fn spec() -> Value {
    json!({
        "claim": {"apiVersion": "cache.dev/v1", "kind": "Redis"},
        "policy": {"apiVersion": "cache.dev/v1", "kind": "RedisPolicy"},
        "implementations": [{
            "class": {"apiVersion": "cloud.dev/v1", "kind": "StoreClass"},
            "managed": {"apiVersion": "cloud.dev/v1", "kind": "Store"},
            "mapping": [
                {"to": "spec.forProvider.version",
                 "expression": "'REDIS_' + claim.spec.engineVersion.replace('.', '_')"},
                {"to": "spec.forProvider.owner", "from": "claim.metadata.namespace"},
                {"to": "spec.forProvider.tier", "value": "BASIC"},
            ],
        }],
    })
}

fn definition(spec: Value) -> Object {
    Object::from_value(json!({"apiVersion": "concert.dev/v1alpha1", "kind": "ClaimDefinition",
        "metadata": {"name": "redis"}, "spec": spec}))
    .unwrap()
}

fn crd(group: &str, kind: &str, scope: &str, schema: Value) -> (GroupKind, Known) {
    let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "x"},
        "spec": {"group": group, "names": {"kind": kind}, "scope": scope, "versions": [
            {"name": "v1", "served": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]}});
    (GroupKind::new(group, kind), Known::of(&Object::from_value(object).unwrap()))
}

fn shape(mut fields: Value) -> Value {
    let text = json!({"type": "string"});
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let reference = json!({"type": "object", "properties": {"apiVersion": text, "kind": text,
        "namespace": text, "name": text, "uid": text}});
    for field in ["classRef", "resourceRef", "claimRef", "writeConnectionSecretToRef"] {
        fields[field] = reference.clone();
    }
    fields["reclaimPolicy"] = text.clone();
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": fields},
        "specTemplate": free,
        "defaultClassRef": reference,
        "status": {"type": "object", "properties": {"bindingPhase": text,
            "conditions": {"type": "array", "items": free}}}}})
}

/// The schema without the field at this path.
fn without(mut schema: Value, path: &str) -> Value {
    let mut way: Vec<&str> = path.split('.').collect();
    let last = way.pop().unwrap();
    let mut at = &mut schema;
    for step in way {
        at = &mut at["properties"][step];
    }
    at["properties"].as_object_mut().unwrap().remove(last).unwrap();
    schema
}

fn kinds() -> Kinds {
    let text = json!({"type": "string"});
    let for_provider =
        json!({"type": "object", "properties": {"version": text, "owner": text, "tier": text}});
    [
        crd("cache.dev", "Redis", "Namespaced", shape(json!({"engineVersion": text}))),
        crd("cache.dev", "RedisPolicy", "Namespaced", shape(json!({}))),
        crd("cloud.dev", "StoreClass", "Cluster", shape(json!({}))),
        crd("cloud.dev", "Store", "Cluster", shape(json!({"forProvider": for_provider}))),
    ]
    .into()
}

fn texts(all: &[Shortcoming]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn a_definition_is_read_and_its_mapping_makes_fields() {
    let (parsed, errors) = parse(&definition(spec()));
    assert_eq!(errors, []);
    let parsed = parsed.unwrap();
    assert_eq!(parsed.policy.as_ref().unwrap().group_kind.to_string(), "RedisPolicy.cache.dev");
    let mut managed = definition(json!({"forProvider": {"region": "here"}}));
    let claim = json!({"metadata": {"namespace": "team"}, "spec": {"engineVersion": "3.2"}});
    for rule in &parsed.implementations[0].mapping {
        rule.apply(&mut managed, &claim, &json!({})).unwrap();
    }
    let expected = json!({"region": "here", "version": "REDIS_3_2", "owner": "team", "tier": "BASIC"});
    assert_eq!(managed.spec()["forProvider"], expected);
}

#[test]
fn what_comes_to_nothing_leaves_the_field_as_it_is() {
    let mut spec = spec();
    spec["implementations"][0]["mapping"] = json!([
        {"to": "spec.a", "from": "claim.spec.nothing"},
        {"to": "spec.a", "expression": "claim.spec.?nothing"},
    ]);
    let parsed = parse(&definition(spec)).0.unwrap();
    let mut managed = definition(json!({"a": 1}));
    for rule in &parsed.implementations[0].mapping {
        rule.apply(&mut managed, &json!({"spec": {}}), &json!({})).unwrap();
    }
    assert_eq!(managed.spec(), &json!({"a": 1}));
}

#[test]
fn an_expression_that_fails_says_where() {
    let parsed = parse(&definition(spec())).0.unwrap();
    let mut managed = definition(json!({}));
    let error = parsed.implementations[0].mapping[0].apply(&mut managed, &json!({"spec": {}}), &json!({}));
    assert_eq!(error.unwrap_err(), "spec.implementations[0].mapping[0]: no such key: engineVersion");
}

#[test]
fn what_is_wrong_is_said_by_place_and_the_rest_is_used() {
    let at = "spec.implementations[1]";
    for (broken, place, words) in [
        (
            json!({"mapping": [{"to": "spec.a", "expression": "claim."}]}),
            ".mapping[0].expression",
            "too early",
        ),
        (
            json!({"mapping": [{"to": "spec.a", "expression": "other.b"}]}),
            ".mapping[0].expression",
            "undeclared",
        ),
        (json!({"mapping": [{"to": "metadata.name", "value": 1}]}), ".mapping[0].to", "spec."),
        (json!({"mapping": [{"to": "spec..a", "value": 1}]}), ".mapping[0].to", "empty part"),
        (json!({"mapping": [{"to": "spec.l[0]", "value": 1}]}), ".mapping[0].to", "list"),
        (
            json!({"mapping": [{"to": "spec.claimRef.name", "value": 1}]}),
            ".mapping[0].to",
            "not for a mapping",
        ),
        (json!({"mapping": [{"to": "spec.a", "from": "managed.b"}]}), ".mapping[0].from", "claim."),
        (json!({"mapping": [{"to": "spec.a"}]}), ".mapping[0]", "exactly one"),
        (json!({"mapping": [{"value": 1}]}), ".mapping[0].to", "name the field"),
        (json!({"class": null}), ".class", "name a kind"),
        (json!({"managed": {"apiVersion": "a/b/c", "kind": "X"}}), ".managed", "VERSION"),
        (json!({"class": {"apiVersion": "cloud.dev/v1", "kind": "StoreClass"}}), "", "shares"),
    ] {
        let mut spec = spec();
        let mut second = json!({"class": {"apiVersion": "b.dev/v1", "kind": "BClass"},
            "managed": {"apiVersion": "b.dev/v1", "kind": "B"}});
        second.as_object_mut().unwrap().extend(broken.as_object().unwrap().clone());
        spec["implementations"].as_array_mut().unwrap().push(second);
        let (parsed, errors) = parse(&definition(spec));
        let [error] = &errors[..] else { panic!("{broken}: {errors:?}") };
        assert_eq!(error.field.as_str(), format!("{at}{place}"), "{broken}");
        assert!(error.to_string().contains(words), "{error}");
        // One whose kinds can be read still lets go of what is bound by it, and makes nothing new.
        let parsed = parsed.unwrap();
        let usable = parsed.implementations.iter().filter(|it| it.unusable.is_none());
        assert_eq!(usable.count(), 1);
        let is_kept = broken.get("mapping").is_some();
        assert_eq!(parsed.implementations.len(), if is_kept { 2 } else { 1 }, "{broken}");
    }
}

#[test]
fn without_a_claim_or_an_implementation_there_is_little_to_do() {
    let (parsed, errors) = parse(&definition(json!({})));
    assert_eq!(parsed, None);
    let fields: Vec<&str> = errors.iter().map(|it| it.field.as_str()).collect();
    assert_eq!(fields, ["spec.claim", "spec.implementations"]);
}

#[test]
fn kinds_that_are_as_they_must_be_are_fine() {
    let checked = check(&parse(&definition(spec())).0.unwrap(), &kinds());
    let found = (texts(&checked.claim), texts(&checked.policy), texts(&checked.each[0]));
    assert_eq!(found, (vec![], vec![], vec![]));
}

#[test]
fn kinds_that_are_not_there_yet_are_waited_for() {
    let parsed = parse(&definition(spec())).0.unwrap();
    let mut fewer = kinds();
    fewer.remove(&GroupKind::new("cache.dev", "RedisPolicy"));
    fewer.remove(&GroupKind::new("cloud.dev", "Store"));
    let Checked { claim, policy, each } = check(&parsed, &fewer);
    assert_eq!(texts(&claim), Vec::<String>::new());
    assert_eq!(
        texts(&policy),
        ["spec.policy: RedisPolicy.cache.dev is not defined: apply its CustomResourceDefinition"]
    );
    assert!(matches!(&each[0][..], [Shortcoming::Missing { .. }]), "{:?}", each[0]);
}

#[test]
fn a_version_that_is_not_served_is_waited_for() {
    let mut spec = spec();
    spec["claim"]["apiVersion"] = json!("cache.dev/v2");
    let checked = check(&parse(&definition(spec)).0.unwrap(), &kinds());
    assert_eq!(texts(&checked.claim), ["spec.claim: Redis.cache.dev is not served as v2"]);
}

#[test]
fn scope_and_phase_must_fit() {
    let parsed = parse(&definition(spec())).0.unwrap();
    let mut others = kinds();
    others.extend([crd("cloud.dev", "StoreClass", "Namespaced", shape(json!({})))]);
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    others.extend([crd("cloud.dev", "Store", "Cluster", free)]);
    let Checked { each, .. } = check(&parsed, &others);
    assert_eq!(
        texts(&each[0]),
        [
            "spec.implementations[0].class: Forbidden: StoreClass.cloud.dev must have the scope Cluster",
            "spec.implementations[0].managed: Forbidden: Store.cloud.dev cannot be bound: its schema has no status.bindingPhase",
        ]
    );
}

#[test]
fn kinds_whose_schemas_drop_what_binds_them_are_refused_by_field() {
    for (group, kind, scope, lost) in [
        ("cache.dev", "Redis", "Namespaced", "spec.classRef"),
        ("cache.dev", "Redis", "Namespaced", "spec.resourceRef.name"),
        ("cache.dev", "Redis", "Namespaced", "spec.writeConnectionSecretToRef"),
        ("cache.dev", "Redis", "Namespaced", "status.bindingPhase"),
        ("cache.dev", "Redis", "Namespaced", "status.conditions"),
        ("cache.dev", "RedisPolicy", "Namespaced", "defaultClassRef"),
        ("cloud.dev", "StoreClass", "Cluster", "specTemplate"),
        ("cloud.dev", "Store", "Cluster", "spec.claimRef"),
        ("cloud.dev", "Store", "Cluster", "spec.claimRef.uid"),
        ("cloud.dev", "Store", "Cluster", "spec.classRef"),
        ("cloud.dev", "Store", "Cluster", "spec.reclaimPolicy"),
        ("cloud.dev", "Store", "Cluster", "spec.writeConnectionSecretToRef.namespace"),
    ] {
        let mut spec = spec();
        spec["implementations"][0]["mapping"] = json!([]);
        let parsed = parse(&definition(spec)).0.unwrap();
        let mut others = kinds();
        others.extend([crd(group, kind, scope, without(shape(json!({})), lost))]);
        let wrong = check(&parsed, &others).wrong();
        let [error] = &wrong[..] else { panic!("{kind} without {lost}: {wrong:?}") };
        assert_eq!(error.detail, format!("{kind}.{group} must have {lost} in its schema"));
        // What is not in the schema is there all the same where unknown fields are kept.
        let mut free = without(shape(json!({})), lost);
        let (way, _) = lost.rsplit_once('.').unwrap_or_default();
        let mut at = &mut free;
        for step in way.split('.').filter(|it| !it.is_empty()) {
            at = &mut at["properties"][step];
        }
        at["x-kubernetes-preserve-unknown-fields"] = json!(true);
        others.extend([crd(group, kind, scope, free)]);
        assert_eq!(check(&parsed, &others).wrong(), [], "{kind} without {lost}");
    }
}

#[test]
fn fields_that_the_schemas_do_not_have_are_found() {
    for (rule, expected) in [
        (
            json!({"to": "spec.forProvider.verison", "value": 1}),
            "mapping[0].to: Invalid value: \"spec.forProvider.verison\": there is no field \"verison\"",
        ),
        (
            json!({"to": "spec.forProvider.version", "from": "claim.spec.verison"}),
            "mapping[0].from: Invalid value: \"claim.spec.verison\": there is no field \"verison\"",
        ),
        (
            json!({"to": "spec.forProvider.version", "expression": "claim.spec.verison"}),
            "mapping[0].expression: Invalid value: \"claim.spec.verison\": undefined field 'verison'",
        ),
    ] {
        let mut spec = spec();
        spec["implementations"][0]["mapping"] = json!([rule]);
        let Checked { each, .. } = check(&parse(&definition(spec)).0.unwrap(), &kinds());
        assert_eq!(texts(&each[0]), [format!("spec.implementations[0].{expected}")]);
    }
}
