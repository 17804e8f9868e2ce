//! Tables and partial objects.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{Stage, WIDGETS};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn headings(table: &Value) -> Vec<&str> {
    table["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_list_can_be_a_table() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    stage.clock.advance(Duration::from_secs(90));
    let table = stage.get_as(&format!("{WIDGETS}?limit=500"), TABLE).await.expect(200);
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(headings(&table), ["Name", "Size", "Phase", "Age"]);
    assert_eq!(
        table["columnDefinitions"][0],
        json!({"name": "Name", "type": "string", "format": "name", "description": "Unique within kind and namespace.", "priority": 0})
    );
    assert_eq!(table["columnDefinitions"][2]["priority"], 1);
    let row = &table["rows"][0];
    assert_eq!(row["cells"], json!(["a", 1, null, "90s"]));
    assert_eq!(
        row["object"],
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created["metadata"]})
    );
    let single = stage.get_as(&format!("{WIDGETS}/a"), TABLE).await.expect(200);
    assert_eq!(single["rows"][0]["cells"], row["cells"]);
}

#[tokio::test]
async fn rows_carry_as_much_of_the_object_as_asked() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let whole = stage.get_as(&format!("{WIDGETS}?includeObject=Object"), TABLE).await.expect(200);
    assert_eq!(whole["rows"][0]["object"], created);
    let none = stage.get_as(&format!("{WIDGETS}?includeObject=None"), TABLE).await.expect(200);
    assert_eq!(none["rows"][0].get("object"), None);
    assert_eq!(stage.get_as(&format!("{WIDGETS}?includeObject=Half"), TABLE).await.refusal().0, 400);
}

#[tokio::test]
async fn built_in_kinds_have_their_columns() {
    let stage = Stage::new().await;
    let namespace = "/api/v1/namespaces/default";
    stage
        .post(
            &format!("{namespace}/secrets"),
            &json!({"metadata": {"name": "s"}, "data": {"a": "YQ==", "b": "Yg=="}}),
        )
        .await
        .expect(201);
    stage
        .post(&format!("{namespace}/configmaps"), &json!({"metadata": {"name": "c"}, "data": {"a": "1"}}))
        .await
        .expect(201);
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Widget", "name": "a"}, "reason": "Made",
        "message": "made it", "type": "Normal", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 2});
    stage.post(&format!("{namespace}/events"), &event).await.expect(201);
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    stage.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", &lease).await.expect(201);
    let table = async |path: &str| {
        let table = stage.get_as(path, TABLE).await.expect(200);
        (headings(&table).join(" "), table["rows"][0]["cells"].clone())
    };
    let expect = |headings: &str, cells: Value| (headings.to_owned(), cells);
    let secrets = table(&format!("{namespace}/secrets")).await;
    assert_eq!(secrets, expect("Name Type Data Age", json!(["s", "Opaque", 2, "0s"])));
    assert_eq!(
        table(&format!("{namespace}/configmaps")).await,
        expect("Name Data Age", json!(["c", 1, "0s"]))
    );
    let namespaces = table("/api/v1/namespaces").await;
    assert_eq!(namespaces, expect("Name Status Age", json!(["default", "Active", "0s"])));
    let events = table(&format!("{namespace}/events")).await;
    assert_eq!(events.0, "Last Seen Type Reason Object Subobject Source Message First Seen Count Name");
    assert_eq!(events.1, json!(["0s", "Normal", "Made", "widget/a", "", "", "made it", "<unknown>", 2, "e"]));
    let leases = table("/apis/coordination.k8s.io/v1/namespaces/default/leases").await;
    assert_eq!(leases, expect("Name Holder Age", json!(["l", "me", "0s"])));
    let definitions = table("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").await;
    assert_eq!(
        definitions,
        expect("Name Created At", json!(["widgets.example.com", "2026-01-01T00:00:00Z"]))
    );
}

#[tokio::test]
async fn only_the_metadata_if_asked() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created["metadata"]});
    let accept = |kind: &str| format!("application/json;as={kind};v=v1;g=meta.k8s.io");
    let one = stage.get_as(&format!("{WIDGETS}/a"), &accept("PartialObjectMetadata")).await.expect(200);
    assert_eq!(one, partial);
    let all = stage.get_as(WIDGETS, &accept("PartialObjectMetadataList")).await.expect(200);
    assert_eq!(all["kind"], "PartialObjectMetadataList");
    assert_eq!(all["items"], json!([partial]));
    assert_eq!(stage.get_as(WIDGETS, &accept("PartialObjectMetadata")).await.code, 406);
    assert_eq!(stage.get_as(WIDGETS, &accept("Chair")).await.code, 406);
}
