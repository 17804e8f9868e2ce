//! Waiting until an object is as somebody wants it, by watching it.

use std::time::Duration;

use concert_server::Clock as _;
use serde_json::Value;

use super::discovery::Resource;
use super::error::Error;
use super::session::{Ask, Session};
use super::watch::{Event, Watch};

/// Between two watches, so that a server that closes them at once is not asked without end.
const PAUSE: Duration = Duration::from_millis(250);

/// One object.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub resource: &'a Resource,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Place<'_> {
    /// `bucket.cloud.concert.dev/a`.
    pub fn label(&self) -> String {
        format!("{}/{}", self.resource.label(), self.name)
    }
}

/// Waits until `is_so` holds of the object, or of its absence. Says whether it came to that in time.
pub async fn until(
    session: &Session,
    place: Place<'_>,
    limit: Duration,
    is_so: impl FnMut(Option<&Value>) -> bool,
) -> Result<bool, Error> {
    match tokio::time::timeout(limit, look(session, place, is_so)).await {
        Ok(result) => result.map(|()| true),
        Err(_) => Ok(false),
    }
}

async fn look(
    session: &Session,
    place: Place<'_>,
    mut is_so: impl FnMut(Option<&Value>) -> bool,
) -> Result<(), Error> {
    let field = format!("metadata.name={}", place.name);
    let collection = place.resource.collection(Some(place.namespace)).with("fieldSelector", &field);
    loop {
        let list = session.value(&Ask::get(collection.clone())).await?;
        if is_so(list["items"].as_array().and_then(|it| it.first())) {
            return Ok(());
        }
        let position = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        match follow(session, collection.clone(), position, &mut is_so).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) if error.is_expired() => {}
            Err(error) => return Err(error),
        }
        session.clock.sleep(PAUSE).await;
    }
}

/// Says whether it came to that before the watch ended.
async fn follow(
    session: &Session,
    collection: concert_model::Address,
    position: &str,
    is_so: &mut impl FnMut(Option<&Value>) -> bool,
) -> Result<bool, Error> {
    let mut watch = Watch::open(session, collection, position, false).await?;
    while let Some(event) = watch.next().await? {
        let holds = match &event {
            Event::Added(object) | Event::Modified(object) => is_so(Some(object)),
            Event::Deleted(_) => is_so(None),
            Event::Bookmark(_) => false,
        };
        if holds {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an object has become what it is to be.
pub fn is_settled(object: &Value) -> bool {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let seen = object["status"]["observedGeneration"].as_i64().unwrap_or(generation);
    if object["metadata"]["deletionTimestamp"].is_string() || seen < generation {
        return false;
    }
    let conditions: Vec<&Value> = object["status"]["conditions"].as_array().into_iter().flatten().collect();
    let find = |kind: &str| conditions.iter().find(|it| it["type"] == kind);
    let is_current = |it: &Value| it["observedGeneration"].as_i64().is_none_or(|seen| seen >= generation);
    let Some(ready) = ["Ready", "Established", "Available", "Healthy"].iter().find_map(|kind| find(kind))
    else {
        return has_nothing_to_become(object);
    };
    let is_synced = find("Synced").is_none_or(|it| it["status"] == "True" && is_current(it));
    ready["status"] == "True" && is_current(ready) && is_synced
}

/// Kinds that Kubernetes brings along have no status to wait for, save where they do have one.
fn has_nothing_to_become(object: &Value) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_built_in = !group.contains('.') || group.ends_with(".k8s.io");
    let is_definition = object["kind"] == "CustomResourceDefinition";
    is_built_in && !is_definition && object["status"]["phase"].as_str().is_none_or(|it| it == "Active")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bucket(status: &Value) -> Value {
        json!({"apiVersion": "cloud.dev/v1", "kind": "Bucket", "metadata": {"generation": 2}, "status": status})
    }

    #[test]
    fn ready_means_ready_for_the_latest_change() {
        let conditions = |ready: &str, seen: i64, synced: &str| {
            is_settled(&bucket(
                &json!({"conditions": [{"type": "Ready", "status": ready, "observedGeneration": seen},
                {"type": "Synced", "status": synced}]}),
            ))
        };
        assert!(conditions("True", 2, "True"));
        assert!(
            !conditions("False", 2, "True")
                && !conditions("True", 1, "True")
                && !conditions("True", 2, "False")
        );
        assert!(!is_settled(&bucket(&json!({"observedGeneration": 1}))));
    }

    #[test]
    fn what_has_no_conditions_is_settled_only_if_it_never_has_any() {
        assert!(!is_settled(&bucket(&json!({}))));
        assert!(is_settled(&json!({"apiVersion": "v1", "kind": "Secret"})));
        assert!(is_settled(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"})));
        assert!(!is_settled(
            &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"})
        ));
        assert!(!is_settled(
            &json!({"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Terminating"}})
        ));
    }
}
