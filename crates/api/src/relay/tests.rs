//! The way to another replica, against a server of a few lines.

use std::sync::Arc;

use async_trait::async_trait;
use concert_store::SystemClock;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::client::{Peer, pass_on};
use super::{Place, RELAYED, Way, Whose};
use crate::kube::Body;

/// Answers one request with `answer` and tells what was asked.
#[expect(clippy::disallowed_methods, reason = "the runtime of a test ends with it")]
async fn server(answer: &'static str) -> (Peer, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&read).contains("the body") {
            let length = stream.read(&mut piece).await.unwrap();
            read.extend_from_slice(&piece[..length]);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&read).into_owned()
    });
    (Peer { url, trust: String::new() }, asked)
}

fn head() -> http::request::Parts {
    let request = http::Request::post("/api/v1/workers/w/claim?x=1")
        .header("authorization", "Bearer t")
        .header("content-type", "application/json")
        .header("cookie", "not-for-others");
    request.body(()).unwrap().into_parts().0
}

async fn text(body: Body) -> String {
    String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn a_request_arrives_as_it_came_and_its_answer_goes_back() {
    let (peer, asked) =
        server("HTTP/1.1 409 Conflict\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
            .await;
    let answer = pass_on(&peer, &head(), &"the body".into()).await.unwrap();
    assert_eq!(answer.status(), 409);
    assert_eq!(text(answer.into_body()).await, "{}");
    let asked = asked.await.unwrap().to_lowercase();
    assert!(asked.starts_with("post /api/v1/workers/w/claim?x=1 http/1.1"), "{asked}");
    assert!(asked.contains("authorization: bearer t") && asked.contains("x-concert-relayed: 1"), "{asked}");
    assert!(!asked.contains("cookie"), "{asked}");
}

#[tokio::test]
async fn nobody_there_is_no_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let peer = Peer { url, trust: String::new() };
    let Err(refused) = pass_on(&peer, &head(), &"the body".into()).await else { panic!("nobody is there") };
    assert!(refused.to_string().contains("cannot connect"), "{refused}");
}

struct Told(Place);

#[async_trait]
impl Whose for Told {
    async fn place(&self) -> Place {
        self.0.clone()
    }
}

fn way(place: Place) -> Way {
    Way::new(Arc::new(Told(place)), Arc::new(SystemClock::new()))
}

#[tokio::test]
async fn who_knows_better_is_asked_by_the_same_person() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{\"a\":1}";
    let (peer, asked) = server(answer).await;
    let uri = "/apis/g/v1/things/t/explain".parse().unwrap();
    let mut headers = http::HeaderMap::new();
    headers.insert("authorization", "Bearer the body of a token".parse().unwrap());
    let told = way(Place::There(peer)).ask(&uri, &headers).await;
    assert_eq!(told, Some(serde_json::json!({"a": 1})));
    let asked = asked.await.unwrap().to_lowercase();
    assert!(asked.starts_with("get /apis/g/v1/things/t/explain http/1.1"), "{asked}");
    assert!(asked.contains("x-concert-relayed: 1") && asked.contains("accept: application/json"), "{asked}");
}

#[tokio::test]
async fn what_is_known_here_must_do_where_nobody_knows_better_or_answers() {
    let uri = "/apis/g/v1/things/t/explain".parse().unwrap();
    let mut headers = http::HeaderMap::new();
    for place in [Place::Here, Place::Nowhere, Place::There(Peer::default())] {
        assert_eq!(way(place).ask(&uri, &headers).await, None);
    }
    let (refuses, asked) = server("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\n{}").await;
    headers.insert("authorization", "Bearer the body of a token".parse().unwrap());
    assert_eq!(way(Place::There(refuses)).ask(&uri, &headers).await, None);
    asked.await.unwrap();
    // Two that each take the other for the one who knows better.
    headers.insert(RELAYED, "1".parse().unwrap());
    let (peer, asked) = server("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
    assert_eq!(way(Place::There(peer)).ask(&uri, &headers).await, None);
    assert!(!asked.is_finished(), "it was not asked");
    asked.abort();
}
