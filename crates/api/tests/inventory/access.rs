//! Who may do what: every combination of identity, section and verb, and what a token is good for.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{OBJECTS, Stage, data, section};

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
/// h(istory), w(rite) and d(elete).
const TABLE: [(&str, [&str; 4]); 11] = [
    ("nobody", ["", "", "", ""]),
    ("stranger", ["", "", "", ""]),
    ("root", ["rhwd", "rhwd", "rhwd", "rhwd"]),
    // Reads sections, and of secret ones only that they are there.
    ("reader", ["rh", "rh", "h", "rh"]),
    ("confidant", ["rh", "rh", "rh", "rh"]),
    ("editor", ["w", "w", "w", "w"]),
    // May do everything, to one section of all entries.
    ("specialist", ["rhwd", "", "", ""]),
    // The same, of one entry.
    ("local", ["rhwd", "", "", ""]),
    ("network@rt-1", ["rhwd", "", "", ""]),
    ("shoot@rt-1", ["rh", "rhwd", "rh", ""]),
    ("ungranted@rt-1", ["", "", "", ""]),
];

async fn stage() -> Stage {
    let stage = Stage::with_entries().await;
    stage.allow("reader", "sections", &["get"], &[]).await;
    stage.allow("confidant", "sections", &["get"], &[]).await;
    stage.allow("confidant", "sections/secret", &["get"], &[]).await;
    stage.allow("editor", "sections", &["update"], &[]).await;
    stage.allow("specialist", "sections", &["get", "update", "delete"], &["network"]).await;
    stage.allow("local", "sections", &["get", "update", "delete"], &["rt-1.network"]).await;
    stage
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
        for (name, allowed) in SECTIONS.iter().zip(row) {
            let path = section("rt-1", name);
            for (verb, letter) in VERBS.iter().zip("rhwd".chars()) {
                stage.put(&path, data(contents(name))).await.expect(200);
                let (method, rest, code) = verb;
                let body = if *method == "PUT" { data(contents(name)) } else { Value::Null };
                let reply = stage.ask(&token, method, &format!("{path}{rest}"), body).await;
                let refused = if who == "nobody" { 401 } else { 403 };
                let expected = if allowed.contains(letter) { *code } else { refused };
                assert_eq!(reply.code, expected, "{who} {method} {name}{rest}: {}", reply.json());
                if expected != *code {
                    assert_eq!(reply.json().as_object().unwrap().len(), 1, "{who} {method} {name}{rest}");
                }
            }
        }
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
