//! Stands in for Gardener: completes Shoots, step by step, and says of each that it is one and the same
//! cluster. Plays the nodes of that cluster as well: Deployments become available.

mod shoots;

use concert_model::base64;
use concert_store::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::cluster::{Client, DEFINITION, DEPLOYMENT, Place, Trouble};
use crate::flags::Gardener;
use crate::shoot::PROJECT;

/// What every Shoot turns out to be.
pub struct Grown {
    pub api_server: String,
    /// Its administrator's kubeconfig, in base64 as Secrets have it.
    pub kubeconfig: String,
}

/// Goes on until its process ends.
pub async fn run(flags: &Gardener) -> anyhow::Result<()> {
    let (garden, cluster) =
        (Client::from_file(&flags.garden).await?, Client::from_file(&flags.cluster).await?);
    let grown = grown(&std::fs::read_to_string(&flags.cluster)?)?;
    let clock = SystemClock::new();
    while !is_established(&garden.apply(&definition()).await?) {
        clock.sleep(flags.pace).await;
    }
    let project = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PROJECT}});
    garden.apply(&project).await?;
    tracing::info!("a garden is tended");
    loop {
        // Whatever fails is done in the next round.
        for tended in [shoots::tend(&garden, &grown).await, roll_out(&cluster).await] {
            if let Err(trouble) = tended {
                tracing::warn!(%trouble, "the garden waits");
            }
        }
        clock.sleep(flags.pace).await;
    }
}

/// With files turned into data: whoever reads the kubeconfig later does so on another machine.
fn grown(text: &str) -> anyhow::Result<Grown> {
    let mut document: Value = serde_saphyr::from_str(text)?;
    let cluster = &mut document["clusters"][0]["cluster"];
    if let Some(path) = cluster["certificate-authority"].as_str() {
        let pem = std::fs::read(path)?;
        cluster["certificate-authority-data"] = json!(base64::encode(&pem));
        cluster["certificate-authority"] = Value::Null;
    }
    let api_server = cluster["server"].as_str().unwrap_or_default().to_owned();
    Ok(Grown { api_server, kubeconfig: base64::encode(document.to_string().as_bytes()) })
}

/// Every Deployment runs as it should, a moment after it was declared.
async fn roll_out(cluster: &Client) -> Result<(), Trouble> {
    for deployment in cluster.list(DEPLOYMENT, None, None).await? {
        let (generation, replicas) = (&deployment["metadata"]["generation"], &deployment["spec"]["replicas"]);
        let status = &deployment["status"];
        if status["observedGeneration"] == *generation && status["availableReplicas"] == *replicas {
            continue;
        }
        let Some(place) = Place::of(&with_kind(&deployment)) else { continue };
        let status = json!({"status": {"observedGeneration": generation, "replicas": replicas,
            "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas}});
        cluster.merge(&place, Some("status"), &status).await?;
    }
    Ok(())
}

/// Objects in lists do not say what they are.
fn with_kind(deployment: &Value) -> Value {
    let mut whole = deployment.clone();
    whole["apiVersion"] = json!(DEPLOYMENT.api_version());
    whole["kind"] = json!(DEPLOYMENT.kind);
    whole
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == "Established" && it["status"] == "True")
}

/// As much of the kind Shoot as is needed.
fn definition() -> Value {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": free, "status": free}});
    json!({"apiVersion": DEFINITION.api_version(), "kind": DEFINITION.kind,
        "metadata": {"name": "shoots.core.gardener.cloud"},
        "spec": {"group": "core.gardener.cloud", "scope": "Namespaced",
            "names": {"kind": "Shoot", "listKind": "ShootList", "plural": "shoots", "singular": "shoot"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}]}})
}
