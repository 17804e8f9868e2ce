//! Making, reading and replacing single objects.

use serde_json::json;

use crate::stage::{Stage, WIDGETS, widget};

#[tokio::test]
async fn a_created_object_is_answered_as_it_is_stored() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    assert_eq!(created["apiVersion"], "example.com/v1");
    assert_eq!(created["kind"], "Widget");
    assert_eq!(created["metadata"]["namespace"], "default");
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(created["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(stage.get(&format!("{WIDGETS}/a")).await.expect(200), created);
}

#[tokio::test]
async fn another_version_shows_the_same_object() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let path = "/apis/example.com/v1beta1/namespaces/default/widgets/a";
    let seen = stage.get(path).await.expect(200);
    assert_eq!(seen["apiVersion"], "example.com/v1beta1");
    assert_eq!(seen["metadata"], created["metadata"]);
    assert_eq!(seen["spec"], created["spec"]);
}

#[tokio::test]
async fn a_read_is_not_older_than_asked() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let version = created["metadata"]["resourceVersion"].as_str().unwrap();
    for at in ["", "0", version] {
        let path = format!("{WIDGETS}/a?resourceVersion={at}");
        assert_eq!(stage.get(&path).await.expect(200), created, "{at}");
    }
    for name in ["a", "none"] {
        let future = stage.get(&format!("{WIDGETS}/{name}?resourceVersion=999999")).await.expect(504);
        assert_eq!(future["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    }
    for odd in ["x", "-1", "01", "1.0"] {
        let refused = stage.get(&format!("{WIDGETS}/a?resourceVersion={odd}")).await;
        assert_eq!(refused.refusal().0, 400, "{odd}");
    }
}

#[tokio::test]
async fn an_object_may_be_written_in_yaml() {
    let stage = Stage::new().await;
    let yaml = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  size: 3\n";
    let reply = stage.send("POST", WIDGETS, &[("content-type", "application/yaml")], yaml).await;
    assert_eq!(reply.expect(201)["spec"]["size"], 3);
}

#[tokio::test]
async fn an_object_may_be_read_in_yaml_and_pretty() {
    let stage = Stage::new().await;
    stage.create("a").await;
    let path = format!("{WIDGETS}/a");
    let yaml = stage.get_as(&path, "application/yaml").await;
    assert_eq!(yaml.headers["content-type"], "application/yaml");
    let text = String::from_utf8(yaml.bytes.to_vec()).unwrap();
    assert!(text.contains("kind: Widget\n"), "{text}");
    let pretty = stage.get(&format!("{path}?pretty=true")).await;
    assert!(pretty.bytes.starts_with(b"{\n  \""));
    assert_eq!(pretty.json(), stage.get(&path).await.json());
}

#[tokio::test]
async fn a_name_can_be_made_up_by_the_server() {
    let stage = Stage::new().await;
    let mut object = widget("");
    object["metadata"] = json!({"generateName": "w-"});
    let created = stage.post(WIDGETS, &object).await.expect(201);
    let name = created["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("w-") && name.len() == 7, "{name}");
}

#[tokio::test]
async fn an_update_needs_the_version_it_was_made_from() {
    let stage = Stage::new().await;
    let created = stage.create("a").await;
    let path = format!("{WIDGETS}/a");
    let mut changed = created.clone();
    changed["spec"]["size"] = json!(2);
    let updated = stage.put(&path, &changed).await.expect(200);
    assert_eq!((&updated["spec"]["size"], &updated["metadata"]["generation"]), (&json!(2), &json!(2)));
    let (code, reason, message) = stage.put(&path, &changed).await.refusal();
    assert_eq!((code, &*reason), (409, "Conflict"));
    assert_eq!(
        message,
        "Operation cannot be fulfilled on widgets.example.com \"a\": the object has been modified; please apply \
         your changes to the latest version and try again"
    );
    changed["metadata"]["resourceVersion"] = json!(null);
    let (code, reason, _) = stage.put(&path, &changed).await.refusal();
    assert_eq!((code, &*reason), (422, "Invalid"));
}

#[tokio::test]
async fn built_in_kinds_may_be_overwritten_blindly() {
    let stage = Stage::new().await;
    let path = "/api/v1/namespaces/default/configmaps";
    stage.post(path, &json!({"metadata": {"name": "a"}, "data": {"k": "1"}})).await.expect(201);
    let overwritten =
        stage.put(&format!("{path}/a"), &json!({"metadata": {"name": "a"}, "data": {"k": "2"}})).await;
    assert_eq!(overwritten.expect(200)["data"], json!({"k": "2"}));
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_and_changes_nothing() {
    let stage = Stage::new().await;
    let reply = stage.post(&format!("{WIDGETS}?dryRun=All"), &widget("a")).await;
    let metadata = reply.expect(201)["metadata"].clone();
    assert_eq!((&metadata["name"], metadata.get("resourceVersion")), (&json!("a"), None));
    assert_eq!(stage.get(&format!("{WIDGETS}/a")).await.code, 404);
    let (code, reason, message) = stage.post(&format!("{WIDGETS}?dryRun=Some"), &widget("a")).await.refusal();
    assert_eq!((code, &*reason), (422, "Invalid"));
    assert_eq!(
        message,
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: \"Some\": supported values: \"All\""
    );
}

#[tokio::test]
async fn unknown_fields_are_dropped_warned_about_or_refused() {
    let stage = Stage::new().await;
    let mut object = widget("a");
    object["spec"]["weight"] = json!(1);
    let ignored = stage.post(&format!("{WIDGETS}?fieldValidation=Ignore&dryRun=All"), &object).await;
    assert_eq!(ignored.expect(201)["spec"], json!({"size": 1}));
    assert!(ignored.warnings().is_empty());
    let warned = stage.post(&format!("{WIDGETS}?dryRun=All"), &object).await;
    assert_eq!(warned.expect(201)["spec"], json!({"size": 1}));
    assert_eq!(warned.warnings(), [r#"299 - "unknown field \"spec.weight\"""#]);
    let refused = stage.post(&format!("{WIDGETS}?fieldValidation=Strict"), &object).await;
    let (code, reason, message) = refused.refusal();
    assert_eq!((code, &*reason), (400, "BadRequest"));
    assert_eq!(
        message,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.weight\""
    );
    let odd = stage.post(&format!("{WIDGETS}?fieldValidation=Maybe"), &object).await;
    assert_eq!(odd.refusal().0, 422);
}

#[tokio::test]
async fn unknown_fields_of_every_sort_of_change_are_treated_alike() {
    let stage = Stage::new().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    stage.post(maps, &json!({"metadata": {"name": "c"}, "data": {"k": "1"}})).await.expect(201);
    let mut whole = stage.create("a").await;
    whole["spec"]["weight"] = json!(1);
    let operations = json!([{"op": "add", "path": "/spec/weight", "value": 1}]);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let keys = json!([{"name": "k"}]);
    let account = json!({"metadata": {"name": "s"}, "secrets": keys, "imagePullSecrets": keys});
    stage.post(accounts, &account).await.expect(201);
    let (widget, map, account) = (format!("{WIDGETS}/a"), format!("{maps}/c"), format!("{accounts}/s"));
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com/status";
    let strategic = "strategic-merge-patch+json";
    let odd_secret = json!({"secrets": [{"name": "k", "nmae": "x"}]});
    let odd_image_secret = json!({"imagePullSecrets": [{"name": "k", "namespace": "x"}]});
    let odd_phase = json!({"status": {"phaes": "Active"}});
    let odd_versions = json!({"status": {"storedVersion": "v1"}});
    for (method, path, kind, body, field) in [
        ("PUT", widget.as_str(), "json", whole, "spec.weight"),
        ("PATCH", widget.as_str(), "merge-patch+json", json!({"spec": {"weight": 1}}), "spec.weight"),
        ("PATCH", widget.as_str(), "json-patch+json", operations, "spec.weight"),
        ("PATCH", map.as_str(), strategic, json!({"daat": {"k": "2"}}), "daat"),
        ("PATCH", account.as_str(), strategic, odd_secret, "secrets[0].nmae"),
        ("PATCH", account.as_str(), "merge-patch+json", odd_image_secret, "imagePullSecrets[0].namespace"),
        ("PATCH", "/api/v1/namespaces/default/status", strategic, odd_phase, "status.phaes"),
        ("PATCH", definition, "merge-patch+json", odd_versions, "status.storedVersion"),
    ] {
        let kind = format!("application/{kind}");
        let headers = [("content-type", kind.as_str())];
        let at = |mode: &str| format!("{path}?fieldValidation={mode}");
        let before = stage.get(path).await.expect(200);
        let strict = stage.send(method, &at("Strict"), &headers, body.to_string()).await;
        let (code, reason, message) = strict.refusal();
        assert_eq!((code, &*reason), (400, "BadRequest"), "{method} {kind}");
        assert!(message.contains(&format!("unknown field \"{field}\"")), "{message}");
        let ignored = stage.send(method, &at("Ignore"), &headers, body.to_string()).await;
        assert_eq!((ignored.code, ignored.warnings().len()), (200, 0), "{method} {kind}");
        let warned = stage.send(method, &at("Warn"), &headers, body.to_string()).await;
        assert_eq!(warned.code, 200, "{method} {kind}");
        assert_eq!(warned.warnings(), [format!("299 - \"unknown field \\\"{field}\\\"\"")]);
        let odd = stage.send(method, &at("Maybe"), &headers, body.to_string()).await;
        assert_eq!(odd.refusal().0, 422, "{method} {kind}");
        assert_eq!(stage.get(path).await.expect(200), before, "nothing of it is stored");
    }
}

#[tokio::test]
async fn fields_given_twice_count_as_unknown_ones() {
    let stage = Stage::new().await;
    let twice = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1,"size":2}}"#;
    let headers = [("content-type", "application/json")];
    let strict = stage.send("POST", &format!("{WIDGETS}?fieldValidation=Strict"), &headers, twice).await;
    assert_eq!(
        strict.refusal().2,
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: duplicate field \"spec.size\""
    );
    let warned = stage.send("POST", WIDGETS, &headers, twice).await;
    assert_eq!(warned.expect(201)["spec"]["size"], 2);
    assert_eq!(warned.warnings(), [r#"299 - "duplicate field \"spec.size\"""#]);
}

#[tokio::test]
async fn what_path_and_body_say_must_agree() {
    let stage = Stage::new().await;
    let change = |pointer: &str, value: serde_json::Value| {
        let mut object = widget("a");
        match pointer {
            "namespace" => object["metadata"]["namespace"] = value,
            field => object[field] = value,
        }
        object
    };
    for (object, message) in [
        (
            change("namespace", json!("other")),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            change("apiVersion", json!("example.com/v1beta1")),
            "the API version in the data (example.com/v1beta1) does not match the expected API version (example.com/v1)",
        ),
        (
            change("kind", json!("Gadget")),
            "Gadget in version \"v1\" cannot be handled as a Widget: its kind must be \"Widget\"",
        ),
        (change("kind", json!(null)), "Object 'Kind' is missing"),
    ] {
        assert_eq!(stage.post(WIDGETS, &object).await.refusal(), (400, "BadRequest".into(), message.into()));
    }
    let (code, _, message) = stage.put(&format!("{WIDGETS}/b"), &widget("a")).await.refusal();
    assert_eq!(code, 400);
    assert_eq!(message, "the name of the object (a) does not match the name on the URL (b)");
}

#[tokio::test]
async fn a_cluster_scoped_object_has_no_namespace() {
    let stage = Stage::new().await;
    let object = json!({"metadata": {"name": "n", "namespace": "default"}});
    let created = stage.post("/api/v1/namespaces", &object).await.expect(201);
    assert_eq!(created["metadata"].get("namespace"), None);
    assert_eq!(created["kind"], "Namespace");
    assert_eq!(created["apiVersion"], "v1");
}
