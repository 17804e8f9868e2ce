//! Redis servers, with a real redis-server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod services;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use concert_model::Object;
use concert_provider::{Class, Effect, Enumerate, Lookup, Observation, PlanAction, Provider};
use futures_util::StreamExt;
use serde_json::{Value, json};
use services::{EXTERNAL_NAME, Stage, Talk, call, has, object, settings, token, until, with_fields};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn redis(fields: Value) -> Object {
    object("RedisInstance", "cache", fields)
}

async fn made(stage: &Stage, mut object: Object) -> Object {
    let made = stage.local.create(&object, None, &token(object.name()), &call()).await.unwrap();
    object.set_annotation(EXTERNAL_NAME, &made.delta.external_name.unwrap());
    object
}

async fn seen(stage: &Stage, object: &Object) -> Observation {
    stage.local.observe(object, None).await.unwrap()
}

fn paths(seen: &Observation) -> Vec<&str> {
    seen.diff.iter().map(|it| it.path.as_str()).collect()
}

fn state(seen: &Observation) -> &Value {
    &seen.delta.status.as_ref().unwrap()["atProvider"]["state"]
}

/// A provider in a folder of its own; none where there is no redis-server, which was said.
fn open() -> Option<(tempfile::TempDir, Stage)> {
    let folder = has("redis-server").then(|| tempfile::tempdir().unwrap())?;
    let stage = Stage::open(folder.path());
    Some((folder, stage))
}

/// The process of the only server in a data folder.
fn process(folder: &Path) -> Value {
    let server = std::fs::read_dir(folder.join("redis")).unwrap().next().unwrap().unwrap().path();
    let record: Value =
        serde_json::from_slice(&std::fs::read(server.join("instance.json")).unwrap()).unwrap();
    record["process"].clone()
}

