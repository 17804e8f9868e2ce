//! Who may do what: every combination of identity, section and verb, and what a token is good for.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::stage::{BASE, OBJECTS, Stage, data, section};

/// Contents that each section takes.
fn contents(section: &str) -> Value {
    match section {
        "network" => json!({"vnet_name": "a"}),
        "credentials" => json!({"kubeconfig": "x"}),
        _ => json!({}),
    }
}

/// The verbs of a section, and what each answers to somebody who may.
const VERBS: [(&str, &str, u16); 4] =
    [("GET", "", 200), ("GET", "/history", 200), ("PUT", "", 200), ("DELETE", "", 200)];

const SECTIONS: [&str; 4] = ["network", "cluster", "credentials", "free"];

/// Which of `VERBS` an identity may do to each of `SECTIONS`: a letter for each that is allowed, of r(ead),
/// h(istory), w(rite) and d(elete), and o(bserve) for a watch of it.
const TABLE: [(&str, [&str; 4]); 13] = [
    ("nobody", ["", "", "", ""]),
    ("stranger", ["", "", "", ""]),
    ("root", ["rhwdo", "rhwdo", "rhwdo", "rhwdo"]),
    // Reads sections, and of secret ones only that they are there.
    ("reader", ["rh", "rh", "h", "rh"]),
    ("confidant", ["rh", "rh", "rh", "rh"]),
    ("editor", ["w", "w", "w", "w"]),
    // May do everything, to one section of all entries.
    ("specialist", ["rhwdo", "", "", ""]),
    // The same, of one entry.
    ("local", ["rhwdo", "", "", ""]),
    ("author", ["", "", "", ""]),
    ("watcher", ["o", "o", "o", "o"]),
    // Reconcilers may watch their entry, and hear of what they may read.
    ("network@rt-1", ["rhwdo", "o", "o", "o"]),
    ("shoot@rt-1", ["rho", "rhwdo", "rho", "o"]),
    ("ungranted@rt-1", ["o", "o", "o", "o"]),
];

/// The same through the Kubernetes-shaped door: g(et), l(ist), w(atch), c(reate), p(atch) and d(elete) of the
/// objects. A name in a role is there that of one object, and tokens of reconcilers are nothing.
const OBJECT_TABLE: [(&str, [&str; 4]); 13] = [
    ("nobody", ["", "", "", ""]),
    ("stranger", ["", "", "", ""]),
    ("root", ["glwcpd", "glwcpd", "glwcpd", "glwcpd"]),
    ("reader", ["g", "g", "g", "g"]),
    ("confidant", ["g", "g", "g", "g"]),
    ("editor", ["", "", "", ""]),
    ("specialist", ["", "", "", ""]),
    ("local", ["gwd", "", "", ""]),
    ("author", ["cp", "cp", "cp", "cp"]),
    ("watcher", ["lw", "lw", "lw", "lw"]),
    ("network@rt-1", ["", "", "", ""]),
    ("shoot@rt-1", ["", "", "", ""]),
    ("ungranted@rt-1", ["", "", "", ""]),
];

async fn stage() -> Stage {
    let stage = Stage::with_entries().await;
    stage.allow("reader", "sections", &["get"], &[]).await;
    stage.allow("confidant", "sections", &["get"], &[]).await;
    stage.allow("confidant", "sections/secret", &["get"], &[]).await;
    stage.allow("editor", "sections", &["update"], &[]).await;
    let all = ["get", "update", "delete", "watch"];
    stage.allow("specialist", "sections", &all, &["network"]).await;
    stage.allow("local", "sections", &all, &["rt-1.network"]).await;
    stage.allow("author", "sections", &["create", "patch"], &[]).await;
    stage.allow("watcher", "sections", &["list", "watch"], &[]).await;
    stage
}

