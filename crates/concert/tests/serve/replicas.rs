//! Several control planes on one PostgreSQL database, and the way there from the file of one.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use concert_testbed::Postgres;
use serde_json::{Value, json};

use crate::plane::{Plane, widget};

/// Runs `concert WORDS`, with the database named by the variable.
fn concert(url: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_concert"));
    command.args(words).env("CONCERT_STORE", url).stdin(Stdio::null()).output().unwrap()
}

/// What it says on stderr; it must fail with a hint, and keep the password to itself.
fn refused(server: &Postgres, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("hint: ") && !said.contains(server.password()), "{said}");
    said
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn what_one_replica_was_told_the_others_know() {
    let Some(server) = Postgres::shared() else { return };
    let (url, folder) = (server.fresh_url(), tempfile::tempdir().unwrap());
    let keys = folder.path().join("keys");
    let flags = ["--dev", "--store", &url, "--key-file", text(&keys)];
    let Some(one) = Plane::start_with(&flags) else { return };
    let two = Plane::start_with(&flags).unwrap();
    let mut watching = one.follow(&["get", "namespaces", "-w", "-o", "name"]);
    watching.until("namespace/default");
    one.define_widgets();
    // Of a kind that the other has not been asked for before.
    two.apply(&widget("a", &json!({"size": 1})));
    assert_eq!(one.get("widgets", "a"), two.get("widgets", "a"));
    for (n, plane) in [&one, &two, &one, &two].into_iter().enumerate() {
        plane.apply(&widget("a", &json!({"size": n + 2})));
    }
    assert_eq!(one.get("widgets", "a")["spec"]["size"], 5);
    two.kubectl(&["create", "namespace", "elsewhere"]);
    watching.until("namespace/elsewhere");
    two.kubectl(&["delete", "widget", "a"]);
    assert!(!one.exists("widgets", "a"));
    // Without the keys of the others nothing can be read, and none are made.
    let strange = folder.path().join("strange");
    let words = ["serve", "--dev", "--listen=127.0.0.1:0", "--admin-listen=0", "--data-dir", text(&strange)];
    let said = refused(server, &concert(&url, &words));
    assert!(said.contains("--key-file"), "{said}");
    assert!(!strange.join("concert.key").exists());
    for plane in [one, two] {
        let log = std::fs::read_to_string(plane.file("log")).unwrap();
        let written = url.split('@').next().unwrap();
        assert!(!log.contains(server.password()) && !log.contains(written), "{log}");
    }
}

#[test]
fn a_database_that_will_not_do_is_refused_with_what_to_do() {
    let Some(server) = Postgres::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let port = server.port();
    let role = |name: &str, more: &str| {
        let sql = format!("CREATE ROLE {name} LOGIN PASSWORD 'pw-secret'; {more}");
        server.sql("postgres", &sql).unwrap();
        format!("postgres://{name}:pw-secret@127.0.0.1:{port}/postgres?schema=of_{name}")
    };
    let newer = role("newer", "CREATE SCHEMA of_newer AUTHORIZATION newer");
    let known = "CREATE TABLE of_newer.meta (name text PRIMARY KEY, value bigint NOT NULL); \
                 INSERT INTO of_newer.meta VALUES ('version', 99), ('oldest', 99); \
                 CREATE TABLE of_newer.objects (); CREATE TABLE of_newer.log (); \
                 CREATE TABLE of_newer.bodies (); GRANT ALL ON of_newer.meta TO newer";
    server.sql("postgres", known).unwrap();
    for (url, parts) in [
        ("postgres://u:pw-secret@127.0.0.1:1/d".to_owned(), ["cannot reach PostgreSQL", "psql"]),
        ("mysql://u:pw-secret@127.0.0.1/d".to_owned(), ["store: ", "postgres://USER:PASSWORD@HOST"]),
        (
            format!("postgres://postgres:pw-secret@127.0.0.1:{port}/postgres"),
            ["does not let postgres in", "pg_hba"],
        ),
        (server.url("nowhere"), ["no database nowhere", "CREATE DATABASE nowhere"]),
        (role("powerless", ""), ["powerless may not do", "CREATE SCHEMA"]),
        (
            role("reading", "ALTER ROLE reading SET default_transaction_read_only = on"),
            ["is read-only", "primary"],
        ),
        (newer, ["have version 99", "as new as the others"]),
    ] {
        let words =
            ["serve", "--dev", "--listen=127.0.0.1:0", "--admin-listen=0", "--data-dir", text(folder.path())];
        let said = refused(server, &concert(&url, &words));
        assert!(parts.iter().all(|it| said.contains(it)) && !said.contains("pw-secret"), "{url}: {said}");
    }
    assert!(!folder.path().join("concert.key").exists(), "keys for nothing");
}

#[test]
fn a_store_in_a_file_moves_into_a_database_as_it_is() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.fresh_url();
    let Some(mut plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("a", &json!({"size": 1})));
    plane.apply(&widget("a", &json!({"size": 2})));
    let path = "/apis/test.concert.dev/v1/namespaces/default/widgets/a/history";
    let (before, history) = (plane.get("widgets", "a"), plane.kubectl(&["get", "--raw", path]));
    let (data, keys) = (plane.data(), plane.file("keys"));
    let words = ["migrate-store", "--data-dir", text(&data), "--key-file", text(&keys)];
    let said = refused(server, &concert(&url, &words));
    assert!(said.contains("in use by another process"), "{said}");
    plane.kill();
    let said = refused(server, &concert("postgres://u:pw@127.0.0.1:1/d", &words));
    assert!(said.contains("cannot reach PostgreSQL"), "{said}");
    let moved = concert(&url, &words);
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    let said = refused(server, &concert(&url, &words));
    assert!(said.contains("has a store already"), "{said}");
    plane.start_again_with(&["--dev", "--store", &url, "--key-file", text(&keys)]);
    assert_eq!(plane.get("widgets", "a"), before);
    let after: Value = serde_json::from_str(&plane.kubectl(&["get", "--raw", path])).unwrap();
    assert_eq!(after["items"], serde_json::from_str::<Value>(&history).unwrap()["items"]);
    plane.apply(&widget("a", &json!({"size": 3})));
    let backup = concert(&url, &["backup", "--data-dir", text(&data), text(&plane.file("copy"))]);
    assert!(refused(server, &backup).contains("pg_dump"));
}
