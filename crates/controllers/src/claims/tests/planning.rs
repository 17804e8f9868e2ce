use concert_model::Object;
use serde_json::{Value, json};

use super::world::{World, class_ref, is_default, store_ref};
use crate::claims::bind::configure::name_of;
use crate::claims::plan::{Wanted, wanted};

async fn planned(world: &World, name: &str, spec: Value) -> Wanted {
    let claim = json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "metadata": {"name": name, "namespace": "team"}, "spec": spec});
    planned_of(world, claim).await
}

async fn planned_of(world: &World, claim: Value) -> Wanted {
    let kind = concert_model::GroupKind::new("cache.crossplane.io", "RedisCluster");
    let ensemble = world.claims.ensemble_of(&kind).unwrap();
    wanted(&world.local, &ensemble, &Object::from_value(claim).unwrap()).await.unwrap()
}

#[track_caller]
fn assert_waits(planned: &Wanted, words: &str) {
    let Wanted::Waits(why) = planned else { panic!("{planned:?}") };
    assert!(why.contains(words), "{why}");
}

#[track_caller]
fn assert_made_by(planned: &Wanted, name: &str) {
    let Wanted::Made { managed, class } = planned else { panic!("{planned:?}") };
    assert_eq!(class, &format!("CloudMemorystoreInstanceClass {name}"));
    assert_eq!(managed.kind(), "CloudMemorystoreInstance");
}

#[tokio::test(start_paused = true)]
async fn a_plan_finds_the_class_that_the_claim_would_get() {
    let world = World::new().await;
    assert_waits(&planned(&world, "a", json!({})).await, "unable to locate a policy");
    assert_waits(&planned(&world, "a", json!({"classRef": class_ref("none")})).await, "none does not exist");
    world.class("labelled", json!({"labels": {"grade": "prod"}}), json!({})).await;
    world.class("usual", is_default(), json!({})).await;
    assert_made_by(&planned(&world, "a", json!({"classRef": class_ref("labelled")})).await, "labelled");
    let selector = json!({"classSelector": {"matchLabels": {"grade": "prod"}}});
    assert_made_by(&planned(&world, "a", selector).await, "labelled");
    let nothing = json!({"classSelector": {"matchLabels": {"grade": "test"}}});
    assert_waits(&planned(&world, "a", nothing).await, "no class matches spec.classSelector");
    assert_made_by(&planned(&world, "a", json!({})).await, "usual");
    world
        .create(json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisClusterPolicy",
            "metadata": {"name": "p", "namespace": "team"}, "defaultClassRef": class_ref("labelled")}))
        .await;
    assert_made_by(&planned(&world, "a", json!({})).await, "labelled");
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_what_is_there_already_looks_whose_it_is() {
    let world = World::new().await;
    let spec = || json!({"resourceRef": store_ref("legacy")});
    assert_waits(&planned(&world, "a", spec()).await, "CloudMemorystoreInstance legacy does not exist");
    let store = world.store("legacy", json!({})).await;
    assert_eq!(planned(&world, "a", spec()).await, Wanted::Named(store));
    world.redis("a", spec()).await;
    assert!(matches!(planned(&world, "a", spec()).await, Wanted::Named(_)), "it is its own");
    assert_waits(&planned(&world, "b", spec()).await, "belongs to another claim (a)");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_held_and_not_made_yet_is_planned_by_its_class() {
    let world = World::new().await;
    let claim = world.redis("a", json!({"classRef": class_ref("late")})).await;
    let own = name_of(&world.get(&claim).await);
    world.patch(&claim, json!({"spec": {"resourceRef": store_ref(&own)}})).await;
    let planned = planned_of(&world, world.get(&claim).await.into_value()).await;
    assert_waits(&planned, "CloudMemorystoreInstanceClass late does not exist");
}

#[tokio::test(start_paused = true)]
async fn a_plan_believes_no_uid() {
    let world = World::new().await;
    world.class("c", json!({}), json!({})).await;
    let claim = world.redis("theirs", json!({"classRef": class_ref("c")})).await;
    let uid = world.get(&claim).await.uid().unwrap().to_string();
    let made = world.managed(&claim).await.unwrap().name().to_owned();
    let forged = json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "metadata": {"name": "forged", "namespace": "team", "uid": uid},
        "spec": {"classRef": class_ref("c")}});
    let Wanted::Made { managed, .. } = planned_of(&world, forged).await else { panic!() };
    assert_ne!(managed.name().rsplit('-').next(), made.rsplit('-').next());
}

#[tokio::test(start_paused = true)]
async fn a_plan_says_why_nothing_is_made_now() {
    let world = World::new().await;
    let definition = concert_model::ObjectKey::cluster(crate::claims::definition::kind(), "bucket");
    let mut broken = world.get(&definition).await.into_value();
    broken["spec"]["implementations"][0]["mapping"][0]["from"] = json!("claim.spec.nothing");
    world.patch(&definition, json!({"spec": broken["spec"]})).await;
    let kind = concert_model::GroupKind::new("storage.crossplane.io", "Bucket");
    let ensemble = world.claims.ensemble_of(&kind).unwrap();
    let reference =
        json!({"apiVersion": "storage.aws.crossplane.io/v1beta1", "kind": "S3BucketClass", "name": "c"});
    let bucket = json!({"apiVersion": "storage.crossplane.io/v1alpha1", "kind": "Bucket",
        "metadata": {"name": "b", "namespace": "team"}, "spec": {"classRef": reference}});
    let planned = wanted(&world.local, &ensemble, &Object::from_value(bucket).unwrap()).await.unwrap();
    assert_waits(
        &planned,
        "ClaimDefinition bucket makes nothing now: spec.implementations[0].mapping[0].from",
    );
}
