//! A set of objects in a cluster: applied, repaired, and pruned of what is no longer wanted.

use concert_model::Address;
use serde_json::{Value, json};

use super::client::{Client, Trouble};
use super::kinds::{CONFIG_MAP, DEPLOYMENT, Kind, Place, SERVICE};

/// The label that says whose an object is.
const LABEL: &str = "fleet.concert.dev/component";
/// Kinds that components are made of, and that are looked through for what is left over.
const KINDS: [Kind; 3] = [CONFIG_MAP, SERVICE, DEPLOYMENT];

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    pub pruned: Vec<String>,
    /// Deployments that do not yet run as they should.
    pub unready: Vec<String>,
}

/// Makes the objects of `component` in `namespace` exactly these.
pub async fn install(
    client: &Client,
    namespace: &str,
    component: &str,
    wanted: &[Value],
) -> Result<Installed, Trouble> {
    let mut installed = Installed::default();
    let mut places = Vec::new();
    for object in wanted {
        let object = labelled(object, namespace, component);
        let stored = client.apply(&object).await?;
        if stored["kind"] == DEPLOYMENT.kind && !is_available(&stored) {
            installed.unready.extend(stored["metadata"]["name"].as_str().map(str::to_owned));
        }
        places.extend(Place::of(&object));
    }
    let label = format!("{LABEL}={component}");
    for kind in KINDS {
        for object in client.list(kind, Some(namespace), Some(&label)).await? {
            let Some(name) = object["metadata"]["name"].as_str() else { continue };
            let place = Place::new(kind, Some(namespace), name);
            if !places.contains(&place) {
                client.delete(&place).await?;
                installed.pruned.push(place.to_string());
            }
        }
    }
    Ok(installed)
}

/// Removes what any component has in `namespace`.
pub async fn uninstall(client: &Client, namespace: &str) -> Result<Vec<String>, Trouble> {
    let mut removed = Vec::new();
    for kind in KINDS {
        for object in client.list(kind, Some(namespace), Some(LABEL)).await? {
            let Some(name) = object["metadata"]["name"].as_str() else { continue };
            let place = Place::new(kind, Some(namespace), name);
            client.delete(&place).await?;
            removed.push(place.to_string());
        }
    }
    Ok(removed)
}

fn labelled(object: &Value, namespace: &str, component: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["labels"][LABEL] = json!(component);
    object
}

/// As `kubectl rollout status` has it: the status is of this spec, and all replicas are there.
fn is_available(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let is_seen = status["observedGeneration"].as_i64() >= deployment["metadata"]["generation"].as_i64();
    is_seen && status["availableReplicas"].as_i64().unwrap_or(0) >= wanted
}

/// The address that hands out tokens of a service account.
pub fn token_address(namespace: &str, account: &str) -> Address {
    Place::new(super::SERVICE_ACCOUNT, Some(namespace), account).address().step("token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_available_when_its_newest_spec_is() {
        let deployment = |seen: i64, available: i64| {
            json!({"metadata": {"generation": 2}, "spec": {"replicas": 2},
                "status": {"observedGeneration": seen, "availableReplicas": available}})
        };
        assert!(is_available(&deployment(2, 2)));
        assert!(!is_available(&deployment(1, 2)) && !is_available(&deployment(2, 1)));
        assert!(!is_available(&json!({"metadata": {"generation": 1}, "spec": {}})));
    }

    #[test]
    fn every_object_says_whose_it_is() {
        let object = labelled(&json!({"metadata": {"name": "a", "labels": {"x": "y"}}}), "n", "c");
        assert_eq!(object["metadata"]["labels"], json!({"x": "y", LABEL: "c"}));
        assert_eq!(object["metadata"]["namespace"], "n");
    }
}
