//! Which controllers run, as kinds and providers come and go.

use std::sync::Arc;
use std::time::Duration;

use concert_controllers::managed::registry::{CONCURRENCY, Rank, Settings};
use concert_controllers::managed::vocabulary::FINALIZER;
use concert_model::{GroupKind, Object, Patch, Timestamp};
use concert_provider::{Call, Connector, Served, WatchedKind};
use concert_store::conformance::next;
use concert_store::{Delete, Error, Event, Part, Query};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry as Numbers;
use serde_json::json;

use crate::bench::{boom, user};
use crate::definition::{define, definition, until};
use crate::faulty::{Verb, unavailable};
use crate::line::{At, Line};
use crate::scripted::Scripted;
use crate::stores::Subject;
use crate::town::{Inhabitant, PATIENCE, Town, declared};

pub async fn a_definition_that_comes_late_starts_the_controller(subject: &Subject) {
    let town = Town::new(subject).await;
    let settler = town.settle("p", &["Late"], None);
    town.has_problem("Late.", "there is no definition of it").await;
    assert!(town.registry.controllers().is_empty());
    town.define("Late").await;
    let key = town.declare("Late", "a").await;
    town.is_ready(&key).await;
    town.has_no_problems().await;
    assert_eq!(settler.provider.things().len(), 1);
    assert_eq!(town.registry.controllers(), [town.controller("late")]);
    town.leave().await;
}

pub async fn a_definition_that_goes_takes_objects_and_controller_with_it(subject: &Subject) {
    let town = Town::new(subject).await;
    let settler = town.settle("p", &["Leaving"], None);
    let definition = town.define("Leaving").await;
    let keys = [town.declare("Leaving", "a").await, town.declare("Leaving", "b").await];
    for key in &keys {
        town.is_ready(key).await;
    }
    assert_eq!(settler.provider.things().len(), 2);
    let query = Query::all(keys[0].kind.clone());
    let mut events = town.store.watch(&query, None).await.unwrap();
    town.store.delete(&definition, &Delete::default(), &user()).await.unwrap();
    // While objects are left their controller stays, since nobody else could let them go.
    let mut left = keys.len();
    while left > 0 {
        left -= usize::from(matches!(next(&mut events).await, Event::Deleted(_)));
    }
    assert!(settler.provider.things().is_empty());
    until(async || matches!(town.store.get(&definition).await, Err(Error::NotFound { .. }))).await;
    until(async || town.registry.controllers().is_empty()).await;
    town.has_problem("Leaving.", "there is no definition of it").await;
    town.leave().await;
}

pub async fn a_definition_that_comes_back_starts_the_controller_again(subject: &Subject) {
    let town = Town::new(subject).await;
    let settler = town.settle("p", &["Returning"], None);
    let definition = town.define("Returning").await;
    town.has_no_problems().await;
    town.store.delete(&definition, &Delete::default(), &user()).await.unwrap();
    until(async || town.registry.controllers().is_empty()).await;
    town.define("Returning").await;
    let key = town.declare("Returning", "a").await;
    town.is_ready(&key).await;
    assert_eq!(settler.provider.things().len(), 1);
    town.leave().await;
}

pub async fn objects_of_a_provider_that_was_removed_say_so(subject: &Subject) {
    let town = Town::new(subject).await;
    let settler = town.settle("p", &["Lonely"], None);
    town.define("Lonely").await;
    let key = town.declare("Lonely", "a").await;
    town.is_ready(&key).await;
    town.registry.remove("p").await;
    let why = format!("connect failed: no provider serves Lonely.{} any more", town.group);
    let object = town.says(&key, &format!("Synced=False/ReconcileError@1: {why}")).await;
    // Neither the object nor the thing is touched for it.
    assert_eq!(object.finalizers(), [FINALIZER]);
    assert_eq!(settler.provider.things().len(), 1);
    assert!(town.registry.provider("p").is_none());
    // Whoever comes next finds everything as it was.
    let next = town.settle("q", &["Lonely"], Some("not yet"));
    next.provider.put("thing-1", json!({"size": 1}));
    next.line.cut(None);
    town.says(&key, "Synced=True").await;
    town.leave().await;
}

