//! On a store that nobody else looks after.

use concert_model::{Object, ObjectKey};
use concert_provider::{InProcess, Memory as MemoryProvider};
use concert_store::{Delete, Error as StoreError};

use super::*;
use crate::managed::{Controller, Running, Storage};

async fn start(leads: bool) -> Running {
    let provider = Arc::new(MemoryProvider::new([bucket()]));
    let dial: Dial = Arc::new(move |_| Ok(Arc::new(InProcess::new(provider.clone()))));
    let loopback: Address = "127.0.0.1:0".parse().unwrap();
    let options = Options::new()
        .with_storage(Storage::Memory)
        .with_dial(dial)
        .with_metrics_address(loopback.clone())
        .with_health_address(loopback)
        .with_leader_election(leads);
    Controller::new(config(), options).start().await.unwrap()
}

async fn is_gone(store: &dyn Store, key: &ObjectKey) -> bool {
    matches!(store.get(key).await, Err(StoreError::NotFound { .. }))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_owned_goes_with_its_owner_and_objects_with_their_definition() {
    for leads in [false, true] {
        let running = start(leads).await;
        let (store, by) = (running.store(), By::actor("test"));
        define_buckets(&*store).await;
        let made = store.create(Object::new(&bucket(), "", "a"), &by).await.unwrap();
        let mut secret = Object::new(&GroupKind::new("", "Secret").at_version("v1"), "default", "owned");
        let owner =
            json!({"apiVersion": "example.com/v1", "kind": "Bucket", "name": "a", "uid": made.head().uid});
        secret.set_metadata("ownerReferences", json!([owner]));
        let secret = store.create(secret, &by).await.unwrap().key().clone();

        store.delete(made.key(), &Delete::default(), &by).await.unwrap();
        until("the owner is gone", async || is_gone(&*store, made.key()).await).await;
        until("what it owned is gone", async || is_gone(&*store, &secret).await).await;

        let left = store.create(Object::new(&bucket(), "", "b"), &by).await.unwrap();
        let definition = ObjectKey::cluster(
            GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"),
            "buckets.example.com",
        );
        store.delete(&definition, &Delete::default(), &by).await.unwrap();
        until("the definition is gone", async || is_gone(&*store, &definition).await).await;
        assert!(matches!(
            store.get(left.key()).await,
            Err(StoreError::NotFound { .. } | StoreError::UnknownKind { .. })
        ));
        running.stop().await;
    }
}
