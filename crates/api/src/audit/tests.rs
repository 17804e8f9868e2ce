use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Tasks, TokioSpawn};
use concert_model::Timestamp;
use concert_store::SystemClock;
use serde_json::{Value, json};

use super::*;
use crate::auth::{Access, User};

fn tasks() -> Tasks {
    Tasks::new(Arc::new(TokioSpawn::current()), Arc::new(SystemClock::new()))
}

fn record(name: &str) -> Record {
    let access = Access::Resource {
        verb: "create",
        group: "a.dev",
        resource: "buckets",
        subresource: "",
        namespace: "default",
        name,
    };
    Record::new(Timestamp::UNIX_EPOCH, Some(&User::known("ann", [])), Some(&access), 201)
}

fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn every_request_is_one_line_and_the_end_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let tasks = tasks();
    let audit = Audit::start(Sink::File(path.clone()), &tasks);
    for n in 0..1_000 {
        audit.note(record(&format!("b{n}")));
    }
    assert!(tasks.stop(Duration::from_secs(10)).await.is_empty());
    let lines = lines(&path);
    assert_eq!(lines.len(), 1_000);
    let expected = json!({"time": "1970-01-01T00:00:00.000000Z", "user": "ann", "verb": "create",
        "group": "a.dev", "resource": "buckets", "namespace": "default", "name": "b7", "code": 201, "tookMicros": 0});
    assert_eq!(lines[7], expected);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn who_acts_as_somebody_else_is_there_with_both_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let tasks = tasks();
    let audit = Audit::start(Sink::File(path.clone()), &tasks);
    let bob = User { sender: Some("ann".into()), ..User::known("bob", []) };
    audit.note(Record::new(Timestamp::UNIX_EPOCH, Some(&bob), None, 200));
    assert!(tasks.stop(Duration::from_secs(10)).await.is_empty());
    assert_eq!(
        (&lines(&path)[0]["user"], &lines(&path)[0]["impersonatedUser"]),
        (&json!("ann"), &json!("bob"))
    );
}

#[tokio::test]
async fn a_full_queue_never_waits_and_says_what_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let tasks = tasks();
    let audit = Audit::start(Sink::File(path.clone()), &tasks);
    // Nothing is awaited in between, so the writer does not get to run on this runtime's one thread.
    for _ in 0..QUEUE_MAX + 5 {
        audit.note(record("x"));
    }
    assert_eq!(audit.lost(), 5);
    tasks.stop(Duration::from_secs(10)).await;
    let lines = lines(&path);
    let told: u64 = lines.iter().filter_map(|line| line["lost"].as_u64()).sum();
    assert_eq!((told, lines.iter().filter(|line| line["code"] == 201).count()), (5, QUEUE_MAX));
}

#[test]
fn what_strangers_send_stays_in_its_line() {
    let path = format!("/a\n{}\u{1b}[2J\u{9b}31m\u{7f}\u{2028}", "x".repeat(10_000));
    let access = Access::Path { verb: "get", path: &path };
    let line = Record::new(Timestamp::UNIX_EPOCH, None, Some(&access), 404).to_line();
    assert_eq!(line.matches('\n').count(), 1);
    assert!(!line.trim_end().contains(char::is_control) && line.len() < 1_024, "{line}");
    let short = Access::Path { verb: "get", path: "/\u{9b}" };
    let line = Record::new(Timestamp::UNIX_EPOCH, None, Some(&short), 404).to_line();
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["path"], "/\u{9b}");
}

#[test]
fn a_large_file_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    for n in 0..4 {
        sink::append(&path, format!("{n}\n").as_bytes(), 4).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "2\n3\n");
    assert_eq!(std::fs::read_to_string(folder.path().join("audit.log.1")).unwrap(), "0\n1\n");
}

#[tokio::test]
async fn strangers_cannot_wash_out_what_others_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let tasks = tasks();
    let audit = Audit::start(Sink::File(path.clone()), &tasks);
    let at = |verb: &'static str, path: &'static str| Access::Path { verb, path };
    let note = |user: Option<&User>, access: &Access<'_>, code: u16| {
        audit.note(Record::new(Timestamp::UNIX_EPOCH, user, Some(access), code));
    };
    audit.note(record("before"));
    let nobody = User::anonymous();
    for _ in 0..2 * QUEUE_MAX {
        note(None, &at("get", "/api/v1/secrets"), 401);
    }
    note(Some(&nobody), &at("get", "/healthz"), 200);
    note(Some(&nobody), &at("post", "/api/v1/auth/login"), 200);
    note(Some(&User::known("ann", [])), &at("get", "/version"), 200);
    assert!(audit.lost() > 0, "of strangers");
    tasks.stop(Duration::from_secs(10)).await;
    let kept: Vec<Value> = lines(&path).iter().map(|line| line["code"].clone()).collect();
    assert_eq!(kept, [json!(201), json!(200), json!(200)]);
    let tried = lines(&folder.path().join("audit-strangers.jsonl"));
    assert!(tried.iter().any(|line| line["lost"].is_number()));
    assert!(tried.iter().all(|line| line["code"] != 201 && line["user"] != "ann"));
}

#[test]
fn strangers_have_a_file_beside() {
    let beside = |path: &str| Sink::File(path.into()).of_strangers();
    assert_eq!(beside("/a/audit.jsonl"), Sink::File("/a/audit-strangers.jsonl".into()));
    assert_eq!(beside("/a/audit"), Sink::File("/a/audit-strangers".into()));
}
