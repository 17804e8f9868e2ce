//! The control port, by hand-written requests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

use std::sync::Arc;

use concert_provider_example::cloud::{Api, Cloud, Settings};
use concert_provider_example::control;
use concert_store::{Chance, SystemClock};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One request on a connection of its own.
async fn call(address: &str, method: &str, path: &str, body: Value) -> (u16, String, Value) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json");
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head[9..12].parse().unwrap();
    (status, head.to_lowercase(), serde_json::from_str(body).unwrap_or(Value::Null))
}

/// Runs `test` against a control port.
async fn with_control<F: Future<Output = ()>>(settings: Settings, test: impl FnOnce(String) -> F) {
    let cloud = Cloud::new(settings, Chance::seeded(3));
    let api = Arc::new(Api::new(cloud, Arc::new(SystemClock::new())));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::select! {
        served = control::serve(listener, api, std::future::pending()) => panic!("{served:?}"),
        () = test(address) => {}
    }
}

#[tokio::test]
async fn the_cloud_has_an_api_of_its_own() {
    with_control(Settings::default(), async |at| {
        let wanted =
            json!({"kind": "bucket", "token": "t", "owner": {"uid": "u"}, "properties": {"size": 1}});
        let (status, _, made) = call(&at, "POST", "/cloud/things", wanted.clone()).await;
        assert_eq!((status, made["state"].as_str()), (201, Some("ready")));
        let again = call(&at, "POST", "/cloud/things", wanted).await.2;
        assert_eq!(again["id"], made["id"]);
        let path = format!("/cloud/things/{}?kind=bucket", made["id"].as_str().unwrap());
        let (status, _, changed) = call(&at, "PUT", &path, json!({"properties": {"size": 2}})).await;
        assert_eq!((status, &changed["properties"]["size"]), (200, &json!(2)));
        assert_eq!(call(&at, "GET", "/cloud/tokens/t", Value::Null).await.2["found"]["id"], made["id"]);
        assert_eq!(call(&at, "GET", "/cloud/tokens/other", Value::Null).await.2, json!({"found": null}));
        assert_eq!(call(&at, "DELETE", &path, Value::Null).await.0, 204);
        assert_eq!(call(&at, "GET", &path, Value::Null).await.0, 404);
        let summary = call(&at, "GET", "/summary", Value::Null).await.2;
        assert_eq!(
            summary,
            json!({"created": 1, "updated": 1, "deleted": 1, "burnt": 1, "live": 0, "doubles": 0, "late": 0})
        );
    })
    .await;
}

#[tokio::test]
async fn things_can_be_changed_behind_the_providers_back() {
    with_control(Settings::default(), async |at| {
        let made =
            call(&at, "POST", "/cloud/things", json!({"kind": "bucket", "owner": {"uid": "u"}})).await.2;
        let path = format!("/things/{}", made["id"].as_str().unwrap());
        let drift = json!({"properties": {"size": 7}, "isBroken": true});
        let drifted = call(&at, "POST", &path, drift).await.2;
        assert_eq!(
            (&drifted["properties"]["size"], drifted["state"].as_str()),
            (&json!(7), Some("unavailable"))
        );
        assert_eq!(call(&at, "POST", "/leaks", json!({"known": []})).await.2[0]["id"], made["id"]);
        assert_eq!(call(&at, "POST", "/leaks", json!({"known": ["u"]})).await.2, json!([]));
        assert_eq!(call(&at, "DELETE", &path, Value::Null).await.0, 200);
        assert_eq!(call(&at, "DELETE", &path, Value::Null).await.0, 404);
        let truth = call(&at, "GET", "/truth?since=2", Value::Null).await.2;
        assert_eq!((truth["entries"][0]["event"].as_str(), &truth["live"]), (Some("deleted"), &json!([])));
    })
    .await;
}

#[tokio::test]
async fn settings_change_while_it_runs_and_faults_have_their_codes() {
    with_control(Settings::default(), async |at| {
        let change = async |fields: Value| call(&at, "PUT", "/settings", fields).await;
        assert_eq!(change(json!({"errorRate": 3})).await.0, 400);
        assert_eq!(change(json!({"errorRate": 1})).await.2["errorRate"], json!(1.0));
        assert_eq!(call(&at, "POST", "/cloud/things", json!({})).await.0, 503);
        change(json!({"errorRate": 0, "lostAnswers": 1})).await;
        assert_eq!(call(&at, "POST", "/cloud/things", json!({})).await.0, 504);
        change(json!({"lostAnswers": 0, "quota": {"perSecond": 0.5, "burst": 1}})).await;
        call(&at, "GET", "/cloud/things", Value::Null).await;
        let (status, head, body) = call(&at, "GET", "/cloud/things", Value::Null).await;
        assert_eq!(status, 429);
        assert!(head.contains("retry-after: 2") || head.contains("retry-after: 3"), "{head}");
        assert!(body["retryAfterMs"].as_u64().unwrap() > 1000, "{body}");
        assert_eq!(call(&at, "GET", "/summary", Value::Null).await.2["created"], 1);
    })
    .await;
}
