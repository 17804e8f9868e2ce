//! The whole program: run through the contract of providers, stopped, and started again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod services;

use std::path::Path;
use std::process::Stdio;

use concert_provider::check::{self, Options, Verdict};
use concert_provider::client::{self, Endpoint};
use concert_provider::{Connector, Protocol};
use serde_json::{Value, json};
use services::{Cluster, EXTERNAL_NAME, Talk, call, has, object, token};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const SAMPLES: &str = r#"
apiVersion: local.concert.dev/v1alpha1
kind: RedisInstance
metadata: {name: check}
spec: {forProvider: {maxMemoryMb: 16}}
---
apiVersion: local.concert.dev/v1alpha1
kind: RedisInstance
metadata: {name: check}
spec: {forProvider: {maxMemoryMb: 32, persistence: Snapshot}}
---
apiVersion: local.concert.dev/v1alpha1
kind: PostgreSQLDatabase
metadata: {name: check}
spec: {forProvider: {}}
---
apiVersion: local.concert.dev/v1alpha1
kind: PostgreSQLDatabase
metadata: {name: check}
spec: {forProvider: {connectionLimit: 3}}
"#;

/// The program, and where it listens.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    async fn start(folder: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_concert-provider-local"));
        command.args(["--address", "127.0.0.1:0", "--redis-ports", "20000-29999"]).args(flags);
        command.arg("--data-dir").arg(folder).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        Self { child, address: first["address"].as_str().unwrap().to_owned() }
    }

    fn client(&self, protocol: Protocol) -> impl Connector {
        let endpoint = Endpoint { protocol: Some(protocol), ..Endpoint::new(self.address.clone()) };
        client::connect(endpoint).unwrap()
    }

    async fn stop(mut self) {
        let pid = rustix::process::Pid::from_raw(self.child.id().unwrap() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().await.unwrap().success());
    }
}

#[tokio::test]
async fn the_program_passes_the_contract_in_both_protocols() {
    if !has("redis-server") {
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), &["--stop-instances"]).await;
    for protocol in [Protocol::V1, Protocol::V1Alpha1] {
        let options = Options {
            samples: check::read_samples(SAMPLES).unwrap(),
            configuration: Some(cluster.account()),
            ..Options::new(format!("{protocol:?}").to_lowercase())
        };
        let report = check::run(&running.client(protocol), &options).await;
        if protocol == Protocol::V1 {
            assert!(report.is_ok(), "{report}");
            assert_eq!(report.count(Verdict::Skip), 0, "{report}");
        } else {
            // The older protocol hands over no accounts, so there is no server to make databases in.
            let redis = report.outcomes.iter().filter(|it| !it.kind.contains("PostgreSQL"));
            assert!(redis.clone().all(|it| it.verdict != Verdict::Fail), "{report}");
            assert!(redis.count() > 10, "{report}");
        }
    }
    running.stop().await;
}

#[tokio::test]
async fn a_stop_leaves_servers_running_unless_told_otherwise() {
    if !has("redis-server") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut object = object("RedisInstance", "cache", json!({}));
    let running = Running::start(folder.path(), &[]).await;
    let client = running.client(Protocol::V1);
    client.handshake(&call()).await.unwrap();
    let mut external = client.connect(&object, None, &call()).await.unwrap();
    let made = external.create(&object, &token("t"), &call()).await.unwrap();
    object.set_annotation(EXTERNAL_NAME, &made.delta.external_name.unwrap());
    drop((external, client));
    running.stop().await;
    let mut talk = Talk::open(&made.connection).await;
    assert_eq!(talk.say("SET greeting hello").await, "+OK\r\n", "its provider is gone, it is not");

    let running = Running::start(folder.path(), &["--stop-instances"]).await;
    let client = running.client(Protocol::V1);
    client.handshake(&call()).await.unwrap();
    let mut external = client.connect(&object, None, &call()).await.unwrap();
    let seen = external.observe(&object, &call()).await.unwrap();
    assert!(seen.is_up_to_date, "{:?}", seen.diff);
    assert_eq!(talk.say("GET greeting").await, "$5\r\nhello\r\n", "not even the connection was lost");
    drop((external, client));
    running.stop().await;
    let port = String::from_utf8(made.connection.get("port").unwrap().to_vec()).unwrap();
    assert!(
        tokio::net::TcpStream::connect(format!("127.0.0.1:{port}")).await.is_err(),
        "told to stop it too"
    );
}

#[tokio::test]
async fn help_says_what_there_is_and_a_second_provider_is_told_why_not() {
    let program = env!("CARGO_BIN_EXE_concert-provider-local");
    let help = Command::new(program).arg("--help").output().await.unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for flag in ["--address", "--data-dir", "--redis-server", "--redis-ports", "--stop-instances"] {
        assert!(help.contains(flag), "{flag}");
    }
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), &[]).await;
    let second = Command::new(program).arg("--data-dir").arg(folder.path()).output().await.unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && said.contains("is used by another provider"), "{said}");
    running.stop().await;
}
