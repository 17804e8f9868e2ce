//! A worker and its server, when the way between them is bad.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod speaker;

use std::sync::Arc;
use std::time::Duration;

use concert_worker::{
    Answer, Component, Entry, Error, Failed, Inventory, Outcome, Registration, Server, Waits, Worker,
};
use serde_json::json;
use speaker::Speaker;
use tokio::sync::{Notify, Semaphore};

/// Does what the name of the entry says.
#[derive(Clone)]
struct Scripted {
    may_end: Arc<Notify>,
    /// One for each run that has begun.
    begun: Arc<Semaphore>,
}

impl Default for Scripted {
    fn default() -> Self {
        Self { may_end: Arc::default(), begun: Arc::new(Semaphore::new(0)) }
    }
}

impl Component for Scripted {
    async fn reconcile(&self, entry: &Entry, inventory: &Inventory) -> Outcome {
        self.begun.add_permits(1);
        match entry.id.as_str() {
            "waiting" => {
                assert!(!inventory.read().await?.sections.contains_key("network"));
                inventory.write("cluster", &json!({"x": 1})).await?;
                inventory.read().await?;
                Ok(Answer::not_ready("no network", [Waits::section("network").path("/vnet_name")]))
            }
            "held" => {
                self.may_end.notified().await;
                Ok(Answer::ready("let go"))
            }
            "endless" => std::future::pending().await,
            "broken" => panic!("canary-4711"),
            "moved" => {
                inventory.write("cluster", &json!({"x": 1})).await?;
                inventory.write_at("cluster", &json!({"x": 2}), 17).await?;
                Ok(Answer::ready(""))
            }
            "never" => Err(Failed::terminal("never")),
            large if large.starts_with("large") => Ok(Answer::ready("x".repeat(30_000))),
            _ => {
                assert_eq!((entry.attempt, entry.reasons.join(",")), (2, "section:network".to_owned()));
                Ok(Answer::ready("fine"))
            }
        }
    }
}

/// A worker with everything around it. It stops when it is asked to.
struct Running {
    speaker: Speaker,
    component: Scripted,
    stop: Arc<Notify>,
    work: tokio::task::JoinSet<Result<(), Error>>,
}

async fn start(lease: Duration, grace: Duration) -> Running {
    let speaker = Speaker::start().await;
    speaker.known().revision = 7;
    let (component, stop) = (Scripted::default(), Arc::new(Notify::new()));
    let registration = Registration::new("test")
        .handles("runtime")
        .watches_path("network", "/vnet_name")
        .follows("apps", "v1", "Deployment", None)
        .reads(["network"])
        .writes(["cluster"])
        .lease(lease);
    let server = Server::new(&speaker.url()).unwrap().token("host-token").unwrap();
    let worker = Worker::new(server, registration, component.clone()).grace(grace);
    let mut work = tokio::task::JoinSet::new();
    let until = stop.clone();
    work.spawn(async move { worker.run(async move { until.notified().await }).await });
    Running { speaker, component, stop, work }
}

