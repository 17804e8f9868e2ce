//! Parts of requests that are made up from a description of an API, and broken.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRng, TestRunner};
use serde_json::{Value, json};

/// Bounded: a few seconds on a slow machine.
const REQUESTS: u32 = 1_500;

/// The same requests in every run.
pub fn runner() -> TestRunner {
    let config = Config { cases: REQUESTS, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(Default::default()))
}

/// Now and then another method than the one that is described.
pub fn methods() -> impl Strategy<Value = Option<&'static str>> {
    let all = vec!["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    proptest::option::weighted(0.2, select(all))
}

/// Values of parameters: some of `words`, and some noise.
pub fn values(words: &'static [&'static str]) -> impl Strategy<Value = Vec<(Index, String)>> {
    let value = prop_oneof![select(words).prop_map(str::to_owned), "[a-zA-Z0-9=,()!%+.-]{0,20}"];
    proptest::collection::vec((any::<Index>(), value), 0..3)
}

/// Bodies like one of `whole`, with values of any sort or from `odd` at some of `places`, cut off, or no
/// more than noise.
pub fn bodies(
    whole: Vec<Value>,
    places: &'static [&'static str],
    odd: Vec<Value>,
) -> impl Strategy<Value = Vec<u8>> {
    let changes = proptest::collection::vec((select(places), junk(odd)), 0..3);
    let broken = (select(whole), changes).prop_map(|(mut body, changes)| {
        for (path, value) in changes {
            if let Some(place) = body.pointer_mut(path) {
                *place = value;
            }
        }
        body.to_string().into_bytes()
    });
    let cut = (broken.clone(), any::<Index>()).prop_map(|(mut body, at)| {
        body.truncate(at.index(body.len() + 1));
        body
    });
    prop_oneof![4 => broken, 1 => cut, 1 => proptest::collection::vec(any::<u8>(), 0..60)]
}

fn junk(odd: Vec<Value>) -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => ".{0,10}".prop_map(Value::from),
        1 => Just(json!([])),
        1 => Just(json!({})),
        2 => select(odd),
    ]
}

/// Path, method and names of the parameters of one operation.
pub type Operation = (String, String, Vec<String>);

/// All operations of an OpenAPI document.
pub fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap().iter().filter(|(it, _)| *it != "parameters") {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let names = parameters.map(|it| it["name"].as_str().unwrap().to_owned()).collect();
            all.push((path.clone(), method.to_uppercase(), names));
        }
    }
    all
}

/// The path with a query of the operation's own parameters and of `odd` ones; none if that is no address.
pub fn address(
    path: &str,
    params: &[(Index, String)],
    parameters: &[String],
    odd: &[&str],
) -> Option<String> {
    let names: Vec<&str> = parameters.iter().map(String::as_str).chain(odd.iter().copied()).collect();
    let pair = |(name, value): &(Index, String)| format!("{}={value}", name.get(&names));
    let query: Vec<String> = params.iter().map(pair).collect();
    let uri = format!("{path}?{}", query.join("&"));
    uri.parse::<http::Uri>().is_ok().then_some(uri)
}
