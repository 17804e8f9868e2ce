//! Writes that carry a claim. (Kubernetes knows no fences.)

use bytes::Bytes;
use concert_model::Patch;
use serde_json::json;

use crate::conformance::Own;
use crate::conformance::expect::refused;
use crate::contract::{By, Delete, Fence, ItemKey, Part, Store};
use crate::error::Error;
use crate::work::Work;

async fn claims(own: &Own) -> (Fence, Fence) {
    let item = ItemKey { controller: "suite".into(), item: "a".into() };
    let older = own.store.claim(&item, 0, Bytes::new()).await.unwrap();
    let newer = own.store.claim(&item, older.number, Bytes::new()).await.unwrap();
    (older, newer)
}

fn fenced(fence: &Fence) -> By {
    By::actor("suite").fenced(fence.clone())
}

/// The newest claim may write.
pub async fn of_the_newest_claim_let_writes_through(own: &Own) {
    let widgets = own.subject.widgets().await;
    let (_, newer) = claims(own).await;
    let by = fenced(&newer);
    let created = own.store.create(widgets.object("a", json!({"n": 1})), &by).await.unwrap();
    let mut object = created.decode();
    object.set("spec", json!({"n": 2}));
    own.store.update(object, &by).await.unwrap();
    own.store.delete(&widgets.key("a"), &Delete::default(), &by).await.unwrap();
}

/// An older claim changes nothing, whatever it tries.
pub async fn of_older_claims_refuse_every_write(own: &Own) {
    let widgets = own.subject.widgets().await;
    let stored = widgets.create("a", json!({"n": 1})).await;
    let (older, _) = claims(own).await;
    let by = fenced(&older);
    let key = widgets.key("a");
    let mut object = stored.decode();
    object.set("spec", json!({"n": 2}));
    object.set("status", json!({"n": 2}));
    let patch = Patch::merge(json!({"spec": {"n": 2}})).unwrap();
    refused!(own.store.update(object.clone(), &by).await, Error::Fenced { .. });
    refused!(own.store.update_status(object, &by).await, Error::Fenced { .. });
    refused!(own.store.patch(&key, Part::Main, &patch, &by).await, Error::Fenced { .. });
    refused!(own.store.delete(&key, &Delete::default(), &by).await, Error::Fenced { .. });
    refused!(own.store.create(widgets.object("b", json!({"n": 1})), &by).await, Error::Fenced { .. });
    assert_eq!(widgets.get("a").await, stored);
    assert!(widgets.is_gone("b").await);
}

/// A claim that was given back writes no more.
pub async fn that_were_given_back_refuse_every_write(own: &Own) {
    let widgets = own.subject.widgets().await;
    let (_, newer) = claims(own).await;
    own.store.forget(&newer).await.unwrap();
    let refusal = own.store.create(widgets.object("a", json!({"n": 1})), &fenced(&newer)).await;
    refused!(refusal, Error::Fenced { number, .. } if number == newer.number);
}

/// The claim is checked in the same step as the write: a claim made between reading and writing wins.
pub async fn are_checked_when_the_write_is_done(own: &Own) {
    let widgets = own.subject.widgets().await;
    let mut current = widgets.create("a", json!({"n": 0})).await;
    let item = ItemKey { controller: "suite".into(), item: "race".into() };
    let mut fence = own.store.claim(&item, 0, Bytes::new()).await.unwrap();
    for n in 1..=50 {
        let mut object = current.decode();
        object.set("spec", json!({"n": n}));
        let by = fenced(&fence);
        let (written, claimed) =
            tokio::join!(own.store.update(object, &by), own.store.claim(&item, fence.number, Bytes::new()));
        let claimed = claimed.unwrap();
        match written {
            Ok(object) => current = object,
            Err(Error::Fenced { number, .. }) => assert_eq!(number, fence.number),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(widgets.get("a").await, current);
        fence = claimed;
    }
}
