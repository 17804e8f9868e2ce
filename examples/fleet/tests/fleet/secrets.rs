//! kubeconfigs appear where they belong and nowhere else.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fleet::Fleet;

/// The namespaces that anything of a fleet is in; objects without one have their events in `default`.
const NAMESPACES: [&str; 2] = ["default", "concert-inventory"];

/// The parts of a kubeconfig that nobody may see: tokens and keys.
fn canaries(kubeconfig: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(kubeconfig).unwrap();
    let user = &document["users"][0]["user"];
    let texts = ["token", "client-key-data"].iter().filter_map(|it| user[*it].as_str().map(str::to_owned));
    texts
        .flat_map(|it| (0..3).map(|shift| encoded(&it, shift)).chain([it.clone()]).collect::<Vec<_>>())
        .collect()
}

/// What a text looks like somewhere inside of something that is encoded as a whole: in base64 that depends on
/// how many bytes there are before it, modulo three. Characters that share bits with others are left out.
fn encoded(text: &str, shift: usize) -> String {
    let padded = format!("{}{text}", "-".repeat(shift));
    let all = concert_model::base64::encode(padded.as_bytes());
    all[(shift * 8).div_ceil(6)..padded.len() * 8 / 6].to_owned()
}

#[test]
fn what_is_encoded_as_a_part_of_something_is_found() {
    let token = "canary-in-a-token";
    for before in ["", "a", "ab", "abc", "{\"token\": "] {
        let whole = concert_model::base64::encode(format!("{before}{token}\"}}").as_bytes());
        assert!((0..3).any(|shift| whole.contains(&encoded(token, shift))), "{before}");
    }
}

/// Looks for the kubeconfigs of these entries in everything that anybody can read who is not to have them.
pub fn assert_nothing_leaks(fleet: &Fleet, ids: &[&str]) {
    let mut canaries_of_all = Vec::new();
    for id in ids {
        let credentials = fleet.section(id, "credentials");
        canaries_of_all.extend(canaries(credentials["data"]["kubeconfig"].as_str().unwrap()));
        let path = format!("/inventory/v1/entries/{id}/sections/admin");
        if let (200, admin) = fleet.inventory().web.ask("GET", &path, &Value::Null) {
            canaries_of_all.extend(canaries(admin["data"]["kubeconfig"].as_str().unwrap()));
        }
    }
    assert!(canaries_of_all.len() >= ids.len() * 2);
    for (place, text) in everything(fleet, ids) {
        for canary in &canaries_of_all {
            assert!(!text.contains(canary.as_str()), "a kubeconfig is in {place}");
        }
    }
}

/// Logs, metrics, audits, objects, history, events, and the files of the stores as they lie on the disk.
fn everything(fleet: &Fleet, ids: &[&str]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = fleet.logs().into_iter().collect();
    for plane in fleet.planes() {
        all.push(("metrics".into(), plane.metrics()));
        for path in files(plane.data()) {
            // Files come and go while the store runs. That of whoever administers the plane is its own.
            let Ok(bytes) = std::fs::read(&path) else { continue };
            if path.file_name().is_none_or(|it| it != "kubeconfig") {
                all.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
        for namespace in NAMESPACES {
            let path = format!("/api/v1/namespaces/{namespace}/events");
            all.push((path.clone(), plane.web.get(&path).to_string()));
        }
    }
    let (inventory, mothership) = (&fleet.inventory().web, &fleet.mothership.web);
    let group = "/apis/inventory.concert.dev/v1alpha1";
    for path in [format!("{group}/clusters"), format!("{group}/sections"), "/inventory/v1/entries".to_owned()]
    {
        all.push((path.clone(), inventory.get(&path).to_string()));
    }
    for path in ["/apis/mothership.concert.dev/v1alpha1/items", "/mothership/v1/fleet"] {
        all.push((path.to_owned(), mothership.get(path).to_string()));
    }
    for id in ids {
        let path = format!("/mothership/v1/entries/{id}/explain");
        all.push((path.clone(), mothership.get(&path).to_string()));
        let path = format!("{group}/clusters/{id}/explain");
        all.push((path.clone(), inventory.get(&path).to_string()));
        for section in ["admin", "credentials"] {
            let path = format!("/inventory/v1/entries/{id}/sections/{section}/history");
            all.push((path.clone(), inventory.ask("GET", &path, &Value::Null).1.to_string()));
            let path = format!("{group}/sections/{id}.{section}/history");
            all.push((path.clone(), inventory.ask("GET", &path, &Value::Null).1.to_string()));
        }
    }
    all
}

/// Everything below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert!(!files.is_empty());
    files
}
