//! Questions about oneself.

use serde_json::json;

use crate::stage::Stage;

#[tokio::test]
async fn who_am_i() {
    let stage = Stage::new().await;
    let question = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let answer = stage.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &question).await.expect(201);
    assert_eq!(answer["kind"], "SelfSubjectReview");
    let info = &answer["status"]["userInfo"];
    assert_eq!(
        (&info["username"], &info["groups"]),
        (&json!("developer"), &json!(["system:masters", "system:authenticated"]))
    );
}

#[tokio::test]
async fn may_i() {
    let stage = Stage::new().await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let spec = json!({"resourceAttributes": {"namespace": "default", "verb": "get", "resource": "secrets"}});
    let question =
        json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec});
    let answer = stage.post(path, &question).await.expect(201);
    assert_eq!((&answer["status"]["allowed"], &answer["spec"]), (&json!(true), &spec));
    let path_question = json!({"spec": {"nonResourceAttributes": {"path": "/version", "verb": "get"}}});
    assert_eq!(stage.post(path, &path_question).await.expect(201)["status"]["allowed"], true);
    assert_eq!(stage.post(path, &json!({"spec": {}})).await.refusal().0, 422);
    assert_eq!(stage.post(path, &json!({"kind": "Widget"})).await.refusal().0, 400);
}

#[tokio::test]
async fn what_may_i() {
    let stage = Stage::new().await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let question = json!({"spec": {"namespace": "default"}});
    let status = stage.post(path, &question).await.expect(201)["status"].clone();
    assert_eq!(status["incomplete"], false);
    assert_eq!(status["resourceRules"][0]["verbs"], json!(["*"]));
    assert_eq!(stage.post(path, &json!({"spec": {}})).await.refusal().0, 400);
}

#[tokio::test]
async fn they_are_found_by_discovery() {
    let stage = Stage::new().await;
    let list = stage.get("/apis/authorization.k8s.io/v1").await.expect(200);
    let names: Vec<&str> =
        list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]);
}