pub async fn a_kind_that_two_providers_claim_stays_with_the_first(subject: &Subject) {
    let town = Town::new(subject).await;
    let first = town.settle("first", &["Shared"], None);
    until(async || matches!(town.registry.provider("first"), Some(Ok(_)))).await;
    let second = town.settle("second", &["Shared", "Own"], None);
    let why = format!("Shared.{} is served by the providers first and second: first keeps it", town.group);
    town.has_problem("providers", &why).await;
    town.define("Shared").await;
    town.define("Own").await;
    let (shared, own) = (town.declare("Shared", "a").await, town.declare("Own", "a").await);
    town.is_ready(&shared).await;
    town.is_ready(&own).await;
    assert_eq!((first.provider.things().len(), second.provider.things().len()), (1, 1));
    // It passes to the second when the first goes.
    town.registry.remove("first").await;
    town.has_no_problems().await;
    first.provider.take_asked();
    let another = town.declare("Shared", "b").await;
    town.is_ready(&another).await;
    assert!(first.provider.take_asked().is_empty());
    town.leave().await;
}

pub async fn a_kind_that_two_providers_claim_does_not_depend_on_who_was_heard_first(subject: &Subject) {
    let town = Town::new(subject).await;
    let served = || vec![Served::new(town.kind("Shared").at_version("v1"))];
    let since = |second| Rank::Declared(Timestamp::from_second(second).unwrap());
    town.settle_with("young", served(), None, since(20));
    until(async || matches!(town.registry.provider("young"), Some(Ok(_)))).await;
    town.settle_with("old", served(), None, since(10));
    let why = |keeper: &str, other: &str| {
        format!("Shared.{} is served by the providers {keeper} and {other}: {keeper} keeps it", town.group)
    };
    town.has_problem("providers", &why("old", "young")).await;
    assert_eq!(town.registry.complaints("young"), [why("old", "young")]);
    assert!(town.registry.complaints("old").is_empty());
    // What the configuration names comes before what was declared later, and names decide at the same moment.
    town.settle_with("configured", served(), None, Rank::Configured(7));
    town.has_problem("providers", &why("configured", "old")).await;
    town.registry.remove("configured").await;
    town.settle_with("elder", served(), None, since(10));
    town.has_problem("providers", &why("elder", "old")).await;
    town.leave().await;
}

pub async fn a_provider_that_is_declared_anew_keeps_its_kinds(subject: &Subject) {
    let town = Town::new(subject).await;
    let first = town.settle("first", &["Shared"], None);
    until(async || matches!(town.registry.provider("first"), Some(Ok(_)))).await;
    let second = town.settle("second", &["Shared"], None);
    let why = format!("Shared.{} is served by the providers first and second: first keeps it", town.group);
    town.has_problem("providers", &why).await;
    town.define("Shared").await;
    let key = town.declare("Shared", "a").await;
    town.is_ready(&key).await;
    // It moves to where nobody answers yet.
    let line = Arc::new(Line::new(first.provider.clone()));
    line.cut(Some("moving"));
    town.registry.replace(declared("first", line.clone(), Rank::Configured(0))).await.unwrap();
    assert_eq!(town.registry.complaints("second"), [why.as_str()]);
    assert!(town.registry.controllers().is_empty());
    town.has_problem("provider first", "moving").await;
    let other = town.declare("Shared", "b").await;
    line.cut(None);
    town.is_ready(&other).await;
    // What it is declared for now makes no sense: its objects say so, and nobody else looks at them.
    town.registry.suspend("first", "spec.endpoint: must be set").await;
    assert_eq!(town.registry.complaints("second"), [why.as_str()]);
    let told =
        "Synced=False/ReconcileError@1: connect failed: provider first cannot be reached: spec.endpoint";
    town.says(&key, told).await;
    town.registry.replace(declared("first", line, Rank::Configured(0))).await.unwrap();
    town.says(&key, "Synced=True").await;
    assert!(second.provider.take_asked().is_empty());
    assert_eq!((first.provider.things().len(), second.provider.things().len()), (2, 0));
    // An object never takes the place of what the configuration names.
    let object = Rank::Declared(Timestamp::from_second(10).unwrap());
    assert!(town.registry.replace(declared("first", second.line.clone(), object)).await.is_err());
    town.leave().await;
}

