//! The steps of a Shoot.

use serde_json::{Value, json};

use super::Grown;
use crate::cluster::{Client, Place, SECRET, SHOOT, Trouble};
use crate::shoot::PROJECT;

const FINALIZER: &str = "gardener";

/// What to do next for a Shoot.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Hold,
    Begin,
    Finish,
    LetGo,
    Nothing,
}

fn next(shoot: &Value) -> Step {
    let (metadata, status) = (&shoot["metadata"], &shoot["status"]);
    let is_held = metadata["finalizers"].as_array().is_some_and(|all| all.contains(&json!(FINALIZER)));
    let is_current = status["observedGeneration"] == metadata["generation"];
    match (metadata["deletionTimestamp"].is_null(), is_held) {
        (false, true) => Step::LetGo,
        (false, false) => Step::Nothing,
        (true, false) => Step::Hold,
        (true, true) => match status["lastOperation"]["state"].as_str() {
            Some("Succeeded") if is_current => Step::Nothing,
            Some("Processing") if is_current => Step::Finish,
            _ => Step::Begin,
        },
    }
}

/// One step for each.
pub async fn tend(garden: &Client, grown: &Grown) -> Result<(), Trouble> {
    for shoot in garden.list(SHOOT, Some(PROJECT), None).await? {
        let Some(name) = shoot["metadata"]["name"].as_str() else { continue };
        let place = Place::new(SHOOT, Some(PROJECT), name);
        match next(&shoot) {
            Step::Hold => drop(garden.merge(&place, None, &finalizers(&json!([FINALIZER]))).await?),
            Step::Begin => report(garden, &place, &shoot, "Processing", None).await?,
            Step::Finish => {
                garden.apply(&secret(name, grown)).await?;
                report(garden, &place, &shoot, "Succeeded", Some(grown)).await?;
            }
            Step::LetGo => {
                let secret = Place::new(SECRET, Some(PROJECT), &format!("{name}.kubeconfig"));
                garden.delete(&secret).await?;
                garden.merge(&place, None, &finalizers(&json!([]))).await?;
            }
            Step::Nothing => {}
        }
    }
    Ok(())
}

fn finalizers(all: &Value) -> Value {
    json!({"metadata": {"finalizers": all}})
}

async fn report(
    garden: &Client,
    place: &Place,
    shoot: &Value,
    state: &str,
    grown: Option<&Grown>,
) -> Result<(), Trouble> {
    let progress = if state == "Succeeded" { 100 } else { 40 };
    let mut status = json!({"observedGeneration": shoot["metadata"]["generation"],
        "lastOperation": {"type": "Create", "state": state, "progress": progress,
            "description": format!("{state}: {progress} %")}});
    if let Some(grown) = grown {
        status["advertisedAddresses"] = json!([{"name": "external", "url": grown.api_server}]);
    }
    garden.merge(place, Some("status"), &json!({ "status": status })).await.map(drop)
}

fn secret(name: &str, grown: &Grown) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("{name}.kubeconfig"), "namespace": PROJECT},
        "data": {"kubeconfig": grown.kubeconfig}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shoot_is_made_in_steps_and_again_after_a_change() {
        let shoot = |held: bool, seen: i64, state: &str| {
            let finalizers = if held { json!([FINALIZER]) } else { Value::Null };
            json!({"metadata": {"generation": 2, "finalizers": finalizers},
                "status": {"observedGeneration": seen, "lastOperation": {"state": state}}})
        };
        assert_eq!(next(&shoot(false, 0, "")), Step::Hold);
        assert_eq!(next(&shoot(true, 0, "")), Step::Begin);
        assert_eq!(next(&shoot(true, 2, "Processing")), Step::Finish);
        assert_eq!(next(&shoot(true, 2, "Succeeded")), Step::Nothing);
        assert_eq!(next(&shoot(true, 1, "Succeeded")), Step::Begin);
        let mut going = shoot(true, 2, "Succeeded");
        going["metadata"]["deletionTimestamp"] = json!("2026-11-17T12:00:00Z");
        assert_eq!(next(&going), Step::LetGo);
    }
}