/// What is answered to a request whose answer need not end, and what it says if it is a refusal.
async fn begun(stage: &Stage, token: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
    let bearer = format!("Bearer {token}");
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let mut headers = vec![("content-type", kind)];
    if !token.is_empty() {
        headers.push(("authorization", &bearer));
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = stage.client.start(method, path, &headers, body).await;
    let code = response.status().as_u16();
    if code < 400 {
        return (code, Value::Null);
    }
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

async fn token(stage: &Stage, who: &str) -> String {
    match who.split_once('@') {
        Some((reconciler, entry)) => stage.work(entry, reconciler).await,
        None if who == "nobody" => String::new(),
        None if who == "root" => stage.admin.clone(),
        None => stage.token_of(who, &[]).await,
    }
}

#[tokio::test]
async fn r4_every_combination_of_identity_section_and_verb() {
    let stage = stage().await;
    for (who, row) in TABLE {
        let token = token(&stage, who).await;
        let refused = if who == "nobody" { 401 } else { 403 };
        for (name, allowed) in SECTIONS.iter().zip(row) {
            let path = section("rt-1", name);
            for (verb, letter) in VERBS.iter().zip("rhwd".chars()) {
                stage.put(&path, data(contents(name))).await.expect(200);
                let before = stage.store.newest().await.unwrap();
                let (method, rest, code) = verb;
                let body = if *method == "PUT" { data(contents(name)) } else { Value::Null };
                let reply = stage.ask(&token, method, &format!("{path}{rest}"), body).await;
                let expected = if allowed.contains(letter) { *code } else { refused };
                assert_eq!(reply.code, expected, "{who} {method} {name}{rest}: {}", reply.json());
                if expected != *code {
                    assert_eq!(reply.json().as_object().unwrap().len(), 1, "{who} {method} {name}{rest}");
                    assert_eq!(stage.store.newest().await.unwrap(), before, "{who} {method} {name}{rest}");
                }
            }
            let path = format!("{BASE}/watch?entry=rt-1&section={name}");
            let (code, said) = begun(&stage, &token, "GET", &path, Value::Null).await;
            let expected = if allowed.contains('o') { 200 } else { refused };
            assert_eq!(code, expected, "{who} watches {name}: {said}");
        }
    }
}

#[tokio::test]
async fn r4_every_combination_of_identity_section_and_verb_through_the_other_door() {
    let stage = stage().await;
    for (who, row) in OBJECT_TABLE {
        let token = token(&stage, who).await;
        // A token of a reconciler says nobody there, and so does none.
        let refused = if who.contains('@') || who == "nobody" { [401, 403] } else { [403, 403] };
        for (name, allowed) in SECTIONS.iter().zip(row) {
            for letter in "glwcpd".chars() {
                stage.put(&section("rt-1", name), data(contents(name))).await.expect(200);
                if letter == 'c' {
                    stage.delete(&section("rt-1", name)).await.expect(200);
                }
                let before = stage.store.newest().await.unwrap();
                let (method, path, body, good) = object_call(letter, name);
                let (code, said) = begun(&stage, &token, method, &path, body).await;
                if allowed.contains(letter) {
                    assert_eq!(code, good, "{who} {method} {path}: {said}");
                } else {
                    assert!(refused.contains(&code), "{who} {method} {path}: {code} {said}");
                    assert_eq!(stage.store.newest().await.unwrap(), before, "{who} {method} {path}");
                }
            }
        }
    }
}

/// Method, path, body and the answer to somebody who may.
fn object_call(letter: char, name: &str) -> (&'static str, String, Value, u16) {
    let all = format!("{OBJECTS}/sections");
    let one = format!("{all}/rt-1.{name}");
    let only = format!("fieldSelector=metadata.name%3Drt-1.{name}");
    let object = json!({"apiVersion": "inventory.concert.dev/v1alpha1", "kind": "Section",
        "metadata": {"name": format!("rt-1.{name}")},
        "spec": {"entry": "rt-1", "section": name, "data": contents(name)}});
    match letter {
        'g' => ("GET", one, Value::Null, 200),
        'l' => ("GET", format!("{all}?{only}"), Value::Null, 200),
        'w' => ("GET", format!("{all}?watch=true&{only}"), Value::Null, 200),
        // Secret ones are written through their own door alone, by whoever it may be.
        'c' => ("POST", all, object, if name == "credentials" { 422 } else { 201 }),
        'p' => ("PATCH", one, json!({"metadata": {"labels": {"a": "b"}}}), 200),
        _ => ("DELETE", one, Value::Null, 200),
    }
}

#[tokio::test]
async fn an_entry_shows_the_sections_that_one_may_read() {
    let stage = stage().await;
    stage.allow("reader", "clusters", &["get"], &[]).await;
    stage.allow("editor", "clusters", &["get"], &[]).await;
    for name in SECTIONS {
        stage.put(&section("rt-1", name), data(contents(name))).await.expect(200);
    }
    for (who, seen) in [
        ("root", "cluster credentials free network"),
        ("reader", "cluster credentials free network"),
        ("editor", ""),
        ("network@rt-1", "network"),
        ("shoot@rt-1", "cluster credentials network"),
        ("ungranted@rt-1", ""),
    ] {
        let token = token(&stage, who).await;
        let shown = stage.ask(&token, "GET", "/entries/rt-1", Value::Null).await.expect(200);
        let names: Vec<&str> = shown["sections"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names.join(" "), seen, "{who}");
        assert_eq!(shown["sections"]["credentials"].get("data"), None);
        assert_eq!(shown["revision"], 4, "{who}");
    }
    let stranger = stage.token_of("stranger", &[]).await;
    stage.ask(&stranger, "GET", "/entries/rt-1", Value::Null).await.detail(403);
}

#[tokio::test]
async fn r3_the_token_of_one_entry_is_nothing_on_another_or_anywhere_else() {
    let stage = stage().await;
    for entry in ["rt-1", "rt-2"] {
        for name in SECTIONS {
            stage.put(&section(entry, name), data(contents(name))).await.expect(200);
        }
    }
    let token = stage.work("rt-1", "shoot").await;
    for name in SECTIONS {
        for (method, rest, _) in VERBS {
            let body = if method == "PUT" { data(contents(name)) } else { Value::Null };
            let path = format!("{}{rest}", section("rt-2", name));
            let said = stage.ask(&token, method, &path, body).await.detail(403);
            assert!(said.contains("entry 'rt-1' and nothing else"), "{said}");
        }
    }
    for (method, path) in [
        ("GET", "/entries"),
        ("POST", "/entries"),
        ("GET", "/entries/rt-2"),
        ("GET", "/entries/none"),
        ("PATCH", "/entries/rt-1"),
        ("DELETE", "/entries/rt-1"),
        ("GET", "/grants"),
        ("PUT", "/grants/shoot"),
        ("GET", "/section-types/credentials"),
        ("PUT", "/section-types/credentials"),
        ("POST", "/tokens"),
        ("GET", "/watch?entry=rt-2"),
    ] {
        let reply = stage.ask(&token, method, path, json!({})).await;
        assert_eq!(reply.code, 403, "{method} {path}: {}", reply.json());
    }
    for path in [
        "/api/v1/resources",
        "/api/v1/users",
        "/api/v1/namespaces",
        "/api/v1/namespaces/concert-inventory/secrets/rt-1.credentials.1",
        &format!("{OBJECTS}/clusters/rt-1"),
        &format!("{OBJECTS}/sections/rt-1.network"),
    ] {
        assert_eq!(stage.ask(&token, "GET", path, Value::Null).await.code, 401, "{path}");
    }
}

#[tokio::test]
async fn r3_a_token_ends_with_its_time_its_entry_and_its_grant() {
    let stage = stage().await;
    let path = section("rt-1", "network");
    stage.put(&path, data(contents("network"))).await.expect(200);
    let token = stage.work("rt-1", "shoot").await;
    let read = async || stage.ask(&token, "GET", &path, Value::Null).await;
    read().await.expect(200);
    stage.put("/grants/shoot", json!({"write": ["cluster"]})).await.expect(200);
    assert!(read().await.detail(403).contains("no grant to read section 'network'"));
    stage.put("/grants/shoot", json!({"read": ["network"]})).await.expect(200);
    read().await.expect(200);
    stage.delete("/grants/shoot").await.expect(204);
    read().await.detail(403);
    stage.put("/grants/shoot", json!({"read": ["network"]})).await.expect(201);
    stage.delete("/entries/rt-1").await.expect(202);
    read().await.detail(404);
    stage.post("/entries", json!({"id": "rt-1", "kind": "runtime"})).await.expect(201);
    assert!(read().await.detail(403).contains("that is gone"));
    let token = stage.work("rt-2", "network").await;
    let write =
        async || stage.ask(&token, "PUT", &section("rt-2", "network"), data(contents("network"))).await;
    write().await.expect(200);
    stage.clock.advance(Duration::from_secs(60));
    assert_eq!(write().await.detail(401), "Token has expired");
}

#[tokio::test]
async fn tokens_are_given_to_who_may_create_them() {
    let stage = stage().await;
    stage.allow("mothership", "tokens", &["create"], &[]).await;
    let mothership = stage.token_of("mothership", &[]).await;
    let wanted = json!({"items": [{"entry": "rt-1", "reconciler": "network"}, {"entry": "none", "reconciler": "a"}],
        "ttl_seconds": 10});
    let reader = stage.token_of("reader", &[]).await;
    stage.ask(&reader, "POST", "/tokens", wanted.clone()).await.detail(403);
    let minted = stage.ask(&mothership, "POST", "/tokens", wanted).await.expect(200);
    let tokens = minted["tokens"].as_array().unwrap();
    assert_eq!((tokens.len(), &tokens[1]["token"]), (2, &Value::Null));
    assert_eq!(tokens[0]["expires_at"], "2026-01-01T00:00:10Z");
    let token = tokens[0]["token"].as_str().unwrap();
    let path = section("rt-1", "network");
    stage.ask(token, "PUT", &path, data(contents("network"))).await.expect(200);
    stage.clock.advance(Duration::from_secs(10));
    stage.ask(token, "PUT", &path, data(contents("network"))).await.detail(401);
    for bad in [json!({}), json!({"items": [{}]}), json!({"items": [], "ttl_seconds": 0})] {
        stage.ask(&mothership, "POST", "/tokens", bad).await.detail(422);
    }
}

#[tokio::test]
async fn r4_every_access_to_a_secret_section_is_written_down() {
    let stage = stage().await;
    let path = section("rt-1", "credentials");
    let entry = |id: &str| {
        let sections = json!({"network": contents("network"), "credentials": contents("credentials")});
        json!({"id": id, "kind": "byoc", "sections": sections})
    };
    stage.post("/entries", entry("rt-3")).await.expect(201);
    stage.allow("creator", "clusters", &["create"], &[]).await;
    let creator = token(&stage, "creator").await;
    stage.ask(&creator, "POST", "/entries", entry("rt-4")).await.expect(403);
    stage.put(&path, data(contents("credentials"))).await.expect(200);
    stage.put(&section("rt-1", "network"), data(contents("network"))).await.expect(200);
    for who in ["shoot@rt-1", "network@rt-1", "reader", "stranger"] {
        let token = token(&stage, who).await;
        stage.ask(&token, "GET", &path, Value::Null).await;
    }
    stage.delete(&path).await.expect(200);
    let lines = stage.audited().await;
    let is_secret = |it: &&Value| it["subresource"] == "secret";
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let seen: Vec<String> = lines
        .iter()
        .filter(is_secret)
        .map(|it| format!("{} {} {} {}", text(&it["user"]), text(&it["verb"]), text(&it["name"]), it["code"]))
        .collect();
    assert_eq!(
        seen,
        [
            "root update rt-3.credentials 201",
            "creator update rt-4.credentials 403",
            "root update rt-1.credentials 200",
            "inventory:rt-1/shoot get rt-1.credentials 200",
            "inventory:rt-1/network get rt-1.credentials 403",
            "reader get rt-1.credentials 403",
            "stranger get rt-1.credentials 403",
            "root delete rt-1.credentials 200",
        ]
    );
}
