//! What to think of a Shoot.

use serde_json::{Value, json};

use super::PROJECT;
use crate::cluster::{Place, SHOOT};

/// How far a Shoot is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Gardener is at it.
    Growing(String),
    /// It failed, and Gardener says why.
    Withered(String),
    /// There it is.
    Grown { api_server: String },
}

/// The Shoot of an entry.
pub fn place(entry: &str) -> Place {
    Place::new(SHOOT, Some(PROJECT), entry)
}

/// The Shoot as we want it, in the shape that Gardener knows.
pub fn wanted(entry: &str, vnet: &str, settings: &Value) -> Value {
    let region = settings["region"].as_str().unwrap_or("westeurope");
    let version = settings["kubernetes_version"].as_str().unwrap_or("1.34");
    json!({
        "apiVersion": SHOOT.api_version(), "kind": SHOOT.kind,
        "metadata": {"name": entry, "namespace": PROJECT},
        "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": "az"},
            "region": region,
            "kubernetes": {"version": version},
            "provider": {
                "type": "azure",
                "infrastructureConfig": {
                    "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1",
                    "kind": "InfrastructureConfig",
                    "networks": {"vnet": {"name": vnet}}},
                "workers": [{"name": "cpu-worker", "minimum": 3, "maximum": 10,
                    "machine": {"type": "Standard_D4s_v5"}}]},
        },
    })
}

/// What Gardener says about the spec that was applied. What it says about an older one does not count.
pub fn progress(shoot: &Value) -> Progress {
    let status = &shoot["status"];
    let last = &status["lastOperation"];
    let is_current = status["observedGeneration"].as_i64() == shoot["metadata"]["generation"].as_i64();
    let description = last["description"].as_str().unwrap_or("Gardener has not begun").to_owned();
    match last["state"].as_str() {
        Some("Succeeded") if is_current => match address(status) {
            Some(api_server) => Progress::Grown { api_server },
            None => Progress::Growing("it has no address yet".to_owned()),
        },
        Some("Failed" | "Aborted") if is_current => Progress::Withered(description),
        _ => Progress::Growing(description),
    }
}

fn address(status: &Value) -> Option<String> {
    let all = status["advertisedAddresses"].as_array()?;
    all.iter().find(|it| it["name"] == "external")?["url"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shoot(generation: i64, state: &str, addresses: Value) -> Value {
        json!({"metadata": {"generation": 2}, "status": {"observedGeneration": generation,
            "lastOperation": {"state": state, "description": "quota"}, "advertisedAddresses": addresses}})
    }

    #[test]
    fn a_shoot_is_grown_when_its_newest_spec_is_and_it_has_an_address() {
        let external =
            json!([{"name": "internal", "url": "https://i"}, {"name": "external", "url": "https://e"}]);
        let grown = progress(&shoot(2, "Succeeded", external.clone()));
        assert_eq!(grown, Progress::Grown { api_server: "https://e".to_owned() });
        assert!(matches!(progress(&shoot(1, "Succeeded", external)), Progress::Growing(_)));
        assert!(matches!(progress(&shoot(2, "Succeeded", json!([]))), Progress::Growing(_)));
        assert!(matches!(progress(&json!({"metadata": {"generation": 1}})), Progress::Growing(_)));
    }

    #[test]
    fn only_a_failure_of_the_newest_spec_is_one() {
        assert_eq!(progress(&shoot(2, "Failed", json!([]))), Progress::Withered("quota".to_owned()));
        assert!(matches!(progress(&shoot(1, "Failed", json!([]))), Progress::Growing(_)));
        assert!(matches!(progress(&shoot(2, "Error", json!([]))), Progress::Growing(_)), "it is tried again");
    }

    #[test]
    fn the_network_of_the_entry_is_the_network_of_the_shoot() {
        let shoot = wanted("a", "vnet-a", &json!({"region": "here"}));
        let vnet = shoot.pointer("/spec/provider/infrastructureConfig/networks/vnet/name");
        assert_eq!((vnet.unwrap(), &shoot["spec"]["region"]), (&json!("vnet-a"), &json!("here")));
    }
}