impl Running {
    async fn end(mut self) -> Speaker {
        self.stop.notify_one();
        self.work.join_next().await.unwrap().unwrap().unwrap();
        self.speaker
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_registration_says_everything_and_answers_carry_item_fence_and_revision() {
    let running = start(MINUTE, MINUTE).await;
    running.speaker.offer("waiting");
    running.speaker.until(|it| it.results.len() == 1).await;
    let speaker = running.end().await;
    let known = speaker.known();
    let body = &known.registered[0];
    assert_eq!(body["handles"], json!([{"kind": "runtime"}]));
    assert_eq!(body["watches"], json!([{"section": "network", "path": "/vnet_name"}]));
    assert_eq!(body["cluster_events"], json!([{"group": "apps", "version": "v1", "kind": "Deployment"}]));
    assert_eq!(body["grants"], json!({"read": ["network"], "write": ["cluster"]}));
    let result = &known.results[0];
    assert_eq!((&result["item"], &result["fence"]), (&json!("waiting/test"), &json!(1)));
    assert_eq!(result["outcome"], "not_ready");
    assert_eq!(result["observed_revision"], 7, "what was read first, not what was written after it");
    assert_eq!(known.tokens[0], "Bearer token-of-waiting");
}

#[tokio::test]
async fn failures_are_told_apart_and_say_nothing_of_a_panic() {
    let running = start(MINUTE, MINUTE).await;
    for entry in ["broken", "moved", "never", "good"] {
        running.speaker.offer(entry);
    }
    running.speaker.until(|it| it.results.len() == 4).await;
    let speaker = running.end().await;
    let known = speaker.known();
    let of = |entry: &str| known.results.iter().find(|it| it["item"] == format!("{entry}/test")).unwrap();
    assert_eq!(
        (&of("broken")["outcome"], &of("broken")["error_class"]),
        (&json!("failed"), &json!("transient"))
    );
    assert!(!of("broken").to_string().contains("canary"));
    assert!(of("moved")["message"].as_str().unwrap().contains("has changed since it was read"));
    assert_eq!(known.sections["cluster"], (1, json!({"x": 1})));
    assert_eq!(of("never")["error_class"], "terminal");
    assert_eq!(of("good")["outcome"], "ready");
}

#[tokio::test]
async fn a_result_whose_answer_was_lost_is_sent_again() {
    let running = start(MINUTE, MINUTE).await;
    running.speaker.known().results_to_lose = 1;
    running.speaker.offer("good");
    running.speaker.until(|it| it.results.len() == 2).await;
    let speaker = running.end().await;
    let known = speaker.known();
    assert_eq!(known.results[0], known.results[1]);
}

#[tokio::test]
async fn a_result_that_the_server_cannot_take_right_now_is_sent_again_without_the_others() {
    let running = start(MINUTE, MINUTE).await;
    running.speaker.known().busy_with.insert("good/test".into(), 503);
    running.speaker.offer("good");
    running.speaker.until(|it| it.results.iter().filter(|it| it["item"] == "good/test").count() == 2).await;
    let speaker = running.end().await;
    assert!(speaker.known().leases.is_empty(), "it was taken in the end");
}

#[tokio::test]
async fn results_that_are_too_much_for_one_request_go_out_in_several() {
    let running = start(MINUTE, MINUTE).await;
    running.speaker.known().results_bytes_max = Some(100_000);
    for number in 0..10 {
        running.speaker.offer(&format!("large-{number}"));
    }
    running.speaker.until(|it| it.results.len() == 10).await;
    let speaker = running.end().await;
    assert!(speaker.known().leases.is_empty());
}

#[tokio::test]
async fn a_token_in_a_file_is_read_again_when_it_is_refused() {
    let speaker = Speaker::start().await;
    speaker.known().accepts = Some("Bearer second".into());
    let file = std::env::temp_dir().join(format!("concert-worker-token-{}", std::process::id()));
    std::fs::write(&file, "first\n").unwrap();
    let server = Server::new(&speaker.url()).unwrap().token_file(&file).unwrap();
    std::fs::write(&file, "second\n").unwrap();
    let worker = Worker::new(server, Registration::new("test"), Scripted::default());
    let registered = speaker.until(|it| !it.registered.is_empty());
    worker.run(registered).await.unwrap();
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn a_lease_that_is_taken_away_ends_the_run() {
    let running = start(Duration::from_secs(1), MINUTE).await;
    running.speaker.offer("endless");
    running.speaker.until(|it| it.leases.contains_key("endless/test")).await;
    running.speaker.known().leases.clear();
    // All places are free again only when the run has ended.
    running.speaker.until(|it| it.claims.len() >= 2).await;
    let speaker = running.end().await;
    assert!(speaker.known().results.is_empty() && speaker.known().releases.is_empty());
}

#[tokio::test]
async fn a_claim_may_wait_for_longer_than_a_lease() {
    let lease = Duration::from_secs(1);
    let running = start(lease, MINUTE).await;
    running.speaker.until(|it| !it.claims.is_empty()).await;
    let _ = tokio::time::timeout(lease + lease / 2, std::future::pending::<()>()).await;
    running.speaker.offer("good");
    running.speaker.until(|it| it.results.len() == 1).await;
    running.end().await;
}

#[tokio::test]
async fn a_stop_lets_runs_finish_and_gives_back_the_rest() {
    let running = start(MINUTE, Duration::from_millis(300)).await;
    running.speaker.offer("held");
    running.speaker.offer("endless");
    running.component.begun.acquire_many(2).await.unwrap().forget();
    running.component.may_end.notify_one();
    let speaker = running.end().await;
    let known = speaker.known();
    assert_eq!(known.results.len(), 1);
    assert_eq!(known.releases[0]["item"], "endless/test");
    assert_eq!((&known.releases[0]["op"], known.releases.len()), (&json!("release"), 1));
}

#[tokio::test]
async fn a_server_that_has_forgotten_is_told_again() {
    let running = start(MINUTE, MINUTE).await;
    running.speaker.until(|it| !it.claims.is_empty()).await;
    running.speaker.known().is_forgetful = true;
    running.speaker.offer("good");
    running.speaker.until(|it| it.results.len() == 1).await;
    assert_eq!(running.end().await.known().registered.len(), 2);
}

#[tokio::test]
async fn a_refused_registration_ends_the_worker_with_the_reason() {
    let speaker = Speaker::start().await;
    speaker.known().conflict = Some("section cluster is written by shoot");
    let server = Server::new(&speaker.url()).unwrap();
    let worker = Worker::new(server, Registration::new("test"), Scripted::default());
    let error = worker.run(std::future::pending()).await.unwrap_err();
    assert_eq!(error.status(), Some(409));
    assert!(error.to_string().contains("written by shoot"));
}

#[test]
fn what_is_no_address_or_no_certificate_is_refused() {
    for url in ["127.0.0.1:8000", "ftp://x", "https://", ""] {
        assert!(Server::new(url).is_err(), "{url}");
    }
    let server = Server::new("https://127.0.0.1").unwrap();
    for pem in ["", "x", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
        assert!(server.clone().authority(pem.as_bytes()).is_err(), "{pem}");
    }
    assert!(server.clone().token("two\nlines").is_err());
    assert!(!format!("{:?}", server.token("canary")).contains("canary"));
}
