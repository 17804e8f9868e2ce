//! The commands of `concert` that talk to a control plane of our own.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::managed::provider;
use crate::plane::{Plane, widget};
use crate::wire::{WIDGETS, call, send};

/// The program, with nothing of whoever runs the tests around it.
fn concert(home: &Path, data: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_concert"));
    command.args(words).env_clear().env("HOME", home).env("CONCERT_DATA_DIR", data).stdin(Stdio::null());
    command
}

#[test]
fn a_server_of_ours_is_believed_for_its_authority_only() {
    let Some(plane) = Plane::start_with(&[]) else { return };
    let token = plane.kubectl(&["config", "view", "--raw", "-o", "jsonpath={.users[0].user.token}"]);
    let (home, elsewhere) = (plane.file("home"), plane.file("elsewhere"));
    let server = format!("https://{}", plane.address);
    let login = |data: &Path, more: &[&str]| {
        let words = [&["login", "--server", &server, "--token", &token], more].concat();
        let output = concert(&home, data, &words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = login(&elsewhere, &[]);
    assert_eq!(code, Some(1), "nobody is believed on first sight: {said}");
    assert!(!home.join(".config/concert/kubeconfig").exists());
    let authority = plane.data().join("tls/ca.crt");
    let named = ["--certificate-authority", authority.to_str().unwrap()];
    for (data, more) in [(&elsewhere, &named[..]), (&plane.data(), &[])] {
        let (code, said) = login(data, more);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("as admin"), "{said}");
        let got = concert(&home, &elsewhere, &["get", "namespaces", "-o", "name"]).output().unwrap();
        assert!(String::from_utf8(got.stdout).unwrap().contains("namespace/default"));
        std::fs::remove_file(home.join(".config/concert/kubeconfig")).unwrap();
    }
}

fn starts_with(line: &str, words: [&str; 3]) -> bool {
    line.split_whitespace().take(3).eq(words)
}

#[test]
fn several_kinds_are_watched_at_once() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("there", &json!({"size": 1})));
    let kubeconfig = plane.kubeconfig();
    let words = ["watch", "widgets,configmaps", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let mut child =
        concert(&plane.file("home"), &plane.data(), &words).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // Both are listed before anything changes: two headings and a row.
    let (mut headings, mut is_there) = (0, false);
    while headings < 2 || !is_there {
        let line = lines.next().expect("another line");
        headings += usize::from(line.starts_with("EVENT"));
        is_there |= starts_with(&line, ["-", "Widget", "there"]);
    }
    let mut until = |parts| assert!(lines.any(|line| starts_with(&line, parts)), "it ended before {parts:?}");
    plane.kubectl(&["create", "configmap", "c"]);
    until(["added", "ConfigMap", "c"]);
    plane.apply(&widget("later", &json!({"size": 1})));
    until(["added", "Widget", "later"]);
    plane.kubectl(&["delete", "configmap", "c"]);
    until(["deleted", "ConfigMap", "c"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn columns(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn objects_are_looked_at_and_deleted_without_kubectl() {
    let Some(plane) = Plane::start_with(&[]) else { return };
    plane.define_widgets();
    plane.apply(&widget("a", &json!({"size": 1})));
    plane.apply(&widget("a", &json!({"size": 2})));
    let kinds = plane.concert(&["api-resources"]);
    let row = kinds.lines().find(|line| line.starts_with("widgets ")).unwrap_or_else(|| panic!("{kinds}"));
    assert!(["wd", "test.concert.dev/v1", "Widget"].iter().all(|it| columns(row).contains(it)), "{row}");

    let history = plane.concert(&["history", "widget/a"]);
    let writes: Vec<Vec<&str>> = history.lines().skip(1).map(columns).collect();
    let said: Vec<[&str; 3]> = writes.iter().map(|it| [it[2], it[3], it[4]]).collect();
    assert_eq!(said, [["updated", "2", "admin"], ["created", "1", "admin"]], "{history}");

    let uid = plane.get("widget", "a")["metadata"]["uid"].clone();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"apiVersion": "test.concert.dev/v1", "kind": "Widget", "name": "a",
            "namespace": "default", "uid": uid},
        "type": "Warning", "reason": "Rusty", "message": "it needs oil", "source": {"component": "tester"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 3});
    plane.kubectl_with(&["create", "-f", "-"], &event.to_string());
    let events = plane.concert(&["events", "widget/a"]);
    let row = columns(events.lines().nth(1).unwrap_or_default()).split_off(1).join(" ");
    assert_eq!(row, "Warning Rusty widget/a 3 tester it needs oil", "{events}");

    assert_eq!(plane.concert(&["delete", "widget/a"]), "widget.test.concert.dev/a deleted\n");
    assert!(!plane.exists("widget", "a"));
}

#[test]
fn a_token_and_a_kubeconfig_let_somebody_in() {
    let Some(plane) = Plane::start_with(&[]) else { return };
    let token = plane.concert(&["token", "--user", "jo", "--group", "readers"]);
    let binding = ["create", "rolebinding", "reads", "--clusterrole=view", "--group=readers"];
    plane.kubectl(&binding);
    let login = concert(&plane.file("home"), &plane.data(), &["kubeconfig", "--kubeconfig"])
        .arg(plane.kubeconfig())
        .args(["--token", token.trim()])
        .output()
        .unwrap();
    assert!(login.status.success(), "{}", String::from_utf8_lossy(&login.stderr));
    let file = plane.file("jo.yaml");
    std::fs::write(&file, &login.stdout).unwrap();
    let flag = format!("--kubeconfig={}", file.display());
    let who = plane.kubectl(&["auth", "whoami", &flag]);
    assert!(who.contains("jo") && who.contains("readers"), "{who}");
    plane.kubectl(&["get", "configmaps", &flag]);
    let refused = plane.refused(&["create", "configmap", "c", &flag], "");
    assert!(refused.contains("User \"jo\" cannot create resource \"configmaps\""), "{refused}");
}

#[test]
fn probes_and_metrics_are_on_a_port_of_their_own() {
    let Some(plane) = Plane::start() else { return };
    for (path, part) in [("/healthz", "ok"), ("/readyz", "ok"), ("/metrics", "# TYPE ")] {
        let (code, said) = call(&plane.admin, "GET", path, "").unwrap();
        assert!(code == 200 && said.contains(part), "{path}: {code} {said}");
        assert!(call(&plane.address, "GET", "/metrics", "").is_some_and(|(code, _)| code == 404));
    }
}

#[test]
fn providers_are_declared_in_a_file_and_a_bad_one_is_refused() {
    let Some(mut plane) = Plane::start() else { return };
    let provider = provider(&plane);
    let file = plane.file("serve.yaml");
    let path = file.to_str().unwrap().to_owned();
    std::fs::write(&file, format!("dev: true\nproviders:\n- name: cloud\n  endpoint: {}\n", provider.1))
        .unwrap();
    plane.kill();
    plane.start_again_with(&["--config", &path]);
    let crds = concert_testbed::workspace().join("providers/example/crds");
    plane.kubectl(&["apply", "-f", crds.to_str().unwrap()]);
    plane.apply(&crate::managed::account());
    plane.apply(&crate::managed::bucket("a"));
    plane.kubectl(&["wait", "--for=condition=Ready", "bucket/a", "--timeout=60s"]);

    let check = || {
        let output = concert(&plane.file("home"), &plane.data(), &["config", "check", "--config", &path])
            .output()
            .unwrap();
        let said = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), said(output.stdout), said(output.stderr))
    };
    let (code, out, _) = check();
    assert!(code == Some(0) && out.contains("providers       cloud\n"), "{out}");
    for (bad, parts) in [
        ("providers:\n- name: cloud\n  endpont: a:1\n", ["providers[0]", "endpont"]),
        (
            "providers:\n- {name: a, endpoint: a:1}\n- {name: a, endpoint: b:1}\n",
            ["providers[1].name", "used twice"],
        ),
        ("listen: nowhere\n", ["listen", "nowhere"]),
        ("lisen: 127.0.0.1:1\n", ["serve.yaml", "lisen"]),
    ] {
        std::fs::write(&file, bad).unwrap();
        let (code, out, said) = check();
        assert_eq!((code, out.as_str()), (Some(1), ""), "{said}");
        for part in parts.iter().chain(&["error: ", "\nhint: concert config check"]) {
            assert!(said.contains(part), "{part:?} is not in {said}");
        }
    }
}

#[test]
fn a_long_history_is_read_to_its_end() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    let made = call(&plane.address, "POST", WIDGETS, &widget("a", &json!({"size": 1})).to_string());
    assert_eq!(made.map(|it| it.0), Some(201));
    for size in 2..=511 {
        let patch = json!({"spec": {"size": size}}).to_string();
        let path = format!("{WIDGETS}/a");
        let patched = send(&plane.address, "PATCH", &path, "application/merge-patch+json", &patch);
        assert_eq!(patched.map(|it| it.0), Some(200));
    }
    for (limit, count) in [("1000", 511), ("505", 505), ("3", 3)] {
        let said = plane.concert(&["history", "widget/a", "--limit", limit, "-o", "name"]);
        let revisions: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(revisions.len(), count);
        assert!(revisions.is_sorted_by(|newer, older| newer > older), "{said}");
    }
}
