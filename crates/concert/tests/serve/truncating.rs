//! Bodies that end before they should.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use serde_json::{Value, json};

use crate::plane::Plane;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The answer to a request that announces a hundred bytes, of which ten come.
fn cut_off(address: &str, method: &str, path: &str, kind: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {kind}\r\n");
    // What there is of it would make sense by itself.
    let request = format!("{head}Content-Length: 100\r\n\r\n{{}}        ");
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {answer:?}"));
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{method} {path}: {error}: {answer}"))
}

#[test]
fn a_body_that_ends_too_early_is_refused_and_changes_nothing() {
    let Some(plane) = Plane::start() else { return };
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default"}, "data": {"a": "1"}});
    plane.apply(&map);
    let maps = || -> Value {
        let list: Value = serde_json::from_str(&plane.kubectl(&["get", "--raw", MAPS])).unwrap();
        list["items"].clone()
    };
    let before = maps();
    let (one, applied) = (format!("{MAPS}/c"), format!("{MAPS}/c?fieldManager=t"));
    let (one, applied, json) = (one.as_str(), applied.as_str(), "application/json");
    for (method, path, kind) in [
        ("POST", MAPS, json),
        ("PUT", one, json),
        ("PATCH", one, "application/merge-patch+json"),
        ("PATCH", one, "application/strategic-merge-patch+json"),
        ("PATCH", applied, "application/apply-patch+yaml"),
        ("DELETE", one, json),
        ("DELETE", MAPS, json),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json),
        ("POST", "/apis/concert.dev/v1alpha1/plan", json),
    ] {
        let status = cut_off(&plane.address, method, path, kind);
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(400)), "{method} {path}");
        assert_eq!(status["message"], "the body of the request ended too early", "{method} {path}");
    }
    assert_eq!(maps(), before);
}
