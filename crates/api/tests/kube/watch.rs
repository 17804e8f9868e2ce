//! Watches.

use std::time::Duration;

use concert_api::kube::Limits;
use serde_json::json;

use crate::list::forget;
use crate::stage::{Stage, WIDGETS, change, widget};

#[tokio::test]
async fn every_change_is_a_line() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let version = created["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = stage.watch(&format!("{WIDGETS}?watch=true&resourceVersion={version}")).await;
    let mut other = stage.watch(&format!("{WIDGETS}?watch=1&resourceVersion={version}")).await;
    let added = stage.create("b").await;
    let mut object = created.clone();
    object["spec"]["size"] = json!(2);
    let modified = stage.put(&format!("{WIDGETS}/a"), &object).await.expect(200);
    stage.delete(&format!("{WIDGETS}/b")).await.expect(200);
    for watch in [&mut watch, &mut other] {
        assert_eq!(watch.next().await.unwrap(), json!({"type": "ADDED", "object": added}));
        assert_eq!(watch.next().await.unwrap(), json!({"type": "MODIFIED", "object": modified}));
        let deleted = watch.next().await.unwrap();
        assert_eq!(
            (&deleted["type"], &deleted["object"]["metadata"]["name"]),
            (&json!("DELETED"), &json!("b"))
        );
        let last = &deleted["object"]["metadata"]["resourceVersion"];
        assert_ne!(*last, added["metadata"]["resourceVersion"]);
    }
}

#[tokio::test]
async fn a_watch_without_a_version_starts_with_what_is_there() {
    let stage = Stage::new().await;
    stage.create("a").await;
    for query in ["watch=true", "watch=true&resourceVersion=0&allowWatchBookmarks=true"] {
        let mut watch = stage.watch(&format!("{WIDGETS}?{query}")).await;
        assert_eq!(watch.change().await, change("ADDED", "a"));
        stage.create("b").await;
        assert_eq!(watch.change().await, change("ADDED", "b"), "{query}");
        stage.delete(&format!("{WIDGETS}/b")).await;
    }
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark_that_says_so() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let query =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = stage.watch(&format!("{WIDGETS}?{query}")).await;
    assert_eq!(watch.change().await, change("ADDED", "a"));
    let version = stage.get(WIDGETS).await.json()["metadata"]["resourceVersion"].clone();
    assert_eq!(
        watch.next().await.unwrap(),
        json!({"type": "BOOKMARK", "object": {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {
            "resourceVersion": version, "creationTimestamp": null,
            "annotations": {"k8s.io/initial-events-end": "true"}}}})
    );
    stage.create("b").await;
    assert_eq!(watch.change().await, change("ADDED", "b"));
}

#[tokio::test]
async fn no_initial_events_means_none() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let query = "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut watch = stage.watch(&format!("{WIDGETS}?{query}")).await;
    stage.create("b").await;
    assert_eq!(watch.change().await, change("ADDED", "b"));
}

#[tokio::test]
async fn bookmarks_come_only_if_asked_for() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let version = created["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{WIDGETS}?watch=true&resourceVersion={version}");
    let (mut with, mut without) =
        (stage.watch(&format!("{path}&allowWatchBookmarks=true")).await, stage.watch(&path).await);
    let elsewhere = json!({"metadata": {"name": "c"}});
    stage.post("/api/v1/namespaces/default/configmaps", &elsewhere).await.expect(201);
    stage.clock.advance(Duration::from_secs(61));
    let bookmark = with.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"].get("annotations"), None);
    stage.create("b").await;
    assert_eq!(without.change().await, change("ADDED", "b"));
}

#[tokio::test]
async fn a_watch_ends_cleanly_when_its_time_is_up() {
    let stage = Stage::new().await;
    let mut watch = stage.watch(&format!("{WIDGETS}?watch=true&timeoutSeconds=5")).await;
    stage.clock.advance(Duration::from_secs(6));
    assert_eq!(watch.next().await, None);
    let mut forever = stage.watch(&format!("{WIDGETS}?watch=true")).await;
    stage.clock.advance(Duration::from_secs(2 * 60 * 60));
    assert_eq!(forever.next().await, None);
}

#[tokio::test]
async fn closing_ends_every_watch() {
    let stage = Stage::new().await;
    let mut watch = stage.watch(&format!("{WIDGETS}?watch=true")).await;
    stage.api.close();
    assert_eq!(watch.next().await, None);
    assert_eq!(stage.watch(&format!("{WIDGETS}?watch=true")).await.next().await, None);
}

