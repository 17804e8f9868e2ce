use std::sync::Arc;
use std::time::Duration;

use concert_model::{GroupVersionKind, Object};
use concert_provider::{
    Call, Class, Configuration, Details, Effect, Enumerate, Lookup, PlanAction, Provider, Token,
};
use concert_store::{Chance, SystemClock};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::Example;
use crate::cloud::{Api, Cloud, Create, Settings, ThingKey};

fn provider(settings: Settings) -> (Arc<Api>, Example) {
    let cloud = Cloud::new(settings, Chance::seeded(1));
    let api = Arc::new(Api::new(cloud, Arc::new(SystemClock::new())));
    (api.clone(), Example::new(api))
}

fn object(api_version: &str, kind: &str, fields: Value) -> Object {
    let metadata = json!({"name": "logs", "namespace": "team", "uid": "u-1"});
    let whole = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"forProvider": fields}});
    Object::from_value(whole).unwrap()
}

fn bucket(fields: Value) -> Object {
    object("cloud.concert.dev/v1alpha1", "Bucket", fields)
}

fn network() -> Object {
    object("cloud.concert.dev/v1alpha1", "Network", json!({"region": "north"}))
}

fn token(text: &str) -> Token {
    Token(text.into())
}

fn call() -> Call {
    Call::within(Duration::from_secs(5))
}

async fn created(provider: &Example, mut object: Object) -> Object {
    let created = provider.create(&object, None, &token("t"), &call()).await.unwrap();
    object.set_annotation(super::EXTERNAL_NAME, &created.delta.external_name.unwrap());
    object
}

#[tokio::test]
async fn a_life_from_create_to_delete() {
    let (api, provider) = provider(Settings::default());
    let wanted = bucket(json!({"size": 1, "region": "north"}));
    assert!(!provider.observe(&wanted, None).await.unwrap().exists);
    let mut object = created(&provider, wanted).await;

    let seen = provider.observe(&object, None).await.unwrap();
    assert!(seen.exists && seen.is_up_to_date);
    let status = seen.delta.status.unwrap();
    assert_eq!(status["conditions"][0], json!({"type": "Ready", "status": "True", "reason": "Available"}));
    assert_eq!(status["atProvider"]["state"], "ready");
    assert_eq!(Value::from(seen.delta.spec.unwrap()), json!({"forProvider": {"tier": "standard"}}));
    assert_eq!(seen.connection.get("username"), Some(b"admin".as_slice()));

    object.set("spec", json!({"forProvider": {"size": 2, "region": "north", "tier": "standard"}}));
    let seen = provider.observe(&object, None).await.unwrap();
    assert!(!seen.is_up_to_date && seen.delta.spec.is_none());
    assert_eq!(seen.diff[0].path, "spec.forProvider.size");
    provider.update(&object, None, &call()).await.unwrap();
    assert!(provider.observe(&object, None).await.unwrap().is_up_to_date);

    provider.delete(&object, None, &call()).await.unwrap();
    provider.delete(&object, None, &call()).await.unwrap();
    assert!(!provider.observe(&object, None).await.unwrap().exists);
    assert_eq!(api.cloud().truth().summary().live, 0);
}

#[tokio::test]
async fn a_lost_create_is_in_doubt_and_found_by_its_token() {
    let (_, provider) = provider(Settings { lost_answers: 1.0, ..Settings::default() });
    let object = bucket(json!({}));
    let error = provider.create(&object, None, &token("t"), &call()).await.unwrap_err();
    assert_eq!((error.class, error.effect), (Class::Transient, Effect::Unknown));
    let found = provider.lookup(&object, None, &token("t")).await.unwrap();
    assert!(
        matches!(found, Lookup::Found(delta) if delta.external_name.as_ref().unwrap().starts_with("bkt-"))
    );
    assert_eq!(provider.lookup(&object, None, &token("other")).await.unwrap(), Lookup::CertainlyNone);
    let late = provider.create(&object, None, &token("other"), &call()).await.unwrap_err();
    assert_eq!(late.effect, Effect::None);
}

