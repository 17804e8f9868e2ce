//! Shared watches and cached reads on a real Kubernetes API server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use concert_model::{Encoded, GroupKind, LabelSelector, ObjectKey};
use concert_store::conformance::{Definition, Subject, Widgets, bounded, next};
use concert_store::kubernetes::{Config, Connect, Kubernetes, Spawn, Verb};
use concert_store::{By, Clock, Delete, Error, Event, Events, PageRequest, Query, Store, SystemClock};
use concert_testbed::Cluster;
use futures_util::task::AtomicWaker;
use serde_json::json;

/// Holds the tasks of a store while it is shut: its watch hears nothing, as if the network were slow.
#[derive(Default)]
struct Gate {
    is_shut: AtomicBool,
    waker: AtomicWaker,
}

impl Gate {
    fn open(&self) {
        self.is_shut.store(false, Ordering::SeqCst);
        self.waker.wake();
    }
}

async fn store(cluster: &Cluster, gate: Arc<Gate>) -> Kubernetes {
    let connect = Connect { kubeconfig: Some(cluster.kubeconfig()), context: Some("testbed".into()) };
    let runtime = tokio::runtime::Handle::current();
    let spawn: Spawn = Arc::new(move |_, mut task| {
        let gate = gate.clone();
        drop(runtime.spawn(poll_fn(move |context| {
            gate.waker.register(context.waker());
            if gate.is_shut.load(Ordering::SeqCst) { Poll::Pending } else { task.as_mut().poll(context) }
        })));
    });
    Kubernetes::connect(&connect, Config::new(Arc::new(SystemClock::new()), spawn)).await.unwrap()
}

/// A fresh kind, and the store that it is on.
async fn start(cluster: &Cluster, gate: &Arc<Gate>) -> (Kubernetes, Widgets) {
    let store = store(cluster, gate.clone()).await;
    let widgets = Subject::new(Arc::new(store.clone())).widgets().await;
    (store, widgets)
}

fn resource(widgets: &Widgets) -> String {
    format!("widgets.{}", widgets.kind.group)
}

/// How often something is asked of the server about widgets, from now on: to make sure that they are served
/// took some questions too.
fn counting(store: &Kubernetes, verb: Verb, widgets: &Widgets) -> impl Fn() -> u64 + use<> {
    let (requests, name) = (store.requests().clone(), resource(widgets));
    let before = requests.sent(verb, &name);
    move || requests.sent(verb, &name) - before
}

fn everywhere(widgets: &Widgets) -> Query {
    Query::all(widgets.kind.clone())
}

async fn until_initial_end(events: &mut Events) -> Vec<Encoded> {
    let mut objects = Vec::new();
    loop {
        match next(events).await {
            Event::Bookmark { is_initial_end: true, .. } => return objects,
            event => objects.extend(event.object().cloned()),
        }
    }
}

/// Follows a query as the engine does, until an object of this name is there. Answers how often it had
/// to list again.
async fn follow_until(store: &dyn Store, query: &Query, mut events: Events, name: &str) -> usize {
    let mut lists = 0;
    let mut position = None;
    loop {
        match events.next().await {
            Some(Ok(event)) => {
                if matches!(&event, Event::Added(object) if &*object.key().name == name) {
                    return lists;
                }
                position = Some(event.position().clone());
            }
            Some(Err(Error::Expired)) => {
                lists += 1;
                events = store.watch(query, None).await.unwrap();
            }
            Some(Err(error)) => panic!("{error}"),
            None => events = store.watch(query, position.as_ref()).await.unwrap(),
        }
    }
}

macro_rules! case {
    ($name:ident, $cluster:ident, $body:block) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let Some($cluster) = Cluster::shared() else { return };
            bounded(stringify!($name), Box::pin(async move $body)).await;
        }
    };
}

case!(many_watchers_share_one_watch, cluster, {
    let (store, widgets) = start(cluster, &Arc::default()).await;
    let [watches_sent, lists_sent] = [Verb::Watch, Verb::List].map(|verb| counting(&store, verb, &widgets));
    let there = widgets.create("there", json!({"n": 1})).await;
    let mut watches = Vec::new();
    for _ in 0..5 {
        watches.push(store.watch(&everywhere(&widgets), None).await.unwrap());
    }
    for events in &mut watches {
        assert_eq!(until_initial_end(events).await, std::slice::from_ref(&there));
    }
    // One who watches a namespace rides along, and one who comes back.
    let mut positioned = store.watch(&everywhere(&widgets), Some(there.resource_version())).await.unwrap();
    let mut within = store.watch(&widgets.query(), None).await.unwrap();
    until_initial_end(&mut within).await;
    let made = widgets.create("made", json!({"n": 1})).await;
    for events in watches.iter_mut().chain([&mut within]) {
        assert_eq!(next(events).await, Event::Added(made.clone()));
    }
    assert_eq!(next(&mut positioned).await, Event::Added(made.clone()));
    widgets.delete("made").await;
    for events in &mut watches {
        let event = next(events).await;
        assert!(matches!(&event, Event::Deleted(last) if last.decode().spec() == made.decode().spec()));
    }
    // The position before the list of the shared watch needs one of its own.
    assert!(watches_sent() <= 2, "{:?}", store.requests().snapshot());
    assert_eq!(lists_sent(), 1);
});