pub async fn a_provider_that_is_refused_from_the_start_keeps_what_is_remembered_of_it(subject: &Subject) {
    let town = Town::new(subject).await;
    let served = || vec![Served::new(town.kind("Shared").at_version("v1"))];
    let provider = Arc::new(Scripted::new(served()));
    let line = Arc::new(Line::new(provider.clone()));
    let last = Arc::new(line.handshake(&Call::within(PATIENCE)).await.unwrap());
    let (first, refused) = (Rank::Configured(0), "spec.endpoint: must be set");
    town.registry.withhold("first".into(), first.clone(), last.clone(), refused).unwrap();
    assert!(town.registry.withhold("first".into(), first.clone(), last, refused).is_err());
    let second = town.settle_with("second", served(), None, Rank::Configured(1));
    let why = format!("Shared.{} is served by the providers first and second: first keeps it", town.group);
    town.has_problem("providers", &why).await;
    town.has_problem("provider first", refused).await;
    town.define("Shared").await;
    let key = town.declare("Shared", "a").await;
    let told =
        "Synced=False/ReconcileError@1: connect failed: provider first cannot be reached: spec.endpoint";
    town.says(&key, told).await;
    assert_eq!(town.registry.complaints("second"), [why.as_str()]);
    town.registry.replace(declared("first", line, first)).await.unwrap();
    town.is_ready(&key).await;
    assert!(second.provider.take_asked().is_empty());
    assert_eq!((provider.things().len(), second.provider.things().len()), (1, 0));
    town.leave().await;
}

pub async fn a_kind_waits_for_a_provider_that_comes_first_and_has_not_answered(subject: &Subject) {
    let town = Town::new(subject).await;
    let first = town.settle("first", &["Shared"], Some("starting"));
    let second = town.settle("second", &["Shared"], None);
    town.define("Shared").await;
    let key = town.declare("Shared", "a").await;
    let why = "provider second serves it, but provider first comes first and has not answered yet";
    town.has_problem("Shared.", why).await;
    first.line.cut(None);
    town.is_ready(&key).await;
    assert!(second.provider.take_asked().is_empty());
    assert_eq!(first.provider.things().len(), 1);
    town.leave().await;
}

pub async fn a_definition_without_status_is_a_problem_of_its_own(subject: &Subject) {
    let town = Town::new(subject).await;
    town.settle("p", &["Mute", "Fine"], None);
    define(&town.store, definition(&town.kind("Mute"), true, false)).await;
    town.define("Fine").await;
    town.has_problem("Mute.", "has no status subresource in v1").await;
    let key = town.declare("Fine", "a").await;
    town.is_ready(&key).await;
    assert_eq!(town.registry.controllers(), [town.controller("fine")]);
    // It is one until somebody does what it says.
    let better = definition(&town.kind("Mute"), true, true);
    let patch = Patch::merge(json!({"spec": {"versions": better.spec()["versions"]}})).unwrap();
    town.store.patch(&better.key().unwrap(), Part::Main, &patch, &user()).await.unwrap();
    town.has_no_problems().await;
    let key = town.declare("Mute", "a").await;
    town.is_ready(&key).await;
    town.leave().await;
}

pub async fn a_provider_that_comes_up_late_is_waited_for(subject: &Subject) {
    let town = Town::new(subject).await;
    town.define("Patient").await;
    let key = town.declare("Patient", "a").await;
    let settler = town.settle("p", &["Patient"], Some("connection refused"));
    town.has_problem("provider p", "connection refused").await;
    assert_eq!(town.registry.provider("p"), Some(Err("connection refused".into())));
    settler.line.cut(None);
    town.is_ready(&key).await;
    town.has_no_problems().await;
    town.leave().await;
}

pub async fn a_provider_whose_controllers_stay_is_said_to_be_lost_and_back(subject: &Subject) {
    let town = Town::with(subject, Settings { restarts_on_disconnect: false, ..Settings::default() }).await;
    let settler = town.settle("p", &["Constant"], None);
    town.define("Constant").await;
    let before = town.declare("Constant", "a").await;
    town.is_ready(&before).await;
    town.has_no_problems().await;
    for _ in 0..2 {
        settler.line.cut(Some("out for lunch"));
        town.has_problem("provider p", "out for lunch").await;
        assert_eq!(town.registry.provider("p"), Some(Err("out for lunch".into())));
        assert_eq!(town.registry.controllers(), [town.controller("constant")]);
        settler.line.cut(None);
        town.has_no_problems().await;
        assert!(matches!(town.registry.provider("p"), Some(Ok(_))));
    }
    let after = town.declare("Constant", "b").await;
    town.is_ready(&after).await;
    town.leave().await;
}

