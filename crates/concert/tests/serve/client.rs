//! The commands of `concert` that talk to a control plane of our own.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::plane::{Plane, widget};

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