case!(reads_of_a_watched_kind_ask_nothing, cluster, {
    let (store, widgets) = start(cluster, &Arc::default()).await;
    let gets_sent = counting(&store, Verb::Get, &widgets);
    let made = widgets.create("a", json!({"n": 1})).await;
    let mut events = store.watch(&everywhere(&widgets), None).await.unwrap();
    until_initial_end(&mut events).await;
    let mut current = made;
    for n in 2..20 {
        current = widgets.set_n(&current, n).await;
        assert_eq!(widgets.get("a").await, current);
        assert!(widgets.is_gone("missing").await);
    }
    assert_eq!(gets_sent(), 0);
});

case!(own_writes_are_read_while_the_watch_lags, cluster, {
    let gate = Arc::new(Gate::default());
    let (store, widgets) = start(cluster, &gate).await;
    let gets_sent = counting(&store, Verb::Get, &widgets);
    let held = widgets.create("held", json!({"n": 1})).await;
    gate.is_shut.store(true, Ordering::SeqCst);
    let mut events = store.watch(&everywhere(&widgets), None).await.unwrap();
    assert_eq!(until_initial_end(&mut events).await.len(), 1);
    let made = widgets.create("made", json!({"n": 1})).await;
    assert_eq!(widgets.get("made").await, made);
    let changed = widgets.set_n(&held, 2).await;
    assert_eq!(widgets.get("held").await, changed);
    let observed = widgets.try_status(&changed, json!({"n": 1})).await.unwrap();
    assert_eq!(widgets.get("held").await, observed);
    widgets.delete("made").await;
    assert!(widgets.is_gone("made").await);
    let again = widgets.create("made", json!({"n": 7})).await;
    assert_eq!(widgets.get("made").await, again);
    assert_eq!(gets_sent(), 0);
    gate.open();
    // A watch that starts now shows all that was written, and the first hears of it in order.
    let mut late = store.watch(&everywhere(&widgets), None).await.unwrap();
    let there = until_initial_end(&mut late).await;
    assert_eq!(there, [observed.clone(), again.clone()]);
    assert_eq!(next(&mut events).await, Event::Added(made));
    assert_eq!(next(&mut events).await, Event::Modified(changed));
    assert_eq!(next(&mut events).await, Event::Modified(observed));
    assert!(matches!(next(&mut events).await, Event::Deleted(_)));
    assert_eq!(next(&mut events).await, Event::Added(again));
});

case!(a_conflict_makes_the_next_read_live, cluster, {
    let gate = Arc::new(Gate::default());
    let (ours, widgets) = start(cluster, &gate).await;
    let gets_sent = counting(&ours, Verb::Get, &widgets);
    let theirs = store(cluster, Arc::default()).await;
    let made = widgets.create("a", json!({"n": 1})).await;
    gate.is_shut.store(true, Ordering::SeqCst);
    let mut events = ours.watch(&everywhere(&widgets), None).await.unwrap();
    until_initial_end(&mut events).await;
    let mut object = made.decode();
    object.set("spec", json!({"n": 2}));
    let theirs = theirs.update(object, &By::actor("other")).await.unwrap();
    assert_eq!(widgets.get("a").await, made, "nobody has told us");
    let refusal = widgets.try_update(&made, |object| object.set("spec", json!({"n": 3}))).await;
    assert!(matches!(refusal, Err(Error::Conflict { .. })));
    assert_eq!(widgets.get("a").await, theirs);
    assert_eq!(widgets.get("a").await, theirs);
    assert_eq!(gets_sent(), 1);
    gate.open();
    assert_eq!(next(&mut events).await, Event::Modified(theirs));
});

case!(managed_fields_are_left_out_everywhere, cluster, {
    let (store, widgets) = start(cluster, &Arc::default()).await;
    let object = widgets.object("a", json!({"n": 1, "text": "theirs"})).into_value().to_string();
    cluster.kubectl_with(&["apply", "--server-side", "-f", "-"], &object).unwrap();
    let is_clean = |object: &Encoded| object.decode().metadata("managedFields").is_null();
    let live = widgets.get("a").await;
    assert!(is_clean(&live));
    assert!(widgets.list().await.items.iter().all(is_clean));
    let mut events = store.watch(&everywhere(&widgets), None).await.unwrap();
    assert_eq!(until_initial_end(&mut events).await, std::slice::from_ref(&live));
    assert_eq!(widgets.get("a").await, live);
    // What was read can be written back, and is still theirs in the eyes of the server.
    assert!(is_clean(&widgets.set_n(&live, 2).await));
    let shown = cluster.kubectl(&[
        "get",
        &resource(&widgets),
        "a",
        "-n",
        &widgets.namespace,
        "-o",
        "yaml",
        "--show-managed-fields",
    ]);
    assert!(shown.unwrap().contains("manager: kubectl"));
});

