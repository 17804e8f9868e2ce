use concert_store::Clock;
use serde_json::json;
use std::time::Duration;

use super::world::{World, class_ref, secret};

#[tokio::test(start_paused = true)]
async fn the_claims_secret_follows_within_a_second() {
    let world = World::new().await;
    world.class("c", json!({}), json!({})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("c")})).await;
    let uid = world.get(&claim).await.uid().unwrap();
    let source = secret("system", &uid.0);
    let mut changed = world.get(&source).await;
    changed.get_mut("data")["extra"] = json!("bmV3");
    concert_store::Store::update(&world.local, changed, &super::world::by()).await.unwrap();
    world.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(world.get(&secret("team", "app-conn")).await.get("data")["extra"], "bmV3");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_published_anew_is_followed_within_a_second() {
    let world = World::new().await;
    world.class("c", json!({}), json!({})).await;
    let claim = world.redis("app", json!({"classRef": class_ref("c")})).await;
    let source = secret("system", &world.get(&claim).await.uid().unwrap().0);
    let mut anew = world.get(&source).await.into_value();
    concert_store::Store::delete(&world.local, &source, &Default::default(), &super::world::by())
        .await
        .unwrap();
    // Another object of the same name and owner, which has agreed to nothing.
    let owners = anew["metadata"]["ownerReferences"].clone();
    anew["metadata"] = json!({"namespace": "system", "name": &*source.name, "ownerReferences": owners});
    anew["data"]["extra"] = json!("bmV3");
    world.create(anew).await;
    world.clock.sleep(Duration::from_secs(1)).await;
    let target = world.get(&secret("team", "app-conn")).await;
    assert_eq!(target.get("data")["extra"], "bmV3");
    let consent = format!("to.propagate.crossplane.io/{}", target.uid().unwrap().0);
    assert_eq!(world.get(&source).await.annotation(&consent), Some("team/app-conn"));
}

#[tokio::test(start_paused = true)]
async fn a_claims_secret_that_is_deleted_or_broken_is_made_whole() {
    let world = World::new().await;
    world.class("c", json!({}), json!({})).await;
    world.redis("app", json!({"classRef": class_ref("c")})).await;
    let target = secret("team", "app-conn");
    let before = world.get(&target).await.get("data").clone();
    world.delete(&target).await;
    assert_eq!(world.get(&target).await.get("data"), &before);
    world.patch(&target, json!({"data": {"password": "Zm9yZ2Vk"}})).await;
    assert_eq!(world.get(&target).await.get("data"), &before);
}

#[tokio::test(start_paused = true)]
async fn without_a_secret_in_the_claim_nothing_is_copied() {
    let world = World::new().await;
    world.class("c", json!({}), json!({})).await;
    let claim = world
        .create(json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
            "metadata": {"name": "app", "namespace": "team"}, "spec": {"classRef": class_ref("c")}}))
        .await;
    world.settle().await;
    assert_eq!(world.phase(claim.key()).await, "Bound");
    let secrets = world.list(concert_model::GroupKind::new("", "Secret")).await;
    assert!(secrets.iter().all(|it| it.namespace() != "team"));
}