pub async fn objects_of_a_provider_whose_controllers_stay_say_that_it_is_lost_and_back(subject: &Subject) {
    let poll = Some(Duration::from_secs(3600));
    let settings = Settings { restarts_on_disconnect: false, poll, ..Settings::default() };
    let town = Town::with(subject, settings).await;
    let settler = town.settle("p", &["Constant"], None);
    town.define("Constant").await;
    let key = town.declare("Constant", "a").await;
    town.is_ready(&key).await;
    town.is_at_rest("constant", &key).await;
    settler.line.cut(Some("out for lunch"));
    town.has_problem("provider p", "out for lunch").await;
    town.clock.put(15);
    town.says(&key, "Synced=False/ReconcileError@1").await;
    settler.line.cut(None);
    town.says(&key, "Synced=True").await;
    town.leave().await;
}

pub async fn a_provider_that_restarts_goes_on_where_it_was(subject: &Subject) {
    let town = Town::new(subject).await;
    let settler = town.settle("p", &["Steady"], None);
    town.define("Steady").await;
    let before = town.declare("Steady", "a").await;
    town.is_ready(&before).await;
    settler.line.cut(Some("restarting"));
    until(async || town.registry.controllers().is_empty()).await;
    let after = town.declare("Steady", "b").await;
    settler.line.cut(None);
    town.is_ready(&after).await;
    assert_eq!(settler.provider.things().len(), 2);
    town.leave().await;
}

pub async fn what_is_at_rest_counts_before_anybody_looks_at_it(subject: &Subject) {
    let hourly = Settings { poll: Some(Duration::from_secs(3600)), ..Settings::default() };
    let mut town = Town::with(subject, hourly).await;
    let settler = town.settle("p", &["Counted"], None);
    town.define("Counted").await;
    let keys = [town.declare("Counted", "a").await, town.declare("Counted", "b").await];
    for key in &keys {
        town.is_ready(key).await;
    }
    town.counts("Counted", 2).await;
    town.restart().await;
    town.counts("Counted", 0).await;
    town.welcome("p", &settler, Rank::Configured(0));
    town.counts("Counted", 2).await;
    // The same when it is only the provider that was away.
    settler.line.cut(Some("restarting"));
    town.counts("Counted", 0).await;
    settler.line.cut(None);
    town.counts("Counted", 2).await;
    // What goes no longer counts, although nobody had looked at it.
    town.store.delete(&keys[0], &Delete::default(), &user()).await.unwrap();
    town.counts("Counted", 1).await;
    town.leave().await;
}

pub async fn what_was_to_be_pushed_while_nobody_listened_is_found(subject: &Subject) {
    let hourly = Settings { poll: Some(Duration::from_secs(3600)), ..Settings::default() };
    let town = Town::with(subject, hourly).await;
    let provider = Arc::new(Scripted::pushing(vec![Served::new(town.kind("Pushed").at_version("v1"))]));
    let settler = Inhabitant { line: Arc::new(Line::new(provider.clone())), provider };
    town.welcome("p", &settler, Rank::Configured(0));
    town.define("Pushed").await;
    let key = town.declare("Pushed", "a").await;
    town.is_ready(&key).await;
    let mended = async || {
        until(async || settler.provider.things()["thing-1"] == json!({"size": 1})).await;
        town.is_at_rest("pushed", &key).await;
        until(async || settler.provider.listeners() == 1).await;
    };
    mended().await;
    settler.provider.put("thing-1", json!({"size": 9}));
    settler.provider.push(&town.kind("Pushed").at_version("v1"), "thing-1");
    mended().await;
    // Nobody can tell which object it is about.
    settler.provider.put("thing-1", json!({"size": 9}));
    town.faults.fail(Verb::List, &key.kind, 1, unavailable);
    settler.provider.push(&town.kind("Pushed").at_version("v1"), "thing-1");
    mended().await;
    // Only the stream breaks.
    settler.provider.put("thing-1", json!({"size": 9}));
    settler.provider.hang_up();
    mended().await;
    // The provider restarts.
    settler.line.cut(Some("restarting"));
    until(async || town.registry.controllers().is_empty()).await;
    settler.provider.hang_up();
    settler.provider.put("thing-1", json!({"size": 9}));
    settler.line.cut(None);
    mended().await;
    town.leave().await;
}

