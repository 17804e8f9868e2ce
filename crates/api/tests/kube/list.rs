//! Lists: selectors, pages, moments.

use concert_model::Revision;
use serde_json::{Value, json};

use crate::stage::{Stage, WIDGETS, widget};

async fn five() -> Stage {
    let stage = Stage::new().await;
    for (i, name) in ["a", "b", "c", "d", "e"].iter().enumerate() {
        let mut object = widget(name);
        object["metadata"]["labels"] = json!({"odd": (i % 2 == 1).to_string()});
        object["spec"]["colour"] = json!(if i < 2 { "red" } else { "blue" });
        stage.post(WIDGETS, &object).await.expect(201);
    }
    stage
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_list_has_its_kind_and_the_moment_it_shows() {
    let stage = five().await;
    let list = stage.get(WIDGETS).await.expect(200);
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("WidgetList"), &json!("example.com/v1")));
    assert_eq!(names(&list), ["a", "b", "c", "d", "e"]);
    let newest = &list["items"][4]["metadata"]["resourceVersion"];
    assert_eq!(&list["metadata"], &json!({"resourceVersion": newest}));
    let everywhere = stage.get("/apis/example.com/v1/widgets").await.expect(200);
    assert_eq!(everywhere, list);
    let empty = stage.get("/apis/example.com/v1/namespaces/none/widgets").await.expect(200);
    assert_eq!(empty["items"], json!([]));
}

#[tokio::test]
async fn selectors_choose() {
    let stage = five().await;
    for (query, expected) in [
        ("labelSelector=odd%3Dtrue", vec!["b", "d"]),
        ("labelSelector=odd+notin+(true)", vec!["a", "c", "e"]),
        ("labelSelector=!odd", vec![]),
        ("fieldSelector=metadata.name%3Dc", vec!["c"]),
        ("fieldSelector=spec.colour%3Dred&labelSelector=odd=true", vec!["b"]),
    ] {
        assert_eq!(names(&stage.get(&format!("{WIDGETS}?{query}")).await.expect(200)), expected, "{query}");
    }
    for query in ["labelSelector=a+in+b", "labelSelector=-", "fieldSelector=spec.size%3D1", "fieldSelector=x"]
    {
        let (code, reason, _) = stage.get(&format!("{WIDGETS}?{query}")).await.refusal();
        assert_eq!((code, &*reason), (400, "BadRequest"), "{query}");
    }
}

#[tokio::test]
async fn pages_show_one_moment() {
    let stage = five().await;
    let first = stage.get(&format!("{WIDGETS}?limit=2")).await.expect(200);
    assert_eq!(names(&first), ["a", "b"]);
    stage.create("bb").await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = stage.get(&format!("{WIDGETS}?limit=2&continue={token}")).await.expect(200);
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let last = stage.get(&format!("{WIDGETS}?limit=2&continue={token}")).await.expect(200);
    assert_eq!(names(&last), ["e"]);
    assert_eq!(last["metadata"].get("continue"), None);
    let (code, _, message) = stage.get(&format!("{WIDGETS}?continue=nonsense")).await.refusal();
    assert_eq!((code, &*message), (400, "continue key is not valid: it was not given out by this server"));
}

#[tokio::test]
async fn a_page_too_old_offers_to_go_on_as_of_now() {
    let stage = five().await;
    let first = stage.get(&format!("{WIDGETS}?limit=2")).await.expect(200);
    let token = first["metadata"]["continue"].as_str().unwrap();
    stage.create("f").await;
    forget(&stage).await;
    let expired = stage.get(&format!("{WIDGETS}?limit=9&continue={token}")).await.expect(410);
    assert_eq!((&expired["reason"], &expired["status"]), (&json!("Expired"), &json!("Failure")));
    assert!(expired["message"].as_str().unwrap().starts_with("The provided continue parameter is too old"));
    let fresh = expired["metadata"]["continue"].as_str().unwrap();
    let rest = stage.get(&format!("{WIDGETS}?limit=9&continue={fresh}")).await.expect(200);
    assert_eq!(names(&rest), ["c", "d", "e", "f"]);
}

/// Compacts all but the present.
pub async fn forget(stage: &Stage) {
    let newest = stage.get(WIDGETS).await.json()["metadata"]["resourceVersion"].clone();
    let newest = Revision(newest.as_str().unwrap().parse().unwrap());
    stage.store.compact(newest).await.unwrap();
}

#[tokio::test]
async fn moments_are_matched_as_asked() {
    let stage = five().await;
    let list = stage.get(WIDGETS).await.expect(200);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    stage.create("f").await;
    let get = async |query: String| stage.get(&format!("{WIDGETS}?{query}")).await;
    assert_eq!(names(&get("resourceVersion=0".into()).await.expect(200)).len(), 6);
    let exact = get(format!("resourceVersion={version}&resourceVersionMatch=Exact")).await.expect(200);
    assert_eq!(names(&exact).len(), 5);
    assert_eq!(exact["metadata"]["resourceVersion"], *version);
    let paged = get(format!("resourceVersion={version}&limit=10")).await.expect(200);
    assert_eq!(names(&paged).len(), 5);
    let later = get(format!("resourceVersion={version}&resourceVersionMatch=NotOlderThan")).await.expect(200);
    assert_eq!(names(&later).len(), 6);
    let future = get("resourceVersion=999999".into()).await.expect(504);
    assert_eq!(future["reason"], "Timeout");
    assert_eq!(future["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(future["details"]["retryAfterSeconds"], 1);
    let future = get("resourceVersion=999999&resourceVersionMatch=Exact".into()).await;
    assert_eq!(future.code, 504);
}

#[tokio::test]
async fn options_that_do_not_go_together_are_refused() {
    let stage = five().await;
    for (query, code) in [
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersionMatch=Exact&resourceVersion=0", 422),
        ("resourceVersionMatch=About&resourceVersion=1", 422),
        ("sendInitialEvents=true", 422),
        ("resourceVersion=abc", 400),
        ("resourceVersion=01", 400),
        ("limit=-1", 400),
    ] {
        assert_eq!(stage.get(&format!("{WIDGETS}?{query}")).await.refusal().0, code, "{query}");
    }
}

#[tokio::test]
async fn a_page_says_how_many_come_after_it() {
    let stage = Stage::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        stage.create(name).await;
    }
    let page = stage.get(&format!("{WIDGETS}?limit=2")).await.json();
    assert_eq!(page["metadata"]["remainingItemCount"], 3);
    let token = page["metadata"]["continue"].as_str().unwrap();
    stage.create("f").await;
    let next = stage.get(&format!("{WIDGETS}?limit=2&continue={token}")).await.json();
    // About: what was made meanwhile is counted, though this list will not show it.
    assert_eq!(next["metadata"]["remainingItemCount"], 2);
    let token = next["metadata"]["continue"].as_str().unwrap();
    let last = stage.get(&format!("{WIDGETS}?limit=2&continue={token}")).await.json();
    assert_eq!(last["metadata"].get("remainingItemCount"), None);
    let everywhere = "/apis/example.com/v1/widgets?limit=4";
    assert_eq!(stage.get(everywhere).await.json()["metadata"]["remainingItemCount"], 2);
    // With a selector nobody has counted.
    let selected = stage.get(&format!("{WIDGETS}?limit=2&fieldSelector=metadata.name!=a")).await.json();
    assert!(selected["metadata"]["continue"].is_string(), "{selected}");
    assert_eq!(selected["metadata"].get("remainingItemCount"), None);
}
