//! What starts of two versions make of each other's definitions.

use std::sync::Arc;

use concert_model::{GroupKind, ObjectKey};
use concert_store::backend::memory::Memory;
use concert_store::{Chance, Config, SystemClock};
use serde_json::json;

use super::*;

fn store() -> Local {
    let config = Config::new(Arc::new(SystemClock::new()), Chance::seeded(1));
    Local::open(Arc::new(Memory::new()), config).unwrap()
}

/// The kind of providers, as a program of this edition would bring it, with another column.
async fn bring_as(store: &Local, edition: Option<u64>) -> ObjectKey {
    let mut object = Object::from_value(managed::config::documents(PROVIDERS).unwrap().remove(0)).unwrap();
    object.change(|it| {
        let columns = it["spec"]["versions"][0]["additionalPrinterColumns"].as_array_mut().unwrap();
        columns.push(json!({"name": "OTHER", "type": "string", "jsonPath": ".status.other"}));
    });
    if let Some(edition) = edition {
        object.set_annotation(ANNOTATION, &edition.to_string());
    }
    let by = By { manager: ACTOR.into(), ..By::actor(ACTOR) };
    store.apply(object, Part::Main, true, &by).await.unwrap();
    let definitions = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
    ObjectKey::cluster(definitions, "providers.concert.dev")
}

async fn has_other_column(store: &Local, key: &ObjectKey) -> bool {
    let found = store.get(key).await.unwrap().decode();
    let columns = found.spec()["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
    columns.iter().any(|it| it["name"] == "OTHER")
}

#[tokio::test]
async fn definitions_of_a_later_edition_are_left_as_they_are() {
    let store = store();
    define(&store, Only::Everything).await.unwrap();
    let key = bring_as(&store, Some(EDITION + 1)).await;
    let before = store.get(&key).await.unwrap();
    define(&store, Only::Everything).await.unwrap();
    let after = store.get(&key).await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
    assert!(has_other_column(&store, &key).await);
}

#[tokio::test]
async fn definitions_of_this_edition_and_from_before_there_were_any_become_what_they_are_here() {
    for edition in [None, Some(EDITION)] {
        let store = store();
        let key = bring_as(&store, edition).await;
        assert!(has_other_column(&store, &key).await);
        define(&store, Only::Everything).await.unwrap();
        assert!(!has_other_column(&store, &key).await, "{edition:?}");
        let found = store.get(&key).await.unwrap().decode();
        assert_eq!(found.annotation(ANNOTATION), Some(&*EDITION.to_string()));
    }
}

/// FNV-1a: it is to notice, not to resist.
fn digest() -> u64 {
    let bytes = [PROVIDERS, CLAIMS, NO8S, FLEET].into_iter().flat_map(str::bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn whoever_changes_a_definition_raises_the_edition() {
    let why = "deploy/crds has changed: raise EDITION, unless only comments have, and put in the new digest";
    assert_eq!((EDITION, digest()), (1, 0x278b_6e62_cbba_32dd), "{why}");
}
