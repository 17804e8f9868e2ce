//! `GET /api/v1/resources`: filters and pages.

use serde_json::{Value, json};

use crate::stage::{RESOURCES, Stage, TYPES, dns_type, record};

async fn names(stage: &Stage, query: &str) -> Vec<String> {
    let listed = stage.get(&format!("{RESOURCES}{query}")).await.expect(200);
    listed.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_newest_comes_first_and_filters_choose() {
    let stage = Stage::new().await;
    stage.worker("actions", json!([{"action": "exec"}])).await;
    stage.post(TYPES, &dns_type("v2")).await.expect(201);
    stage.record("c").await;
    stage.record("a").await;
    let mut other = record("b");
    (other["resource_type_version"], other["action_plugin"]) = (json!("v2"), json!("exec"));
    other["metadata"] = json!({"labels": {"team": "net"}});
    stage.post(RESOURCES, &other).await.expect(201);
    stage.make_ready("c").await;
    for (query, expected) in [
        ("", vec!["b", "a", "c"]),
        ("?status=ready", vec!["c"]),
        ("?status=pending", vec!["b", "a"]),
        ("?action_plugin=exec", vec!["b"]),
        ("?resource_type_name=DnsRecord", vec!["b", "a", "c"]),
        ("?resource_type_version=v1", vec!["a", "c"]),
        ("?resource_type_name=None", vec![]),
        ("?label=team%3Dnet", vec!["b"]),
        ("?label=team!%3Dnet&status=pending", vec!["a"]),
        ("?limit=2", vec!["b", "a"]),
        ("?limit=2&offset=2", vec!["c"]),
    ] {
        assert_eq!(names(&stage, query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn pages_go_on_where_the_last_one_ended() {
    let stage = Stage::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        stage.record(name).await;
    }
    let (mut seen, mut path) = (Vec::new(), format!("{RESOURCES}?limit=2"));
    loop {
        let reply = stage.get(&path).await;
        let page: Vec<String> =
            reply.expect(200).as_array().unwrap().iter().map(|it| it["name"].to_string()).collect();
        assert!(page.len() <= 2);
        seen.extend(page);
        // What is new meanwhile is on no later page.
        stage.record(&format!("late-{}", seen.len())).await;
        let Some(next) = reply.header("x-continue") else { break };
        path = format!("{RESOURCES}?limit=2&continue={next}");
    }
    assert_eq!(seen, ["\"e\"", "\"d\"", "\"c\"", "\"b\"", "\"a\""]);
    let none = stage.get(&format!("{RESOURCES}?limit=0")).await;
    assert!(none.header("x-continue").is_none());
    assert_eq!(none.expect(200), json!([]));
}

#[tokio::test]
async fn what_is_wrong_with_a_query_is_named() {
    let stage = Stage::new().await;
    for (query, kind) in [
        ("?limit=-1", "greater_than_equal"),
        ("?limit=1000000", "less_than_equal"),
        ("?limit=x", "int_parsing"),
        ("?offset=-1", "greater_than_equal"),
        ("?status=asleep", "enum"),
        ("?label=a+b", "value_error"),
        ("?continue=x", "value_error"),
        ("?none=1", "extra_forbidden"),
    ] {
        let wrong = stage.get(&format!("{RESOURCES}{query}")).await.wrong();
        let expected: Value = json!(["query", query[1..].split('=').next().unwrap()]);
        assert_eq!(wrong, [(kind.to_owned(), expected)], "{query}");
    }
}