fn kill(pid: &Value) {
    let pid = rustix::process::Pid::from_raw(pid.as_i64().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_life_from_create_to_delete() {
    let Some((folder, stage)) = open() else { return };
    let wanted = redis(json!({"maxMemoryMb": 32}));
    assert!(!seen(&stage, &wanted).await.exists);
    assert_eq!(stage.local.plan(&wanted, None).await.unwrap().action, PlanAction::Create);
    let object = made(&stage, wanted).await;

    let found = seen(&stage, &object).await;
    assert!(found.exists && found.is_up_to_date, "{:?}", found.diff);
    let status = found.delta.status.as_ref().unwrap();
    assert_eq!(status["conditions"][0]["status"], "True");
    assert_eq!(status["atProvider"]["host"], "127.0.0.1");
    let mut talk = Talk::open(&found.connection).await;
    assert_eq!(talk.say("SET greeting hello").await, "+OK\r\n");
    assert!(talk.say("CONFIG GET maxmemory").await.contains("33554432"));

    let changed = with_fields(&object, json!({"maxMemoryMb": 64, "maxMemoryPolicy": "allkeys-lru"}));
    let plan = stage.local.plan(&changed, None).await.unwrap();
    assert_eq!((plan.action, plan.changes.len()), (PlanAction::Update, 2));
    assert_eq!(
        (plan.changes[0].from.clone(), plan.changes[0].to.clone()),
        (Some(json!(32)), Some(json!(64)))
    );
    stage.local.update(&changed, None, &call()).await.unwrap();
    assert!(seen(&stage, &changed).await.is_up_to_date);
    assert_eq!(talk.say("GET greeting").await, "$5\r\nhello\r\n", "the same server, changed in place");

    let pid = process(folder.path())["pid"].clone();
    stage.local.delete(&changed, None, &call()).await.unwrap();
    stage.local.delete(&changed, None, &call()).await.unwrap();
    assert!(!seen(&stage, &changed).await.exists);
    assert!(std::fs::read_dir(folder.path().join("redis")).unwrap().next().is_none(), "no data is left");
    let gone = format!("/proc/{pid}");
    until(async || (!Path::new(&gone).exists()).then_some(())).await;
}

#[tokio::test]
async fn drift_by_hand_is_seen_and_repaired() {
    let Some((_folder, stage)) = open() else { return };
    let object = made(&stage, redis(json!({"maxMemoryMb": 32}))).await;
    let mut talk = Talk::open(&seen(&stage, &object).await.connection).await;
    talk.say("CONFIG SET maxmemory 1000000").await;
    talk.say("CONFIG SET appendonly no").await;
    let drifted = seen(&stage, &object).await;
    assert_eq!(paths(&drifted), ["spec.forProvider.maxMemoryMb", "spec.forProvider.persistence"]);
    assert_eq!(drifted.diff[0].from, Some(json!("1000000 bytes")));
    stage.local.update(&object, None, &call()).await.unwrap();
    assert!(seen(&stage, &object).await.is_up_to_date);

    talk.say("SET greeting hello").await;
    talk.say("CONFIG SET requirepass stolen").await;
    let locked = seen(&stage, &object).await;
    assert_eq!((paths(&locked), state(&locked)), (vec!["connection.password"], &json!("locked")));
    assert!(locked.diff[0].is_sensitive);
    stage.local.update(&object, None, &call()).await.unwrap();
    let repaired = seen(&stage, &object).await;
    assert!(repaired.is_up_to_date);
    assert_eq!(Talk::open(&repaired.connection).await.say("GET greeting").await, "$5\r\nhello\r\n");
}

#[tokio::test]
async fn a_death_is_pushed_and_the_server_comes_back_with_its_data() {
    let Some((folder, stage)) = open() else { return };
    let object = made(&stage, redis(json!({}))).await;
    let mut changes = stage.local.watch(&object.gvk().unwrap()).await.unwrap();
    let before = seen(&stage, &object).await.connection;
    Talk::open(&before).await.say("SET greeting hello").await;

    kill(&process(folder.path())["pid"]);
    let moved = changes.next().await.unwrap().unwrap();
    assert_eq!(Some(moved.external_name.as_str()), object.annotation(EXTERNAL_NAME));
    assert_eq!(moved.object, "cache");
    let dead = seen(&stage, &object).await;
    assert!(dead.exists && !dead.is_up_to_date);
    assert_eq!((paths(&dead), state(&dead)), (vec!["status.atProvider.state"], &json!("stopped")));
    assert_eq!(dead.delta.status.as_ref().unwrap()["conditions"][0]["status"], "False");

    stage.local.update(&object, None, &call()).await.unwrap();
    let back = seen(&stage, &object).await;
    assert!(back.is_up_to_date);
    assert_eq!(back.connection, before, "the same port and password");
    assert_eq!(Talk::open(&back.connection).await.say("GET greeting").await, "$5\r\nhello\r\n");
}

#[tokio::test]
async fn a_server_survives_its_provider_and_is_adopted_by_the_next() {
    let Some((folder, stage)) = open() else { return };
    let object = made(&stage, redis(json!({}))).await;
    let before = process(folder.path());
    stage.leave();

    let next = Stage::open(folder.path());
    let found = seen(&next, &object).await;
    assert!(found.is_up_to_date, "{:?}", found.diff);
    assert_eq!(process(folder.path()), before);
    let mut changes = next.local.watch(&object.gvk().unwrap()).await.unwrap();
    kill(&before["pid"]);
    assert_eq!(changes.next().await.unwrap().unwrap().object, "cache", "the adopted one is watched too");
}

#[tokio::test]
async fn a_process_whose_record_was_lost_in_a_crash_is_adopted_and_not_doubled() {
    let Some((folder, stage)) = open() else { return };
    let object = made(&stage, redis(json!({}))).await;
    let before = process(folder.path());
    stage.leave();
    let server = std::fs::read_dir(folder.path().join("redis")).unwrap().next().unwrap().unwrap().path();
    let file = server.join("instance.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    record["process"] = Value::Null;
    std::fs::write(&file, record.to_string()).unwrap();

    let next = Stage::open(folder.path());
    assert_eq!(paths(&seen(&next, &object).await), ["status.atProvider.state"]);
    next.local.update(&object, None, &call()).await.unwrap();
    assert_eq!(process(folder.path()), before);
}

#[tokio::test]
async fn a_stranger_with_the_recorded_pid_is_left_alone() {
    let Some((folder, stage)) = open() else { return };
    let object = made(&stage, redis(json!({}))).await;
    kill(&process(folder.path())["pid"]);
    let mut stranger = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let server = std::fs::read_dir(folder.path().join("redis")).unwrap().next().unwrap().unwrap().path();
    let file = server.join("instance.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    record["process"]["pid"] = json!(stranger.id());
    std::fs::write(&file, record.to_string()).unwrap();

    assert_eq!(paths(&seen(&stage, &object).await), ["status.atProvider.state"]);
    stage.local.delete(&object, None, &call()).await.unwrap();
    assert!(!seen(&stage, &object).await.exists);
    assert!(stranger.try_wait().unwrap().is_none(), "it was not ours to end");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn a_token_makes_one_server_and_a_burnt_one_none() {
    let Some((_folder, stage)) = open() else { return };
    let object = redis(json!({}));
    let create = async |text: &str| stage.local.create(&object, None, &token(text), &call()).await;
    let (first, second) = tokio::join!(create("t"), create("t"));
    let name = first.unwrap().delta.external_name;
    assert_eq!(name, second.unwrap().delta.external_name);
    let lookup = async |text: &str| stage.local.lookup(&object, None, &token(text)).await.unwrap();
    assert!(matches!(lookup("t").await, Lookup::Found(delta) if delta.external_name == name));
    assert_eq!(lookup("other").await, Lookup::CertainlyNone);
    assert_eq!(create("other").await.unwrap_err().effect, Effect::None);

    let mut gone = object.clone();
    gone.set_annotation(EXTERNAL_NAME, &name.unwrap());
    stage.local.delete(&gone, None, &call()).await.unwrap();
    assert_eq!(create("t").await.unwrap_err().effect, Effect::None, "a late create makes nothing again");
    assert_eq!(lookup("t").await, Lookup::CertainlyNone);
}

#[tokio::test]
async fn a_port_is_kept_cannot_change_and_is_nobody_elses() {
    let Some((_folder, stage)) = open() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let wanted = redis(json!({"port": port}));
    let error = stage.local.create(&wanted, None, &token("a"), &call()).await.unwrap_err();
    assert_eq!((error.class, error.effect), (Class::Transient, Effect::None));
    assert!(
        error.message.contains(&format!("port {port} of 127.0.0.1 is taken by another program")),
        "{error}"
    );
    let other = made(&stage, object("RedisInstance", "other", json!({}))).await;
    assert!(seen(&stage, &other).await.is_up_to_date, "others are unaffected");

    drop(listener);
    let kept = made(&stage, wanted).await;
    assert_eq!(seen(&stage, &kept).await.connection.get("port"), Some(port.to_string().as_bytes()));
    let rival = object("RedisInstance", "rival", json!({"port": port}));
    let error = stage.local.create(&rival, None, &token("r"), &call()).await.unwrap_err();
    assert!(error.message.contains("is taken by another server: free it"), "{error}");

    let moved = with_fields(&kept, json!({"port": if port == 65535 { 1024 } else { port + 1 }}));
    let plan = stage.local.plan(&moved, None).await.unwrap();
    assert_eq!(plan.action, PlanAction::Replace);
    assert_eq!(plan.reason, "spec.forProvider.port cannot change in place");
    let error = stage.local.update(&moved, None, &call()).await.unwrap_err();
    assert_eq!(
        (error.class, error.message.as_str()),
        (Class::Terminal, "spec.forProvider.port: cannot change in place")
    );
}

#[tokio::test]
async fn without_redis_server_the_error_says_what_to_do_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::with(
        folder.path(),
        concert_provider_local::Settings { program: "no-such-redis".into(), ..settings() },
    );
    let error = stage.local.create(&redis(json!({})), None, &token("t"), &call()).await.unwrap_err();
    assert_eq!((error.class, error.effect), (Class::Transient, Effect::None));
    assert!(
        error
            .message
            .starts_with("no-such-redis is not installed: install it (apt-get install redis-server)"),
        "{error}"
    );
    assert!(std::fs::read_dir(folder.path().join("redis")).unwrap().next().is_none());
}

#[tokio::test]
async fn only_its_owner_or_who_takes_it_over_gets_the_password() {
    let Some((_folder, stage)) = open() else { return };
    let owner = made(&stage, redis(json!({}))).await;
    let mut other = object("RedisInstance", "other", json!({"maxMemoryMb": 8}));
    other.set_annotation(EXTERNAL_NAME, owner.annotation(EXTERNAL_NAME).unwrap());
    let found = seen(&stage, &other).await;
    assert!(
        found.exists && found.connection.get("password").is_none() && found.connection.get("host").is_some()
    );
    let error = stage.local.update(&other, None, &call()).await.unwrap_err();
    assert_eq!((error.class, error.effect), (Class::NeedsHuman, Effect::None));
    assert!(error.message.contains("belongs to another object: to take it over"), "{error}");
    assert_eq!(stage.local.delete(&other, None, &call()).await.unwrap_err().class, Class::NeedsHuman);

    other.set_annotation("local.concert.dev/take-over", "true");
    stage.local.update(&other, None, &call()).await.unwrap();
    other.remove_annotation("local.concert.dev/take-over");
    let found = seen(&stage, &other).await;
    assert!(found.is_up_to_date && found.connection.get("password").is_some());
    assert!(seen(&stage, &owner).await.connection.get("password").is_none());
    stage.local.delete(&other, None, &call()).await.unwrap();
    for stray in ["../../etc", "a/b", "nothing-there"] {
        other.set_annotation(EXTERNAL_NAME, stray);
        assert!(!seen(&stage, &other).await.exists);
        stage.local.delete(&other, None, &call()).await.unwrap();
    }
}

#[tokio::test]
async fn nobody_without_the_password_is_let_in_and_it_listens_on_loopback_only() {
    let Some((folder, stage)) = open() else { return };
    let object = made(&stage, redis(json!({}))).await;
    let details = seen(&stage, &object).await.connection;
    let port = String::from_utf8(details.get("port").unwrap().to_vec()).unwrap();
    let mut stream = tokio::net::TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
    stream.write_all(b"GET a\r\n").await.unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"-NOAUTH");
    let mut talk = Talk::open(&details).await;
    assert!(talk.say("CONFIG GET bind").await.ends_with("127.0.0.1\r\n"));
    let server = std::fs::read_dir(folder.path().join("redis")).unwrap().next().unwrap().unwrap().path();
    let pid = process(folder.path())["pid"].to_string();
    let arguments = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    let password = String::from_utf8(details.get("password").unwrap().to_vec()).unwrap();
    assert!(!arguments.contains(&password), "everybody can read arguments");
    for file in ["instance.json", "redis.conf", "redis.log"] {
        let mode = std::fs::metadata(server.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

#[tokio::test]
async fn what_is_there_can_be_found_and_is_imported_without_its_password() {
    let Some((_folder, stage)) = open() else { return };
    let made = made(&stage, redis(json!({}))).await;
    let name = made.annotation(EXTERNAL_NAME).unwrap();
    let what = |prefix: &str| Enumerate {
        kind: made.gvk().unwrap(),
        prefix: prefix.to_owned(),
        configuration: None,
    };
    let found: Vec<_> = stage.local.enumerate(&what("cache")).await.unwrap().collect().await;
    let [Ok(found)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(found.external_name, name);
    let seen = seen(&stage, &found.object).await;
    assert!(seen.exists && seen.connection.get("password").is_none());
    assert_eq!(stage.local.enumerate(&what("other")).await.unwrap().count().await, 0);
}
