//! What is served, as clients ask for it.

use serde_json::{Value, json};

use crate::stage::Stage;

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn find<'a>(list: &'a Value, field: &str, name: &str) -> &'a Value {
    let found = list.as_array().unwrap().iter().find(|entry| entry[field] == *name);
    found.unwrap_or_else(|| panic!("no {name} in {list}"))
}

#[tokio::test]
async fn the_core_and_the_groups() {
    let stage = Stage::new().await;
    let core = stage.get("/api").await.expect(200);
    assert_eq!(core, json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}));
    let groups = stage.get("/apis?timeout=32s").await.expect(200);
    assert_eq!((&groups["kind"], &groups["apiVersion"]), (&json!("APIGroupList"), &json!("v1")));
    let group = find(&groups["groups"], "name", "example.com");
    let expected = json!({
        "name": "example.com",
        "preferredVersion": {"groupVersion": "example.com/v1", "version": "v1"},
        "versions": [
            {"groupVersion": "example.com/v1", "version": "v1"},
            {"groupVersion": "example.com/v1beta1", "version": "v1beta1"},
        ],
    });
    assert_eq!(*group, expected);
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap()).collect();
    let last_known = names.iter().rposition(|name| name.ends_with(".k8s.io")).unwrap();
    assert!(last_known < names.iter().position(|name| *name == "example.com").unwrap(), "{names:?}");
    let alone = stage.get("/apis/example.com").await.expect(200);
    assert_eq!((&alone["kind"], &alone["name"]), (&json!("APIGroup"), &json!("example.com")));
}

#[tokio::test]
async fn the_resources_of_a_version() {
    let stage = Stage::new().await;
    let list = stage.get("/apis/example.com/v1").await.expect(200);
    assert_eq!(
        list,
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": [
            {"name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget", "verbs": VERBS,
                "shortNames": ["wd"], "categories": ["all"]},
            {"name": "widgets/status", "singularName": "", "namespaced": true, "kind": "Widget",
                "verbs": ["get", "patch", "update"]},
        ]})
    );
    let core = stage.get("/api/v1").await.expect(200);
    assert_eq!(find(&core["resources"], "name", "namespaces")["namespaced"], false);
    assert_eq!(find(&core["resources"], "name", "secrets")["kind"], "Secret");
}

#[tokio::test]
async fn everything_at_once() {
    let stage = Stage::new().await;
    let reply = stage.get_as("/apis", AGGREGATED).await;
    assert_eq!(
        reply.headers["content-type"],
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let all = reply.expect(200);
    assert_eq!(all["kind"], "APIGroupDiscoveryList");
    assert_eq!(all["apiVersion"], "apidiscovery.k8s.io/v2");
    let group =
        all["items"].as_array().unwrap().iter().find(|g| g["metadata"]["name"] == "example.com").unwrap();
    let kind = json!({"group": "example.com", "version": "v1", "kind": "Widget"});
    assert_eq!(
        group["versions"][0],
        json!({"version": "v1", "freshness": "Current", "resources": [{
            "resource": "widgets", "responseKind": kind, "scope": "Namespaced", "singularResource": "widget",
            "verbs": VERBS, "shortNames": ["wd"], "categories": ["all"],
            "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get", "patch", "update"]}],
        }]})
    );
    let core = stage.get_as("/api", AGGREGATED).await.expect(200);
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(core["items"][0]["versions"][0]["version"], "v1");
}

#[tokio::test]
async fn a_client_that_has_it_is_told_so() {
    let stage = Stage::new().await;
    let first = stage.get_as("/apis", AGGREGATED).await;
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    let headers = [("accept", AGGREGATED), ("if-none-match", tag.as_str())];
    let again = stage.send("GET", "/apis", &headers, "").await;
    assert_eq!((again.code, again.bytes.len()), (304, 0));
    stage
        .delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
        .await
        .expect(200);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let patch = json!({"metadata": {"finalizers": null}});
    stage.patch(path, "merge-patch+json", &patch).await.expect(200);
    let gone = stage.send("GET", "/apis", &headers, "").await;
    assert_eq!(gone.code, 200);
    assert_eq!(stage.get("/apis/example.com/v1").await.code, 404);
}

#[tokio::test]
async fn version_and_health() {
    let stage = Stage::new().await;
    let version = stage.get("/version").await.expect(200);
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("34")));
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1.34.0+concert-"));
    for path in ["/healthz", "/livez", "/readyz"] {
        let reply = stage.get(path).await;
        assert_eq!((reply.code, &reply.bytes[..]), (200, &b"ok"[..]));
    }
    let verbose = stage.get("/readyz?verbose").await;
    assert_eq!(&verbose.bytes[..], b"[+]store ok\nreadyz check passed\n");
    let paths = stage.get("/").await.expect(200);
    assert!(paths["paths"].as_array().unwrap().contains(&json!("/apis/example.com/v1")));
    // One that is about to go is not ready, and answers still.
    stage.api.leave();
    for (path, code) in [("/readyz", 503), ("/healthz", 200), ("/livez", 200), ("/version", 200)] {
        assert_eq!(stage.get(path).await.code, code, "{path}");
    }
}