pub async fn what_was_to_be_pushed_before_anybody_could_listen_is_found(subject: &Subject) {
    let hourly = Settings { poll: Some(Duration::from_secs(3600)), ..Settings::default() };
    let mut town = Town::with(subject, hourly).await;
    let provider = Arc::new(Scripted::pushing(vec![Served::new(town.kind("Pushed").at_version("v1"))]));
    let settler = Inhabitant { line: Arc::new(Line::new(provider.clone())), provider };
    town.welcome("p", &settler, Rank::Configured(0));
    town.define("Pushed").await;
    let key = town.declare("Pushed", "a").await;
    town.is_ready(&key).await;
    town.is_at_rest("pushed", &key).await;
    town.restart().await;
    settler.provider.hang_up();
    settler.provider.put("thing-1", json!({"size": 9}));
    settler.line.breaks(At::Watch, boom());
    town.welcome("p", &settler, Rank::Configured(0));
    until(async || settler.provider.things()["thing-1"] == json!({"size": 1})).await;
    town.leave().await;
}

pub async fn a_hint_of_the_provider_beats_the_default_and_a_setting_beats_both(subject: &Subject) {
    let hourly = Some(Duration::from_secs(3600));
    for (hint, set, expected) in [(None, None, CONCURRENCY), (Some(3), None, 3), (Some(3), Some(7), 7)] {
        let town =
            Town::with(subject, Settings { concurrency: set, poll: hourly, ..Settings::default() }).await;
        town.define("Busy").await;
        town.settle_watching("Busy", |served| served.concurrency = hint);
        town.has_no_problems().await;
        let mut numbers = Numbers::default();
        town.parts.engine.metrics().register(&mut numbers);
        let mut text = String::new();
        encode(&mut text, &numbers).unwrap();
        let name = town.controller("busy");
        let line =
            format!("controller_runtime_max_concurrent_reconciles{{controller=\"{name}\"}} {expected}.0\n");
        assert!(text.contains(&line), "{line} in\n{text}");
        town.leave().await;
    }
}

pub async fn what_an_object_owns_wakes_it(subject: &Subject) {
    let town = Town::new(subject).await;
    town.define("Parent").await;
    let child = town.kind("Child").at_version("v1");
    let settler = town.settle_watching("Parent", |served| served.owns = vec![child.clone()]);
    let parent = town.declare("Parent", "a").await;
    town.is_ready(&parent).await;
    settler.provider.take_asked();
    // The kind comes late, so the controller starts anew, and looks at everything.
    town.define("Child").await;
    until(async || !settler.provider.take_asked().is_empty()).await;
    town.has_no_problems().await;
    let owner = town.store.get(&parent).await.unwrap();
    let mut object = Object::new(&child, &town.namespace, "b");
    object.set_metadata(
        "ownerReferences",
        json!([{"apiVersion": town.kind("Parent").at_version("v1").api_version(), "kind": "Parent", "name": "a",
            "uid": owner.head().uid, "controller": true}]),
    );
    town.is_woken_by(&settler, object).await;
    town.leave().await;
}

pub async fn what_an_object_mentions_wakes_it(subject: &Subject) {
    let hourly = Settings { poll: Some(Duration::from_secs(3600)), ..Settings::default() };
    let mut town = Town::with(subject, hourly).await;
    town.define("Reader").await;
    let note = GroupKind::new("", "ConfigMap").at_version("v1");
    let settler = town.settle_watching("Reader", |served| {
        served.watches =
            vec![WatchedKind { kind: note.clone(), name: String::new(), namespace: String::new() }];
    });
    let mut reader = Object::new(&town.kind("Reader").at_version("v1"), &town.namespace, "a");
    reader.set("spec", json!({"forProvider": {"size": 1}, "noteRef": {"name": "letter"}}));
    let key = town.store.create(reader, &user()).await.unwrap().key().clone();
    town.is_ready(&key).await;
    town.has_no_problems().await;
    let letter = Object::new(&note, &town.namespace, "letter");
    let waker = letter.key().unwrap();
    town.is_woken_by(&settler, letter).await;
    // Also by whoever has not looked at it before: after a restart, and when the provider was away.
    town.restart().await;
    town.welcome("p", &settler, Rank::Configured(0));
    town.is_woken_by_edit(&settler, &key, &waker, "restarted").await;
    settler.line.cut(Some("restarting"));
    until(async || town.registry.controllers().is_empty()).await;
    settler.line.cut(None);
    town.is_woken_by_edit(&settler, &key, &waker, "reconnected").await;
    town.leave().await;
}