case!(watches_go_on_after_a_definition_was_changed, cluster, {
    let (store, widgets) = start(cluster, &Arc::default()).await;
    let query = everywhere(&widgets);
    let mut shared = store.watch(&query, None).await.unwrap();
    until_initial_end(&mut shared).await;
    let labelled = everywhere(&widgets).with_labels(LabelSelector::label("l", "1"));
    let mut own = store.watch(&labelled, None).await.unwrap();
    until_initial_end(&mut own).await;
    let mut definition = store.get(&widgets.definition).await.unwrap().decode();
    let schema = &mut definition.get_mut("spec")["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["more"] = json!({"type": "string"});
    store.update(definition, &By::actor("test")).await.unwrap();
    widgets.create_labelled("after", json!({"l": "1"})).await;
    follow_until(&store, &query, shared, "after").await;
    follow_until(&store, &labelled, own, "after").await;
    assert_eq!(widgets.get("after").await.head().labels["l"], "1");
});

// The server announces versions one after the other, each a moment after the one before.
case!(a_kind_is_there_with_all_its_versions_or_not_at_all, cluster, {
    let subject = Subject::new(Arc::new(store(cluster, Arc::default()).await));
    // Each asks only now and then, so several see more of the moments in between.
    let mut readers = Vec::new();
    for _ in 0..8 {
        readers.push(store(cluster, Arc::default()).await);
    }
    let definition = Definition::usual().changed(|spec| {
        let mut older = spec["versions"][0].clone();
        older["name"] = json!("v1alpha1");
        older["storage"] = json!(false);
        spec["versions"].as_array_mut().unwrap().push(older);
    });
    let clock = SystemClock::new();
    for _ in 0..30 {
        let group = format!("{}.conformance.concert.dev", subject.unique("half"));
        subject.store.create(definition.object(&group, "half"), &By::actor("test")).await.unwrap();
        let kind = GroupKind::new(group.as_str(), "Widget");
        let mut waiting: Vec<&Kubernetes> = readers.iter().collect();
        while let Some(reader) = waiting.pop() {
            match reader.kind(&kind).await {
                Ok(found) => {
                    let versions: Vec<&str> = found.versions.iter().map(|it| &**it).collect();
                    let is_whole = versions.len() == 2 && versions.contains(&"v1alpha1");
                    assert!(is_whole && &*found.storage_version == "v1", "{versions:?} of {kind}");
                }
                Err(Error::UnknownKind { .. }) => {
                    waiting.insert(0, reader);
                    clock.sleep(Duration::from_millis(10)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
});

case!(a_kind_that_is_gone_ends_its_watches, cluster, {
    let (store, widgets) = start(cluster, &Arc::default()).await;
    widgets.create("a", json!({"n": 1})).await;
    let mut events = store.watch(&everywhere(&widgets), None).await.unwrap();
    until_initial_end(&mut events).await;
    store.delete(&widgets.definition, &Delete::default(), &By::actor("test")).await.unwrap();
    loop {
        match events.next().await {
            Some(Ok(_) | Err(Error::Expired)) => {}
            Some(Err(Error::UnknownKind { .. })) | None => break,
            Some(Err(error)) => panic!("{error}"),
        }
    }
    let refusal = store.list(&everywhere(&widgets), &PageRequest::whole()).await;
    assert!(matches!(refusal, Err(Error::UnknownKind { .. })), "{refusal:?}");
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_go_on_after_the_server_was_restarted() {
    // One of its own: others would notice.
    let Some(cluster) = Cluster::start().unwrap() else { return };
    bounded(
        "restart",
        Box::pin(async {
            let (store, widgets) = start(&cluster, &Arc::default()).await;
            let query = everywhere(&widgets);
            let before = widgets.create("before", json!({"n": 1})).await;
            let events = store.watch(&query, None).await.unwrap();
            let old = widgets.list().await.position;
            let changed = widgets.set_n(&before, 2).await;
            cluster.stop_api_server().unwrap();
            // Reads go on from what was told; writes say that they cannot be done.
            assert_eq!(widgets.get("before").await, changed);
            assert!(matches!(
                widgets.try_create(widgets.object("lost", json!({}))).await,
                Err(Error::Unavailable(_))
            ));
            cluster.start_api_server().unwrap();
            widgets.create("after", json!({"n": 1})).await;
            follow_until(&store, &query, events, "after").await;
            assert_eq!(widgets.get("before").await, changed);
            // A server that was started later knows nothing of what happened before.
            let labelled = everywhere(&widgets).with_labels(LabelSelector::parse("!l").unwrap());
            let refusal = match store.watch(&labelled, Some(&old)).await {
                Ok(mut events) => events.next().await.unwrap().map(drop),
                Err(error) => Err(error),
            };
            assert!(matches!(refusal, Err(Error::Expired)), "{refusal:?}");
            let missing = ObjectKey::namespaced(widgets.kind.clone(), widgets.namespace.clone(), "lost");
            assert!(matches!(store.get(&missing).await, Err(Error::NotFound { .. }) | Ok(_)));
        }),
    )
    .await;
}
