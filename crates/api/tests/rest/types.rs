//! `/api/v1/resource-types`: every row of the contract.

use serde_json::{Value, json};

use crate::stage::{RESOURCES, Stage, TYPES, dns_type, record};

#[tokio::test]
async fn a_type_is_created_as_the_guide_does_it() {
    let stage = Stage::bare().await;
    let created = stage.post(TYPES, &dns_type("v1")).await.expect(201);
    let mut fields: Vec<&str> = created.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    let known =
        ["created_at", "description", "id", "metadata", "name", "schema", "status", "updated_at", "version"];
    assert_eq!(fields, known);
    assert_eq!((&created["id"], &created["status"]), (&json!(1), &json!("active")));
    assert_eq!(created["schema"], dns_type("v1")["schema"]);
    assert_eq!(created["description"], Value::Null);
    assert!(!created["created_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(stage.get(&format!("{TYPES}/1")).await.expect(200), created);
    assert_eq!(stage.get(&format!("{TYPES}/DnsRecord/v1")).await.expect(200), created);
}

#[tokio::test]
async fn what_is_there_twice_is_a_conflict() {
    let stage = Stage::bare().await;
    stage.post(TYPES, &dns_type("v1")).await.expect(201);
    let again = stage.post(TYPES, &dns_type("v1")).await;
    assert_eq!(again.refusal(), (409, "Resource type DnsRecord/v1 already exists".into()));
    let mut alike = dns_type("v1");
    alike["name"] = json!("Dnsrecord");
    assert_eq!(stage.post(TYPES, &alike).await.refusal().0, 409);
    alike["name"] = json!("DnsRecords");
    let (code, detail) = stage.post(TYPES, &alike).await.refusal();
    assert_eq!((code, detail.contains("DnsRecord")), (409, true), "{detail}");
    assert_eq!(stage.get(TYPES).await.expect(200).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn who_names_a_state_of_a_type_changes_only_that_state() {
    let stage = Stage::bare().await;
    let path = format!("{TYPES}/1");
    let created = stage.post(TYPES, &dns_type("v1")).await;
    assert!(created.header("etag").is_some());
    let seen = stage.get(&path).await.header("etag").unwrap().to_owned();
    let send = async |method: &str, tag: &str| {
        let headers = [("content-type", "application/json"), ("if-match", tag)];
        let body = if method == "PUT" { json!({"description": tag}).to_string() } else { String::new() };
        stage.send(method, &path, &headers, body).await
    };
    let changed = send("PUT", &seen).await;
    let now = changed.header("etag").unwrap().to_owned();
    assert_ne!(now, seen);
    assert_eq!(changed.expect(200)["description"], json!(seen));
    for method in ["PUT", "DELETE"] {
        assert_eq!(send(method, &seen).await.refusal().0, 412, "{method}");
    }
    let by_name = stage.get(&format!("{TYPES}/DnsRecord/v1")).await;
    assert_eq!(by_name.header("etag"), Some(&*now));
    assert_eq!(by_name.expect(200)["description"], json!(seen));
    assert_eq!(send("DELETE", &now).await.code, 204);
}

#[tokio::test]
async fn versions_are_separate_types() {
    let stage = Stage::new().await;
    let second = stage.post(TYPES, &dns_type("v2")).await.expect(201);
    assert_eq!((&second["id"], &second["version"]), (&json!(2), &json!("v2")));
    let one = stage.record("a").await;
    let mut body = record("a");
    body["resource_type_version"] = json!("v2");
    let two = stage.post(RESOURCES, &body).await.expect(201);
    assert_ne!(one["id"], two["id"]);
    assert_eq!(two["resource_type_version"], "v2");
    let listed = stage.get("/apis/v2.no8s.concert.dev/v2/dnsrecords").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(stage.delete(&format!("{TYPES}/1")).await.refusal().0, 409);
}

#[tokio::test]
async fn what_cannot_be_a_kind_is_named_by_field() {
    let stage = Stage::bare().await;
    let wrong =
        stage.post(TYPES, &json!({"name": "Dns Record", "version": "1.0", "schema": {}})).await.wrong();
    let kind = |name: &str| ("value_error".to_owned(), json!(["body", name]));
    assert_eq!(wrong, [kind("name"), kind("version")]);
    let missing = stage.post(TYPES, &json!({"name": "A"})).await.wrong();
    let missing: Vec<_> =
        missing.iter().map(|(kind, place)| (kind.as_str(), place[1].as_str().unwrap())).collect();
    assert_eq!(missing, [("missing", "version"), ("missing", "schema")]);
    let bad = json!({"name": "A", "version": "v1", "schema": [], "description": 1, "metadata": "x"});
    let wrong = stage.post(TYPES, &bad).await.wrong();
    let wrong: Vec<_> = wrong.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(wrong, ["dict_type", "string_type", "dict_type"]);
}

#[tokio::test]
async fn a_schema_must_be_draft_7() {
    let stage = Stage::bare().await;
    for schema in [json!({"type": "strin"}), json!({"required": "a"}), json!({"$ref": "http://127.0.0.1/x"})]
    {
        let body = json!({"name": "A", "version": "v1", "schema": schema});
        let (code, detail) = stage.post(TYPES, &body).await.refusal();
        assert_eq!(code, 422);
        assert!(detail.starts_with("Invalid JSON Schema (Draft 7): "), "{detail}");
    }
    assert_eq!(stage.get(TYPES).await.expect(200), json!([]));
}

#[tokio::test]
async fn types_are_listed_by_name_and_version() {
    let stage = Stage::bare().await;
    for (name, version) in [("B", "v1"), ("A", "v2"), ("A", "v1")] {
        let body = json!({"name": name, "version": version, "schema": {}});
        stage.post(TYPES, &body).await.expect(201);
    }
    let listed = async |query: &str| -> Vec<String> {
        let all = stage.get(&format!("{TYPES}{query}")).await.expect(200);
        let name =
            |it: &Value| format!("{}/{}", it["name"].as_str().unwrap(), it["version"].as_str().unwrap());
        all.as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(listed("").await, ["A/v1", "A/v2", "B/v1"]);
    assert_eq!(listed("?name=A").await, ["A/v1", "A/v2"]);
    assert_eq!(listed("?limit=1&offset=1").await, ["A/v2"]);
    assert_eq!(listed("?status=deprecated").await, Vec::<String>::new());
    stage.put(&format!("{TYPES}/1"), &json!({"status": "deprecated"})).await.expect(200);
    assert_eq!(listed("?status=deprecated").await, ["B/v1"]);
    let wrong = stage.get(&format!("{TYPES}?limit=-1")).await.wrong();
    assert_eq!(wrong, [("greater_than_equal".to_owned(), json!(["query", "limit"]))]);
}

#[tokio::test]
async fn a_type_is_changed_and_resources_stay_as_they_are() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let change = json!({"schema": {"required": ["more"]}, "description": "Names.", "status": "deprecated",
        "metadata": {"team": "net"}});
    let changed = stage.put(&format!("{TYPES}/1"), &change).await.expect(200);
    for field in ["schema", "description", "status", "metadata"] {
        assert_eq!(changed[field], change[field], "{field}");
    }
    assert_eq!(stage.get(&format!("{RESOURCES}/1")).await.expect(200)["generation"], 1);
    let (code, detail) = stage.post(RESOURCES, &record("b")).await.refusal();
    assert_eq!((code, &*detail), (400, "Spec validation failed: (root): 'more' is a required property"));
    let (code, _) = stage.put(&format!("{TYPES}/1"), &json!({"schema": {"type": 1}})).await.refusal();
    assert_eq!(code, 422);
    let same = stage.put(&format!("{TYPES}/1"), &json!({})).await.expect(200);
    assert_eq!(same, changed);
}

#[tokio::test]
async fn a_type_goes_when_nothing_refers_to_it() {
    let stage = Stage::new().await;
    stage.record("a").await;
    let refused = stage.delete(&format!("{TYPES}/1")).await;
    assert_eq!(refused.refusal(), (409, "Cannot delete: resources still reference this type".into()));
    let unknown = stage.delete(&format!("{TYPES}/9")).await;
    assert_eq!(unknown.refusal(), (404, "Resource type not found".into()));
    stage.delete(&format!("{RESOURCES}/1")).await.expect(202);
    stage.put(&format!("{RESOURCES}/1/finalizers"), &json!({"remove": ["dns_record"]})).await.expect(200);
    stage.delete(&format!("{TYPES}/1")).await.expect(204);
    assert_eq!(stage.get(&format!("{TYPES}/1")).await.refusal(), (404, "Resource type not found".into()));
    assert_eq!(stage.get(&format!("{TYPES}/DnsRecord/v1")).await.refusal().0, 404);
    assert_eq!(stage.get(TYPES).await.expect(200), json!([]));
}

#[tokio::test]
async fn a_number_in_a_path_is_a_number() {
    let stage = Stage::bare().await;
    let wrong = stage.get(&format!("{TYPES}/abc")).await.wrong();
    assert_eq!(wrong, [("int_parsing".to_owned(), json!(["path", "resource_type_id"]))]);
    assert_eq!(stage.get(&format!("{TYPES}/-1")).await.refusal().0, 404);
    assert_eq!(stage.get(&format!("{TYPES}/99999999999999999999")).await.refusal().0, 404);
}
