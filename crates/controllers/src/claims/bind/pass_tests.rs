//! What a pass makes of a store that refuses.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::{GroupKind, Patch, ResourceVersion};
use concert_store::backend::memory::Memory;
use concert_store::{
    Chance, Clock, Config, Deleted, Events, Kind, Local, Page, PageRequest, Part, Query, Result, Store,
};

use super::*;
use crate::claims::definition::{Implementation, Unusable};
use crate::claims::hands::Hands;
use crate::fixtures::PausedClock;
use crate::managed::event::Silent;

/// A store that may refuse to read managed resources, and to create anything.
struct Refusing {
    local: Local,
    refusal: fn(&ObjectKey) -> Option<Error>,
}

#[async_trait]
impl Store for Refusing {
    async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        match (self.refusal)(key).filter(|_| &*key.kind.kind == "Store") {
            Some(error) => Err(error),
            None => self.local.get(key).await,
        }
    }

    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        self.local.list(query, page).await
    }

    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        self.local.watch(query, from).await
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        match object.key().ok().and_then(|key| (self.refusal)(&key)) {
            Some(error) => Err(error),
            None => self.local.create(object, by).await,
        }
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        self.local.update(object, by).await
    }

    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded> {
        self.local.update_status(object, by).await
    }

    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        self.local.patch(key, part, patch, by).await
    }

    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        self.local.delete(key, options, by).await
    }

    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>> {
        self.local.kind(kind).await
    }
}

/// A binder on a store of its own.
fn binder(refusal: fn(&ObjectKey) -> Option<Error>) -> (Binder, Local) {
    let clock: Arc<dyn Clock> = Arc::new(PausedClock::new());
    let config = Config::new(clock.clone(), Chance::seeded(1)).inline();
    let local = Local::open(Arc::new(Memory::new()), config).unwrap();
    let store = Arc::new(Refusing { local: local.clone(), refusal });
    let (name, chance) = ("test".into(), Chance::seeded(1));
    let hands = Hands { name, store, clock, chance, recorder: Arc::new(Silent) };
    let implementation = Implementation {
        index: 0,
        class: GroupKind::new("cloud.dev", "StoreClass").at_version("v1"),
        managed: GroupKind::new("cloud.dev", "Store").at_version("v1"),
        mapping: Vec::new(),
        allows_external_names: false,
        unusable: None,
    };
    let claim = GroupKind::new("cache.dev", "Redis").at_version("v1");
    (Binder::new(claim, Arc::new(implementation), hands), local)
}

fn by() -> By {
    By::actor("test")
}

fn claim() -> Object {
    Object::from_value(json!({"apiVersion": "cache.dev/v1", "kind": "Redis",
        "metadata": {"name": "app", "namespace": "team", "uid": "u1"},
        "spec": {"writeConnectionSecretToRef": {"name": "conn"}}}))
    .unwrap()
}

fn forbidden(key: &ObjectKey) -> Option<Error> {
    Some(Error::Forbidden { key: key.clone(), why: "not you".into() })
}

/// What a look at the managed resource of `claim` finds.
async fn seen(binder: &Binder, claim: Object) -> Sight {
    let mut pass = Pass::begin(binder, claim, by());
    assert!(pass.take(Step::LookAtManaged("s".into())).await.is_ok());
    pass.seen.managed.unwrap()
}

fn is_transient(sight: &Sight) -> bool {
    match sight {
        Sight::Failed { is_transient, .. } => *is_transient,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_try_may_cure_is_told_from_what_somebody_has_to_do_something_about() {
    let (binder, _) = self::binder(|_| Some(Error::unavailable("nobody is there")));
    assert!(is_transient(&seen(&binder, claim()).await));
    let (binder, _) = self::binder(forbidden);
    assert!(!is_transient(&seen(&binder, claim()).await));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_at_this_moment_is_not_taken_for_an_object_that_is_gone() {
    let (mut binder, _) = self::binder(|_| None);
    assert!(is_transient(&seen(&binder, claim()).await), "its kind is unknown");
    let mut leaving = claim();
    leaving.set_metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert_eq!(seen(&binder, leaving).await, Sight::Absent, "it can go without");
    let unusable = Unusable { why: "no such kind".into(), has_class: true, has_managed: false };
    let implementation = Implementation { unusable: Some(unusable), ..(*binder.implementation).clone() };
    binder.implementation = Arc::new(implementation);
    assert_eq!(seen(&binder, claim()).await, Sight::Absent, "the kind is gone for good");
}

#[tokio::test(start_paused = true)]
async fn what_is_made_of_a_kind_that_is_not_served_at_this_moment_is_made_later() {
    let (binder, _) = self::binder(|_| None);
    let mut pass = Pass::begin(&binder, claim(), by());
    let managed = json!({"apiVersion": "cloud.dev/v1", "kind": "Store", "metadata": {"name": "s"}});
    let made = pass.take(Step::Create(Box::new(Object::from_value(managed).unwrap()))).await;
    assert!(matches!(made, Err(Stop::Store(Error::UnknownKind { .. }))));
    assert_eq!(pass.seen.failure, None);
}

/// What becomes of copying the secret of a managed resource to that of a claim.
async fn copied(refusal: fn(&ObjectKey) -> Option<Error>) -> (Taken, Seen) {
    let (binder, local) = self::binder(refusal);
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let owner =
        json!({"apiVersion": "cloud.dev/v1", "kind": "Store", "name": "s", "uid": "m1", "controller": true});
    let source = json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "eA=="},
        "metadata": {"name": "made", "namespace": "system", "ownerReferences": [owner]}});
    for object in [namespace("system"), namespace("team"), source] {
        local.create(Object::from_value(object).unwrap(), &by()).await.unwrap();
    }
    let managed = Object::from_value(json!({"apiVersion": "cloud.dev/v1", "kind": "Store",
        "metadata": {"name": "s", "uid": "m1"}, "status": {"bindingPhase": "Bound"},
        "spec": {"writeConnectionSecretToRef": {"namespace": "system", "name": "made"}}}))
    .unwrap();
    let mut pass = Pass::begin(&binder, claim(), by());
    pass.seen.managed = Some(Sight::There(Box::new(managed)));
    let taken = pass.take(Step::Propagate).await;
    (taken, pass.seen)
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_may_not_be_written_is_said_and_one_that_could_not_be_is_tried_again() {
    let (taken, seen) = copied(forbidden).await;
    assert!(taken.is_ok(), "it is for the claim to say");
    let why = seen.propagation.unwrap().unwrap_err();
    assert!(why.contains("conn is refused: not you"), "{why}");

    let (taken, seen) = copied(|_| Some(Error::unavailable("nobody is there"))).await;
    assert!(matches!(taken, Err(Stop::Store(Error::Unavailable(_)))));
    assert_eq!(seen.propagation, None);

    let (taken, seen) = copied(|_| None).await;
    assert!(taken.is_ok());
    assert_eq!(seen.propagation, Some(Ok(())));
}