#[tokio::test]
async fn plans_name_the_verb_and_touch_nothing() {
    let (api, provider) = provider(Settings::default());
    let mut object = bucket(json!({"size": 1, "region": "north"}));
    let plan = provider.plan(&object, None).await.unwrap();
    assert_eq!((plan.action, plan.changes.len()), (PlanAction::Create, 2));
    object = created(&provider, object).await;
    let verb = async |fields: Value| {
        let mut object = object.clone();
        object.set("spec", json!({ "forProvider": fields }));
        provider.plan(&object, None).await.unwrap()
    };
    assert_eq!(verb(json!({"size": 1})).await.action, PlanAction::None);
    assert_eq!(verb(json!({"size": 2})).await.action, PlanAction::Update);
    let replace = verb(json!({"size": 2, "region": "south"})).await;
    assert_eq!(replace.action, PlanAction::Replace);
    assert_eq!(replace.reason, "spec.forProvider.region cannot change in place");
    object.set_metadata("deletionTimestamp", json!("2026-11-15T20:31:16Z"));
    assert_eq!(provider.plan(&object, None).await.unwrap().action, PlanAction::Delete);
    assert_eq!(api.cloud().truth().since(1), []);
}

#[tokio::test]
async fn a_moved_region_is_refused_for_good() {
    let (_, provider) = provider(Settings::default());
    let mut object = created(&provider, bucket(json!({"region": "north"}))).await;
    object.set("spec", json!({"forProvider": {"region": "south"}}));
    let error = provider.update(&object, None, &call()).await.unwrap_err();
    assert_eq!(error.class, Class::Terminal);
    assert_eq!(error.message, "spec.forProvider.region: cannot change in place");
}

#[tokio::test]
async fn deterministic_names_are_those_of_the_objects() {
    let (_, provider) = provider(Settings::default());
    let object = created(&provider, network()).await;
    assert_eq!(object.annotation(super::EXTERNAL_NAME), Some("logs"));
    assert!(provider.observe(&network(), None).await.unwrap().exists);
}

#[tokio::test]
async fn bad_fields_foreign_kinds_and_wrong_credentials_are_told_apart() {
    let (_, provider) = provider(Settings::default());
    let class =
        async |object: Object| provider.create(&object, None, &token("t"), &call()).await.unwrap_err().class;
    assert_eq!(class(bucket(json!({"size": -1}))).await, Class::Terminal);
    assert_eq!(class(bucket(json!({"region": ""}))).await, Class::Terminal);
    assert_eq!(class(object("cloud.concert.dev/v1", "Bucket", json!({}))).await, Class::NotServed);
    let configuration = Configuration {
        name: "c".into(),
        fingerprint: "f".into(),
        object: network(),
        credentials: Details::new().with("credentials", "wrong\n"),
    };
    assert_eq!(provider.configure(&configuration).await.unwrap_err().class, Class::Denied);
}

#[tokio::test]
async fn drift_and_readiness_are_pushed() {
    let (api, provider) =
        provider(Settings { ready_after: Duration::from_millis(20), ..Settings::default() });
    let kind = bucket(json!({})).gvk().unwrap();
    let mut changes = provider.watch(&kind).await.unwrap();
    created(&provider, network()).await;
    let created = provider.create(&bucket(json!({})), None, &token("b"), &call()).await.unwrap();
    assert!(created.again_after.is_some());
    let id = created.delta.external_name.unwrap();
    let ready = changes.next().await.unwrap().unwrap();
    assert_eq!((ready.external_name.as_str(), ready.object.as_str()), (id.as_str(), "team/logs"));
    api.drift(&ThingKey::new("network", "logs"), serde_json::Map::new(), None).unwrap();
    api.vanish(&ThingKey::new("bucket", &id)).unwrap();
    assert_eq!(changes.next().await.unwrap().unwrap().external_name, id, "and not the network");
}

#[tokio::test]
async fn things_made_by_hand_can_be_found_and_imported() {
    let (api, provider) = provider(Settings::default());
    created(&provider, bucket(json!({}))).await;
    let by_hand = Create { kind: "bucket".into(), name: Some("old-one".into()), ..Create::default() };
    api.create(by_hand).await.unwrap();
    let kind = GroupVersionKind::parse("cloud.concert.dev/v1alpha1", "Bucket").unwrap();
    let what = Enumerate { kind, prefix: String::new(), configuration: None };
    let found: Vec<_> = provider.enumerate(&what).await.unwrap().collect().await;
    assert_eq!(found.len(), 1);
    let object = found[0].as_ref().unwrap().object.clone();
    assert!(provider.observe(&object, None).await.unwrap().is_up_to_date);
}
