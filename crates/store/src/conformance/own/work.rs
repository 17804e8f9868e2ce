//! Work state: rows with fences. (Kubernetes has nothing of the kind.)

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::conformance::Own;
use crate::conformance::expect::refused;
use crate::contract::{Fence, ItemKey};
use crate::error::Error;
use crate::work::Work;

fn item(name: &str) -> ItemKey {
    ItemKey { controller: "suite".into(), item: name.into() }
}

fn body(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// An item that nobody claimed has no row.
pub async fn starts_empty(own: &Own) {
    assert_eq!(own.store.read(&item("a")).await.unwrap(), None);
    assert!(own.store.scan("suite").await.unwrap().is_empty());
}

/// A claim makes the row, with its body.
pub async fn is_made_by_a_claim(own: &Own) {
    let fence = own.store.claim(&item("a"), 0, body("one")).await.unwrap();
    let row = own.store.read(&item("a")).await.unwrap().unwrap();
    assert_eq!((row.item, row.fence, row.body), (item("a"), fence.number, body("one")));
}

/// Every claim has a number higher than any given out before, to whatever item.
pub async fn is_claimed_with_rising_numbers(own: &Own) {
    let a = own.store.claim(&item("a"), 0, body("")).await.unwrap();
    let b = own.store.claim(&item("b"), 0, body("")).await.unwrap();
    let again = own.store.claim(&item("a"), a.number, body("")).await.unwrap();
    assert!(0 < a.number && a.number < b.number && b.number < again.number);
    own.store.forget(&again).await.unwrap();
    let anew = own.store.claim(&item("a"), 0, body("")).await.unwrap();
    assert!(anew.number > again.number);
}

/// Who has not seen the newest claim cannot claim.
pub async fn is_claimed_only_by_who_saw_the_newest_claim(own: &Own) {
    let first = own.store.claim(&item("a"), 0, body("first")).await.unwrap();
    refused!(own.store.claim(&item("a"), 0, body("x")).await, Error::Fenced { number: 0, .. });
    let second = own.store.claim(&item("a"), first.number, body("second")).await.unwrap();
    let late = own.store.claim(&item("a"), first.number, body("x")).await;
    refused!(late, Error::Fenced { number, .. } if number == first.number);
    refused!(own.store.claim(&item("b"), 7, body("x")).await, Error::Fenced { .. });
    let row = own.store.read(&item("a")).await.unwrap().unwrap();
    assert_eq!((row.fence, row.body), (second.number, body("second")));
}

/// The newest claim may save; an older one is refused and changes nothing.
pub async fn is_saved_by_the_newest_claim_only(own: &Own) {
    let first = own.store.claim(&item("a"), 0, body("1")).await.unwrap();
    own.store.save(&first, body("2")).await.unwrap();
    assert_eq!(own.store.read(&item("a")).await.unwrap().unwrap().body, "2");
    let second = own.store.claim(&item("a"), first.number, body("3")).await.unwrap();
    refused!(own.store.save(&first, body("late")).await, Error::Fenced { .. });
    own.store.save(&second, body("4")).await.unwrap();
    assert_eq!(own.store.read(&item("a")).await.unwrap().unwrap().body, "4");
}

/// The newest claim may drop the row; an older one is refused.
pub async fn is_forgotten_by_the_newest_claim_only(own: &Own) {
    let first = own.store.claim(&item("a"), 0, body("1")).await.unwrap();
    let second = own.store.claim(&item("a"), first.number, body("2")).await.unwrap();
    refused!(own.store.forget(&first).await, Error::Fenced { .. });
    assert!(own.store.read(&item("a")).await.unwrap().is_some());
    own.store.forget(&second).await.unwrap();
    assert_eq!(own.store.read(&item("a")).await.unwrap(), None);
    refused!(own.store.save(&second, body("late")).await, Error::Fenced { .. });
}

/// All rows of a controller come by item, and no others.
pub async fn is_scanned_by_controller(own: &Own) {
    for name in ["c", "a", "b"] {
        own.store.claim(&item(name), 0, body("x")).await.unwrap();
    }
    let other = ItemKey { controller: "suite-2".into(), item: "z".into() };
    own.store.claim(&other, 0, body("x")).await.unwrap();
    let rows = own.store.scan("suite").await.unwrap();
    assert_eq!(rows.iter().map(|row| &*row.item.item).collect::<Vec<_>>(), ["a", "b", "c"]);
}

/// Rows are no objects: they take no revision.
pub async fn takes_no_revision(own: &Own) {
    let before = own.store.newest().await.unwrap();
    let fence = own.store.claim(&item("a"), 0, body("1")).await.unwrap();
    own.store.save(&fence, body("2")).await.unwrap();
    own.store.forget(&fence).await.unwrap();
    assert_eq!(own.store.newest().await.unwrap(), before);
}

/// Of many who claim at once, one wins.
pub async fn is_claimed_by_one_of_many(own: &Own) {
    let mut claimers = JoinSet::new();
    for _ in 0..8 {
        let store = own.store.clone();
        claimers.spawn(async move { store.claim(&item("a"), 0, body("x")).await });
    }
    let mut winners: Vec<Fence> = Vec::new();
    while let Some(result) = claimers.join_next().await {
        match result.unwrap() {
            Ok(fence) => winners.push(fence),
            Err(Error::Fenced { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(own.store.read(&item("a")).await.unwrap().unwrap().fence, winners[0].number);
}

/// Odd names and empty bodies are kept as they are.
pub async fn takes_any_name(own: &Own) {
    for name in ["", "ü/日本", "a b", "x'; DROP TABLE work; --"] {
        own.store.claim(&item(name), 0, body("")).await.unwrap();
        assert_eq!(own.store.read(&item(name)).await.unwrap().unwrap().body, "");
    }
    assert_eq!(own.store.scan("suite").await.unwrap().len(), 4);
}
