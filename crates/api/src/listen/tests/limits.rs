//! Too many, too much, too slow.

use super::*;

#[tokio::test]
async fn requests_follow_each_other_on_a_connection() {
    let server = plain(Limits::default()).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        client.send(&format!("GET /hello HTTP/1.1\r\nhost: {}\r\n\r\n", server.address)).await;
        let answer = client.until("hello").await;
        assert_eq!(code(&answer), 200);
        assert!(
            answer.contains("x-content-type-options: nosniff") && answer.contains("no-cache"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn headers_that_do_not_end_end_the_connection() {
    let server = plain(brief()).await;
    for opening in ["", "G", "GET /hello HTTP/1.1\r\nhost: a\r\nx: "] {
        let mut client = server.connect().await;
        client.send(opening).await;
        assert_eq!(code(&client.rest().await), 0, "{opening:?}");
    }
    // Nor does it help to have been good before.
    let mut client = server.connect().await;
    let good = format!("GET /hello HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
    client.send(&good).await;
    client.until("hello").await;
    client.send("GET /hel").await;
    assert_eq!(client.rest().await, "");
    assert_eq!(code(&server.ask("GET /hello", "").await), 200);
}

#[tokio::test]
async fn headers_without_bound_are_refused() {
    let server = plain(Limits::default()).await;
    let long = format!("GET /hello\nx: {}", "y".repeat(100 * 1024));
    assert_eq!(code(&server.ask(&long, "").await), 431);
    let many: String = (0..300).map(|n| format!("\nx{n}: y")).collect();
    assert_eq!(code(&server.ask(&format!("GET /hello{many}"), "").await), 431);
}

#[tokio::test]
async fn bodies_without_bound_are_refused() {
    let server = plain(Limits { body_bytes_max: 1_000, ..Limits::default() }).await;
    let post = format!("POST /body\n{JSON}");
    assert!(server.ask(&post, &"x".repeat(1_000)).await.ends_with("1000"));
    let answer = server.ask(&post, &"x".repeat(1_001)).await;
    assert_eq!(code(&answer), 413);
    assert!(answer.contains(r#""reason":"RequestEntityTooLarge""#), "{answer}");
    // Whoever does not say how long it is finds out while sending.
    let chunk = format!("258\r\n{}\r\n", "x".repeat(600));
    let mut client = server.connect().await;
    client.send(&server.request(&format!("{post}\ntransfer-encoding: chunked"), "")).await;
    client.send(&format!("{chunk}{chunk}0\r\n\r\n")).await;
    assert_eq!(code(&client.rest().await), 413);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = plain(Limits { body_time: Duration::from_millis(100), ..Limits::default() }).await;
    let mut client = server.connect().await;
    client.send(&server.request(&format!("POST /body\n{JSON}\ncontent-length: 100"), "")).await;
    client.send("half of it").await;
    assert_eq!(code(&client.rest().await), 408);
}

#[tokio::test]
async fn connections_over_the_limit_are_closed_at_once() {
    let server = plain(Limits { connections_max: 2, ..Limits::default() }).await;
    let hello = format!("GET /hello HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        client.send(&hello).await;
        client.until("hello").await;
        held.push(client);
    }
    let mut third = server.connect().await;
    let _ = third.stream.write_all(hello.as_bytes()).await;
    assert_eq!(third.rest().await, "");
    drop(held.pop());
    let again = async { while code(&server_try(&server, &hello).await) != 200 {} };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

/// One try, which may be turned away.
async fn server_try(server: &Server, text: &str) -> String {
    let mut client = server.connect().await;
    let _ =
        client.stream.write_all(text.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes()).await;
    client.rest().await
}

#[tokio::test]
async fn requests_over_the_limit_are_told_to_come_back() {
    let mut server = plain(Limits { requests_max: 1, ..Limits::default() }).await;
    let mut first = server.connect().await;
    first.send(&server.request("GET /held", "")).await;
    server.next(Event::Entered).await;
    let answer = server.ask("GET /hello", "").await;
    assert_eq!(code(&answer), 429);
    assert!(answer.contains("retry-after: 1\r\n") && answer.contains("TooManyRequests"), "{answer}");
    server.release.notify_one();
    assert!(first.rest().await.ends_with("released"));
    assert_eq!(code(&server.ask("GET /hello", "").await), 200);
}

#[tokio::test]
async fn a_client_that_asks_too_fast_is_told_to_come_back() {
    let rate = Some(Rate { per_second: 1, burst: 5 });
    let server = plain(Limits { rate, ..Limits::default() }).await;
    let mut codes = Vec::new();
    for _ in 0..20 {
        let answer = server.ask("GET /hello", "").await;
        codes.push(code(&answer));
        let is_refused = codes.last() == Some(&429);
        assert_eq!(answer.contains("retry-after: 1\r\n"), is_refused, "{answer}");
    }
    assert_eq!(codes[..5], [200; 5]);
    assert!(codes[5..].iter().filter(|code| **code == 429).count() >= 10, "{codes:?}");
}

#[tokio::test]
async fn watches_have_a_limit_of_their_own() {
    let server = plain(Limits { watches_max: 1, requests_max: 1, ..Limits::default() }).await;
    let mut watch = server.connect().await;
    watch.send(&server.request("GET /watch?watch=true", "")).await;
    watch.until("first").await;
    assert_eq!(code(&server.ask("GET /watch?watch=1", "").await), 429);
    assert_eq!(code(&server.ask("GET /hello", "").await), 200);
    drop(watch);
    let again = async {
        loop {
            let mut watch = server.connect().await;
            watch.send(&server.request("GET /watch?watch=1", "")).await;
            if code(&watch.until("\r\n\r\n").await) == 200 {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn who_does_not_read_what_they_asked_for_is_let_go() {
    let limits = Limits { stall_time: Duration::from_millis(200), ..brief() };
    let mut server = plain(limits).await;
    let mut client = server.connect().await;
    client.send(&server.request("GET /flood?watch=true", "")).await;
    server.next(Event::FloodDropped).await;
}

#[tokio::test]
async fn websites_and_other_names_are_refused_in_development() {
    let server = plain(Limits::default()).await;
    let foreign = server.ask("GET /hello\norigin: http://evil.dev", "").await;
    assert_eq!(code(&foreign), 403);
    assert!(foreign.contains(r#""reason":"Forbidden""#), "{foreign}");
    let mut client = server.connect().await;
    client.send("GET /hello HTTP/1.1\r\nhost: evil.dev\r\nconnection: close\r\n\r\n").await;
    assert_eq!(code(&client.rest().await), 403);
    assert_eq!(code(&server.ask("POST /body\ncontent-type: text/plain", "{}").await), 415);
    assert_eq!(code(&server.ask(&format!("POST /body\n{JSON}"), "{}").await), 200);
}

#[tokio::test]
async fn development_stays_on_loopback() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let config = Config {
            address: address.parse().unwrap(),
            security: Security::Development,
            limits: Limits::default(),
            clock: Arc::new(SystemClock::new()),
        };
        assert!(matches!(Listener::bind(config).await, Err(ListenError::Exposed(_))), "{address}");
    }
}

#[tokio::test]
async fn a_panic_costs_one_request() {
    let server = plain(Limits::default()).await;
    let answer = server.ask("GET /panic", "").await;
    assert_eq!(code(&answer), 500);
    assert!(answer.contains("InternalError") && !answer.contains("as asked for"), "{answer}");
    assert_eq!(code(&server.ask("GET /hello", "").await), 200);
}

#[tokio::test]
async fn nonsense_is_refused() {
    let server = plain(brief()).await;
    let nonsense =
        ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}\r\n\r\n"];
    for text in nonsense {
        let mut client = server.connect().await;
        client.send(text).await;
        let code = code(&client.rest().await);
        assert!(code == 0 || code >= 400, "{text:?} {code}");
    }
    assert_eq!(code(&server.ask("GET /hello", "").await), 200);
}

/// The body of an answer.
fn body(answer: &str) -> serde_json::Value {
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

#[tokio::test]
async fn a_refusal_has_the_shape_of_the_door_that_was_knocked_at() {
    let mut server = plain(Limits { requests_max: 1, body_bytes_max: 10, ..Limits::default() }).await;
    let mut first = server.connect().await;
    first.send(&server.request("GET /held", "")).await;
    server.next(Event::Entered).await;
    let large = "x".repeat(11);
    let rest = ["/api/v1/resources", "/api/v1/users/7", "/api/v1/workers/w/claim", "/api/v1/events"];
    let kube = ["/api/v1/namespaces", "/apis/no8s.concert.dev/v1/dnsrecords", "/hello"];
    for (path, is_rest) in rest.map(|it| (it, true)).into_iter().chain(kube.map(|it| (it, false))) {
        let post = format!("POST {path}\n");
        for (expected, request, sent) in [
            (415, format!("{post}content-type: text/plain"), "{}"),
            (413, format!("{post}{JSON}"), &*large),
            (429, format!("{post}{JSON}"), "{}"),
        ] {
            // What is posted to `events` is an event of Kubernetes.
            let is_rest = is_rest && path != "/api/v1/events";
            let answer = server.ask(&request, sent).await;
            assert_eq!(code(&answer), expected, "{path}: {answer}");
            let told = body(&answer);
            assert_eq!((told["detail"].is_string(), told["kind"] == "Status"), (is_rest, !is_rest), "{told}");
            assert_eq!(answer.contains("retry-after: 1\r\n"), expected == 429, "{answer}");
        }
    }
    server.release.notify_one();
    first.rest().await;
}
