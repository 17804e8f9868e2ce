//! How often a contender has written to the API server.

use anyhow::Result;
use serde_json::Value;

use super::Contender;
use crate::process::get;

/// What counts as a write.
pub const VERBS: [&str; 4] = ["create", "update", "patch", "delete"];

/// Writes of one kind.
pub struct Writes {
    pub verb: &'static str,
    pub resource: String,
    pub number: u64,
}

/// All writes since the contender was started.
pub fn so_far(contender: Contender, metrics: &str) -> Result<Vec<Writes>> {
    Ok(match contender {
        Contender::Concert => counted(&get(metrics, "/metrics")?),
        Contender::CrossplaneRuntime => requested(&serde_json::from_str(&get(metrics, "/requests")?)?),
    })
}

/// All of them.
pub fn total(writes: &[Writes]) -> u64 {
    writes.iter().map(|it| it.number).sum()
}

/// Those of one verb.
pub fn of_verb(writes: &[Writes], verb: &str) -> u64 {
    writes.iter().filter(|it| it.verb == verb).map(|it| it.number).sum()
}

/// By the numbers that ours publishes.
fn counted(page: &str) -> Vec<Writes> {
    let mut found = Vec::new();
    for line in page.lines().filter(|it| it.starts_with("concert_store_requests_total{")) {
        let label = |name: &str| Some(line.split_once(&format!("{name}=\""))?.1.split_once('"')?.0);
        let (Some(verb), Some(resource)) = (label("verb"), label("resource")) else { continue };
        let number = line.rsplit(' ').next().and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
        if let Some(verb) = VERBS.into_iter().find(|it| *it == verb) {
            found.push(Writes { verb, resource: resource.to_owned(), number: number as u64 });
        }
    }
    found
}

/// By the requests that the other has counted, in the words of Kubernetes.
fn requested(all: &Value) -> Vec<Writes> {
    let mut found = Vec::new();
    for (resource, verbs) in all.as_object().into_iter().flatten() {
        for (verb, number) in verbs.as_object().into_iter().flatten() {
            let Some(verb) = VERBS.into_iter().find(|it| it == verb) else { continue };
            let number = number.as_u64().unwrap_or(0);
            found.push(Writes { verb, resource: resource.clone(), number });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_other_has_written_is_counted_and_what_it_has_read_is_not() {
        let said = json!({"things": {"create": 3, "update": 4, "watch": 1, "list": 2},
            "things/status": {"update": 5, "get": 6}});
        let writes = requested(&said);
        assert_eq!((total(&writes), of_verb(&writes, "create"), of_verb(&writes, "update")), (12, 3, 9));
    }
}
