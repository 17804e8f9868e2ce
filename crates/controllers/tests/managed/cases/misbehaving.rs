//! A provider that answers about something else, or with nothing.

use concert_controllers::managed::vocabulary::FINALIZER;
use concert_controllers::managed::vocabulary::annotation::EXTERNAL_NAME;
use concert_provider::{Class, Error};
use serde_json::{Value, json};

use crate::bench::{Bench, all_well, polled, retry};
use crate::stores::Subject;

/// What becomes of an answer that names another object, and of one that is empty.
fn answers() -> [Error; 2] {
    let texts = [
        "the provider returned another object: metadata.name is \"b\" rather than \"a\"",
        "the provider returned no object",
    ];
    texts.map(|text| Error::new(Class::Misbehaved, text))
}

/// What nobody but us and people may change, and what was seen of the thing.
async fn kept(bench: &Bench) -> [Value; 4] {
    let object = bench.get().await;
    let name = json!(object.annotation(EXTERNAL_NAME));
    [name, json!(object.finalizers()), object.spec().clone(), object.status()["atProvider"].clone()]
}

pub async fn when_asked_what_is_there_changes_nothing_and_is_told(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({})).await;
    let before = kept(&bench).await;
    assert_eq!((&before[0], &before[1]), (&json!("thing-1"), &json!([FINALIZER])));
    for error in answers() {
        let text = format!("observe failed: {}", error.message);
        bench.provider.script(|script| script.observe.push_back(Err(error)));
        assert_eq!(bench.reconcile().await, retry(&text));
        assert_eq!(kept(&bench).await, before);
        let said = bench.conditions().await;
        assert_eq!(
            said[..2],
            ["Ready=True/Available@1".to_owned(), format!("Synced=False/ReconcileError@1: {text}")]
        );
        assert_eq!(bench.events(), [format!("CannotObserveExternalResource: {text}")]);
        assert_eq!(bench.reconcile().await, polled());
        assert_eq!(bench.conditions().await, all_well(1));
        bench.forget();
    }
    assert_eq!(bench.provider.things().len(), 1);
}

pub async fn when_asked_to_create_leaves_it_in_doubt_and_makes_nothing_twice(subject: &Subject) {
    for error in answers() {
        let mut bench = Bench::new(subject).await;
        bench.managed.rules.can_look_up = true;
        let text = format!("create failed: {}", error.message);
        bench.provider.script(|script| script.create_then = Some(error.in_doubt()));
        bench.declare(json!({})).await;
        assert_eq!(bench.reconcile().await, retry(&text));
        assert!(bench.has_token().await);
        let [name, finalizers, ..] = kept(&bench).await;
        assert_eq!((name, finalizers), (Value::Null, json!([FINALIZER])));
        assert_eq!(bench.reconcile().await, polled());
        assert_eq!(bench.conditions().await, all_well(1));
        assert_eq!(kept(&bench).await[0], json!("thing-1"));
        assert_eq!((bench.provider.tokens().len(), bench.provider.things().len()), (1, 1));
    }
}

pub async fn when_asked_to_delete_keeps_the_object_until_it_is_known(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare_ready(json!({})).await;
    bench.delete().await;
    for error in answers() {
        let text = format!("delete failed: {}", error.message);
        bench.provider.script(|script| script.delete.push_back(Err(error.in_doubt())));
        assert_eq!(bench.reconcile().await, retry(&text));
        assert_eq!(kept(&bench).await[..2], [json!("thing-1"), json!([FINALIZER])]);
    }
    bench.reconcile().await;
    assert!(bench.is_gone().await && bench.provider.things().is_empty());
}