#[tokio::test]
async fn a_position_too_old_is_an_error_event() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let version = created["metadata"]["resourceVersion"].as_str().unwrap();
    stage.create("b").await;
    forget(&stage).await;
    let mut watch = stage.watch(&format!("{WIDGETS}?watch=true&resourceVersion={version}")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    let status = &event["object"];
    assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(410)));
    assert_eq!(status["reason"], "Expired");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn an_object_that_leaves_the_selection_is_deleted_for_it() {
    let stage = Stage::new().await;
    let mut object = widget("a");
    object["metadata"]["labels"] = json!({"app": "x"});
    let created = stage.post(WIDGETS, &object).await.expect(201);
    let version = created["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch =
        stage.watch(&format!("{WIDGETS}?watch=true&resourceVersion={version}&labelSelector=app%3Dx")).await;
    let patch = json!({"metadata": {"labels": {"app": "y"}}});
    stage.patch(&format!("{WIDGETS}/a"), "merge-patch+json", &patch).await.expect(200);
    assert_eq!(watch.change().await, change("DELETED", "a"));
    let patch = json!({"metadata": {"labels": {"app": "x"}}});
    stage.patch(&format!("{WIDGETS}/a"), "merge-patch+json", &patch).await.expect(200);
    assert_eq!(watch.change().await, change("ADDED", "a"));
}

#[tokio::test]
async fn options_of_a_watch_that_do_not_go_together() {
    let stage = Stage::new().await;
    for (query, code) in [
        ("sendInitialEvents=true", 422),
        ("resourceVersionMatch=NotOlderThan", 422),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", 422),
        ("limit=5", 400),
        ("resourceVersion=999999", 504),
        ("resourceVersion=x", 400),
        ("fieldSelector=spec.size%3D1", 400),
        ("timeoutSeconds=-1", 400),
    ] {
        let path = format!("{WIDGETS}?watch=true&{query}");
        assert_eq!(stage.get(&path).await.refusal().0, code, "{query}");
    }
}

#[tokio::test]
async fn there_is_a_bound_on_watches() {
    let stage = Stage::with_limits(Limits { watches_max: 1, ..Limits::default() }).await;
    let path = format!("{WIDGETS}?watch=true");
    let watch = stage.watch(&path).await;
    let refused = stage.get(&path).await;
    assert_eq!((refused.code, &*refused.refusal().1), (429, "TooManyRequests"));
    assert_eq!(refused.headers["retry-after"], "5");
    drop(watch);
    stage.watch(&path).await;
}

#[tokio::test]
async fn a_watch_can_be_of_rows_or_of_metadata() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let path = format!("{WIDGETS}?watch=true");
    let mut rows = stage.watch_as(&path, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    let first = rows.next().await.unwrap();
    assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
    assert_eq!(first["object"]["columnDefinitions"].as_array().unwrap().len(), 4);
    assert_eq!(first["object"]["rows"][0]["cells"], json!(["a", 1, null, "0s"]));
    let accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let mut partial = stage.watch_as(&path, accept).await;
    let event = partial.next().await.unwrap();
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(event["object"].get("spec"), None);
    stage.create("b").await;
    let second = rows.next().await.unwrap();
    assert_eq!(second["object"]["columnDefinitions"], json!([]));
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
}

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";

#[tokio::test]
async fn one_object_is_watched_by_its_name_or_by_its_path() {
    let stage = Stage::new().await;
    stage.create("a").await;
    stage.create("b").await;
    let selector = format!("{WIDGETS}?watch=true&fieldSelector=metadata.name%3Db");
    for path in [selector, format!("{WIDGETS}/b?watch=true")] {
        let mut watch = stage.watch(&path).await;
        assert_eq!(watch.change().await, change("ADDED", "b"), "{path}");
        stage.create("c").await;
        stage.delete(&format!("{WIDGETS}/b")).await.expect(200);
        assert_eq!(watch.change().await, change("DELETED", "b"), "{path}");
        stage.create("b").await;
        assert_eq!(watch.change().await, change("ADDED", "b"), "{path}");
        stage.delete(&format!("{WIDGETS}/c")).await.expect(200);
    }
    let odd = stage.get(&format!("{WIDGETS}/b/status?watch=true")).await;
    assert_eq!(odd.refusal().0, 400);
}

#[tokio::test]
async fn a_watch_ends_when_its_definition_changes() {
    let stage = Stage::new().await;
    let mut watch = stage.watch(&format!("{WIDGETS}?watch=true")).await;
    // What others write into the status changes nothing that is watched.
    let touched = json!({"metadata": {"labels": {"a": "b"}}});
    stage.patch(DEFINITION, "merge-patch+json", &touched).await.expect(200);
    stage.clock.advance(Duration::from_secs(3));
    stage.create("a").await;
    assert_eq!(watch.change().await, change("ADDED", "a"));

    let mut definition = stage.get(DEFINITION).await.json();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("new");
    stage.put(DEFINITION, &definition).await.expect(200);
    stage.clock.advance(Duration::from_secs(3));
    assert_eq!(watch.next().await, None);
    let mut elsewhere = stage.watch("/api/v1/namespaces/default/configmaps?watch=true").await;
    let mut again = stage.watch(&format!("{WIDGETS}?watch=true&fieldSelector=metadata.name%3Dx")).await;
    stage.delete(&format!("{WIDGETS}/a")).await.expect(200);
    stage.delete(DEFINITION).await.expect(200);
    let finalizers = json!({"metadata": {"finalizers": null}});
    stage.patch(DEFINITION, "merge-patch+json", &finalizers).await.expect(200);
    stage.clock.advance(Duration::from_secs(3));
    assert_eq!(again.next().await, None);
    let map = json!({"metadata": {"name": "c"}});
    stage.post("/api/v1/namespaces/default/configmaps", &map).await.expect(201);
    assert_eq!(elsewhere.change().await, change("ADDED", "c"));
}
