//! Values that make no sense are refused, and it is said which and why.

use serde_json::{Value, json};

use crate::chart::{text_of, with_a_database};

/// Sets what is at a path such as `serve.store.secretName`.
fn with(mut values: Value, path: &str, value: Value) -> Value {
    let pointer = format!("/{}", path.replace('.', "/"));
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    values.pointer_mut(parent).unwrap()[last] = value;
    values
}

#[test]
fn what_cannot_be_meant_is_refused_by_the_schema() {
    for (values, part) in [
        (json!({"server": {}}), "server"),
        (json!({"serve": {"replica": 1}}), "replica"),
        (json!({"serve": {"replicas": "3"}}), "/serve/replicas"),
        (json!({"serve": {"replicas": -1}}), "/serve/replicas"),
        (json!({"serve": {"store": {"secretName": "postgres://u:p@h/d"}}}), "/serve/store/secretName"),
        (json!({"serve": {"store": {"url": "postgres://u:p@h/d"}}}), "url"),
        (json!({"serve": {"config": {"store": "postgres://u:p@h/d"}}}), "store"),
        (json!({"serve": {"config": {"pollInterval": 30}}}), "/serve/config/pollInterval"),
        (json!({"serve": {"memberLease": "soon"}}), "/serve/memberLease"),
        (json!({"serve": {"service": {"port": 70000}}}), "/serve/service/port"),
        (json!({"serve": {"service": {"type": "Ingress"}}}), "/serve/service/type"),
        (json!({"serve": {"resources": {"limits": {"memory": "lots"}}}}), "/serve/resources/limits/memory"),
        (json!({"serve": {"logLevel": "loud"}}), "/serve/logLevel"),
        (json!({"serve": {"terminationGracePeriodSeconds": 10}}), "/serve/terminationGracePeriodSeconds"),
        (json!({"image": {"tag": "a b"}}), "/image/tag"),
        (json!({"managedReconciler": {"providers": [{"name": "a"}]}}), "endpoint"),
        (
            json!({"managedReconciler": {"rbac": {"kinds": [{"apiGroups": []}]}}}),
            "/managedReconciler/rbac/kinds/0",
        ),
        (json!({"managedReconciler": {"podDisruptionBudget": {"maxUnavailable": 0}}}), "maxUnavailable"),
    ] {
        let Some(result) = text_of(&values) else { return };
        let Err(said) = result else { panic!("{values} is taken") };
        assert!(said.contains("schema") && said.contains(part), "{part} in what {values} gives: {said}");
    }
}

#[test]
fn what_does_not_go_together_is_refused_with_what_to_do() {
    for (path, value, part) in [
        ("serve.store", json!({}), "serve.replicas: at most 1 without serve.store.secretName"),
        ("serve.keys", json!({}), "serve.keys.secretName: must be set"),
        ("serve.jwt", json!({}), "serve.jwt.secretName: must be set"),
        ("serve.tls", json!({}), "serve.tls.secretName: must be set"),
        ("serve.preStopSeconds", json!(100), "serve.preStopSeconds: must be less"),
    ] {
        let Some(result) = text_of(&with(with_a_database(), path, value)) else { return };
        let said = result.expect_err(part);
        assert!(said.contains(part), "{part} in {said}");
    }
    let one = with(with(with_a_database(), "serve.store", json!({})), "serve.replicas", json!(1));
    let Some(Err(said)) = text_of(&one) else { panic!("a leader of nobody") };
    assert!(said.contains("mean nothing without serve.store.secretName"), "{said}");
    let alone = json!({"managedReconciler": {"enabled": true, "leaderElection": {"enabled": false}}});
    let Some(Err(said)) = text_of(&alone) else { panic!("two that both work") };
    assert!(said.contains("managedReconciler.leaderElection.enabled: must be true"), "{said}");
}
