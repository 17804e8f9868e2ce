//! OpenAPI documents, as kubectl reads them.

use serde_json::{Value, json};

use crate::stage::Stage;

async fn document(stage: &Stage, path: &str) -> Value {
    let index = stage.get("/openapi/v3").await.expect(200);
    let link = index["paths"][path]["serverRelativeURL"].as_str().unwrap().to_owned();
    assert!(link.starts_with(&format!("/openapi/v3/{path}?hash=")), "{link}");
    stage.get(&link).await.expect(200)
}

#[tokio::test]
async fn patches_say_which_kind_and_parameters_they_have() {
    let stage = Stage::new().await;
    let document = document(&stage, "apis/example.com/v1").await;
    let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-action"], "patch");
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "example.com", "version": "v1", "kind": "Widget"})
    );
    let parameters = patch["parameters"].as_array().unwrap();
    for name in ["fieldValidation", "dryRun", "fieldManager", "force"] {
        assert!(parameters.iter().any(|p| p["name"] == name && p["in"] == "query"), "{name}");
    }
}

#[tokio::test]
async fn explain_finds_the_fields_of_a_kind() {
    let stage = Stage::new().await;
    let document = document(&stage, "apis/example.com/v1").await;
    let get = &document["paths"]["/apis/example.com/v1/widgets"]["get"];
    let kind = &get["x-kubernetes-group-version-kind"];
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let of_kind = |schema: &&Value| {
        schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.contains(kind))
    };
    let schema = schemas.values().find(of_kind).unwrap();
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["description"], "How large.");
    let meta = schema["properties"]["metadata"]["allOf"][0]["$ref"].as_str().unwrap();
    let name = meta.strip_prefix("#/components/schemas/").unwrap();
    assert!(schemas[name]["properties"]["labels"].is_object());
    assert!(schemas.contains_key("com.example.v1.Widget"));
    assert!(schemas.contains_key("com.example.v1.WidgetList"));
}

#[tokio::test]
async fn every_reference_leads_somewhere() {
    let stage = Stage::new().await;
    let index = stage.get("/openapi/v3").await.expect(200);
    for path in index["paths"].as_object().unwrap().keys() {
        let document = document(&stage, path).await;
        assert_eq!(document["openapi"], "3.0.0");
        let text = document.to_string();
        for link in text.split("\"#/components/schemas/").skip(1) {
            let name = &link[..link.find('"').unwrap()];
            assert!(document["components"]["schemas"][name].is_object(), "{path}: {name}");
        }
    }
    assert!(index["paths"].as_object().unwrap().contains_key("api/v1"));
}

#[tokio::test]
async fn a_changed_kind_has_another_link() {
    let stage = Stage::new().await;
    let link = async || stage.get("/openapi/v3").await.json()["paths"]["apis/example.com/v1"].clone();
    let before = link().await;
    assert_eq!(before, link().await);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let patch = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "Changed."}]);
    stage.patch(path, "json-patch+json", &patch).await.expect(200);
    assert_ne!(before, link().await);
}

#[tokio::test]
async fn version_two_describes_nothing_and_protobuf_of_version_three_is_not_there() {
    let stage = Stage::new().await;
    // kubectl gives up on a List where there is no such document, and leaves to the server what is not in it.
    let two = stage.get("/openapi/v2").await.expect(200);
    assert_eq!((&two["swagger"], &two["paths"]), (&json!("2.0"), &json!({})));
    let accept = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    assert_eq!(stage.get_as("/openapi/v3/apis/example.com/v1", accept).await.code, 406);
}
