//! U5: a connectivity proxy where somebody wants connectivity.
//!
//! A ServiceInstance that somebody creates in the cluster of an entry wakes this. The event says only that
//! there is something to look at: what is there is read again.

use concert_worker::{Answer, Component, Entry, Inventory, Outcome, Registration, Status};
use serde_json::{Value, json};

use crate::cluster::{CREDENTIALS, Client, SERVICE_INSTANCE, Targets, Trouble, install};
use crate::component::{answer, wanted::deployment};
use crate::kubeconfig::FLEET;

const NAME: &str = "connectivity-proxy";

pub fn registration() -> Registration {
    Registration::new(NAME)
        .handles("runtime")
        .handles("byoc")
        .watches(CREDENTIALS)
        .follows(SERVICE_INSTANCE.group, SERVICE_INSTANCE.version, SERVICE_INSTANCE.kind, None)
        .reads([CREDENTIALS])
}

/// The reconciler.
#[derive(Default)]
pub struct Proxies(Targets);

impl Component for Proxies {
    async fn reconcile(&self, entry: &Entry, inventory: &Inventory) -> Outcome {
        if entry.is_deleting {
            self.0.forget(entry);
            return Ok(Answer::ready("the proxy goes with its cluster, or with the account there"));
        }
        self.0.within(entry, inventory, settle).await
    }
}

async fn settle(client: Client) -> Result<Answer, Trouble> {
    let instances = client.list(SERVICE_INSTANCE, None, None).await?;
    let objects = objects(&instances);
    let installed = install(&client, FLEET, NAME, &objects).await?;
    if objects.is_empty() {
        let message = "nobody wants connectivity";
        // The condition speaks of what is wanted: of that, nothing is missing.
        return Ok(Answer::ready(message).with_condition("Available", Status::True, "NotWanted", message));
    }
    Ok(answer(&installed))
}

/// The proxy, if there is an instance of the service that is not being deleted.
fn objects(instances: &[Value]) -> Vec<Value> {
    let is_wanted = |it: &Value| {
        it["spec"]["serviceOfferingName"] == "connectivity" && it["metadata"]["deletionTimestamp"].is_null()
    };
    if !instances.iter().any(is_wanted) {
        return Vec::new();
    }
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME},
        "spec": {"selector": {"app": NAME}, "ports": [{"name": "proxy", "port": 20003}]}});
    vec![service, deployment(NAME, "connectivity-proxy:2.10.0", 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_of_the_service_want_a_proxy() {
        let instance = |offering: &str, deleted: Value| json!({"metadata": {"deletionTimestamp": deleted}, "spec": {"serviceOfferingName": offering}});
        assert!(objects(&[]).is_empty());
        assert!(objects(&[instance("destination", Value::Null)]).is_empty());
        assert!(objects(&[instance("connectivity", json!("2026-11-17T12:00:00Z"))]).is_empty());
        assert_eq!(objects(&[instance("connectivity", Value::Null)]).len(), 2);
    }
}
