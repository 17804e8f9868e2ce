//! Somebody who may only create claims in one namespace, and what she gets to know of the others.

use serde_json::{Value, json};

use crate::managed::{Provider, provider_with, workspace};
use crate::plane::Plane;
use crate::wait::eventually;

const KINDS: [&str; 5] = [
    include_str!("../../../../deploy/claims/managed/cloudmemorystoreinstances.yaml"),
    include_str!("../../../../deploy/claims/redisclusters.yaml"),
    include_str!("../../../../deploy/claims/classes.yaml"),
    include_str!("../../../../deploy/claims/definitions.yaml"),
    include_str!("../../../../examples/claims/memorystore.yaml"),
];
const CLAIMS: &str = "redisclusters.cache.crossplane.io";

/// Two teams; the claim of one is bound, and has a secret with a password in it. Fields are dropped in order:
/// the provider ends first.
struct Town {
    _provider: Provider,
    plane: Plane,
    /// May create and read claims in `mine`, and nothing else.
    eve: String,
    theirs: Value,
}

fn claim(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "cache.crossplane.io/v1alpha1", "kind": "RedisCluster",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

fn path(namespace: &str, name: &str, view: &str) -> String {
    format!("/apis/cache.crossplane.io/v1alpha1/namespaces/{namespace}/redisclusters/{name}/{view}")
}

impl Town {
    fn open() -> Option<Self> {
        let plane = Plane::start_with(&[])?;
        let provider = provider_with(&plane, &["--claims"]);
        plane.apply(
            &json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider", "metadata": {"name": "cloud"},
            "spec": {"endpoint": provider.1}}),
        );
        plane.kubectl(&["apply", "-f", workspace().join("providers/example/crds").to_str().unwrap()]);
        for text in KINDS {
            eventually("its kinds are there", || {
                let output = plane.run(&["apply", "-f", "-"], text);
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                if output.status.success() { Ok(()) } else { Err(said) }
            });
        }
        for namespace in ["mine", "theirs"] {
            plane.kubectl(&["create", "namespace", namespace]);
        }
        plane.kubectl(&["create", "serviceaccount", "eve", "-n", "mine"]);
        let token = plane.kubectl(&["create", "token", "eve", "-n", "mine"]);
        let eve = format!("--token={}", token.trim());
        let resources = format!("--resource={CLAIMS},{CLAIMS}/explain,{CLAIMS}/history");
        let verbs = "--verb=create,get,list,patch,delete";
        plane.kubectl(&["create", "role", "claims", "-n", "mine", verbs, &resources]);
        let who = "--serviceaccount=mine:eve";
        plane.kubectl(&["create", "rolebinding", "claims", "-n", "mine", "--role=claims", who]);
        let class = json!({"apiVersion": "cache.gcp.crossplane.io/v1beta1",
            "kind": "CloudMemorystoreInstanceClass", "name": "redis-ha"});
        let spec = json!({"classRef": class, "writeConnectionSecretToRef": {"name": "theirs-conn"}});
        plane.apply(&claim("theirs", "theirs", &spec));
        let theirs = eventually("it is bound", || {
            let found = plane.kubectl(&["get", CLAIMS, "theirs", "-n", "theirs", "-o", "json"]);
            let found: Value = serde_json::from_str(&found).unwrap();
            if found["status"]["bindingPhase"] == "Bound" { Ok(found) } else { Err(found.to_string()) }
        });
        let secret = plane.kubectl(&["get", "secret", "theirs-conn", "-n", "theirs", "-o", "json"]);
        let secret: Value = serde_json::from_str(&secret).unwrap();
        assert!(secret["data"]["password"].is_string(), "there is something to steal");
        Some(Self { _provider: provider, plane, eve, theirs })
    }

    fn refused(&self, arguments: &[&str]) {
        let said = self.plane.refused(&[&[self.eve.as_str()], arguments].concat(), "");
        assert!(said.contains("forbidden") || said.contains("Forbidden"), "{arguments:?}: {said}");
    }

    /// A claim of hers, as she is told of it once it says something.
    fn explained(&self, name: &str) -> Value {
        self.explained_once(name, |sentence| !sentence.contains("is there a ClaimDefinition"))
    }

    /// The same, once it says this.
    fn explained_as(&self, name: &str, words: &str) -> Value {
        self.explained_once(name, |sentence| sentence.contains(words))
    }

    fn explained_once(&self, name: &str, is_it: impl Fn(&str) -> bool) -> Value {
        eventually("it says something", || {
            let told = self.plane.kubectl(&[&self.eve, "get", "--raw", &path("mine", name, "explain")]);
            let told: Value = serde_json::from_str(&told).unwrap();
            if is_it(told["sentence"].as_str().unwrap_or_default()) {
                Ok(told)
            } else {
                Err(told.to_string())
            }
        })
    }

    fn secrets_of_mine(&self) -> Vec<Value> {
        let all = self.plane.kubectl(&["get", "secrets", "-n", "mine", "-o", "json"]);
        let all: Value = serde_json::from_str(&all).unwrap();
        all["items"].as_array().unwrap().clone()
    }

    fn claims(&self, name: &str, spec: &Value) {
        let claim = claim("mine", name, spec).to_string();
        self.plane.kubectl_with(&[&self.eve, "create", "-f", "-"], &claim);
    }
}

#[test]
fn who_may_only_claim_in_one_namespace_reads_nothing_of_another() {
    let Some(town) = Town::open() else { return };
    town.refused(&["get", "secret", "theirs-conn", "-n", "theirs"]);
    town.refused(&["get", "secrets", "-n", "theirs"]);
    town.refused(&["get", "secrets", "-A"]);
    // Not even in her own: a claim's secret is for those who may read secrets.
    town.refused(&["get", "secrets", "-n", "mine"]);
    town.refused(&["get", CLAIMS, "theirs", "-n", "theirs"]);
    town.refused(&["get", CLAIMS, "-A"]);
    town.refused(&["get", "cloudmemorystoreinstances.cache.gcp.crossplane.io"]);
    for view in ["explain", "history"] {
        town.refused(&["get", "--raw", &path("theirs", "theirs", view)]);
    }
}

#[test]
fn a_forged_claim_binds_nothing_and_is_told_nothing() {
    let Some(town) = Town::open() else { return };
    let named = town.theirs["spec"]["resourceRef"].clone();
    town.claims("forged", &json!({"resourceRef": named, "writeConnectionSecretToRef": {"name": "loot"}}));
    let told = town.explained("forged");
    assert!(
        told["sentence"].as_str().unwrap().contains("belongs to another claim (another namespace)"),
        "{told}"
    );
    assert!(told["chain"].as_array().unwrap().iter().all(|it| it["relation"] != "managed"), "{told}");
    let secrets = town.plane.kubectl(&["get", "secrets", "-n", "mine", "-o", "name"]);
    assert!(!secrets.contains("loot"), "{secrets}");

    // What is not of a kind that plays is not even looked up.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "name": "theirs-conn", "namespace": "theirs"});
    town.claims("curious", &json!({"resourceRef": secret}));
    let told = town.explained("curious");
    assert!(told["sentence"].as_str().unwrap().contains("no ClaimDefinition has Secret"), "{told}");
    let own = ["item", "event", "warning"];
    let is_about_others = |it: &Value| !own.contains(&it["relation"].as_str().unwrap_or_default());
    assert!(!told["chain"].as_array().unwrap().iter().any(is_about_others), "{told}");
}

#[test]
fn a_secret_of_somebody_elses_name_is_neither_taken_nor_read() {
    let Some(town) = Town::open() else { return };
    // Somebody else keeps it in her namespace, where she may not read secrets.
    town.plane.kubectl(&["create", "secret", "generic", "victim", "-n", "mine", "--from-literal=token=x"]);
    let class = town.theirs["spec"]["classRef"].clone();
    town.claims("taking", &json!({"classRef": class, "writeConnectionSecretToRef": {"name": "victim"}}));
    let told = town.explained_as("taking", "cannot establish control of existing");
    assert!(!told.to_string().contains("eA=="), "{told}");
    // By the name of theirs she gets one of her own.
    town.claims("echo", &json!({"classRef": class, "writeConnectionSecretToRef": {"name": "theirs-conn"}}));
    town.explained_as("echo", "is ready");
    let theirs = town.plane.kubectl(&["get", "secret", "theirs-conn", "-n", "theirs", "-o", "json"]);
    let theirs: Value = serde_json::from_str(&theirs).unwrap();
    for secret in town.secrets_of_mine() {
        if secret["metadata"]["name"] == "victim" {
            assert_eq!(secret["data"], json!({"token": "eA=="}), "{secret}");
        }
        assert_ne!(secret["data"]["password"], theirs["data"]["password"], "{secret}");
    }
}

#[test]
fn selectors_find_classes_and_nothing_else() {
    let Some(town) = Town::open() else { return };
    let of_labels = json!({"matchLabels": {"kind": "RedisCluster", "name": "theirs"}});
    let of_fields = json!({"matchExpressions":
        [{"key": "metadata.namespace", "operator": "In", "values": ["theirs"]}]});
    for (name, selector) in [("by-labels", of_labels), ("by-fields", of_fields)] {
        let secret = json!({"name": format!("{name}-conn")});
        town.claims(name, &json!({"classSelector": selector, "writeConnectionSecretToRef": secret}));
        let told = town.explained_as(name, "no class matches spec.classSelector");
        assert!(told["chain"].as_array().unwrap().iter().all(|it| it["relation"] != "managed"), "{told}");
    }
    let names: Vec<Value> = town.secrets_of_mine().iter().map(|it| it["metadata"]["name"].clone()).collect();
    assert!(names.iter().all(|it| !it.as_str().unwrap().ends_with("-conn")), "{names:?}");
}

#[test]
fn a_plan_is_of_what_she_may_write_and_of_nobody_elses() {
    let Some(town) = Town::open() else { return };
    let plan = |item: &Value| {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [item]}).to_string();
        let path = "/apis/concert.dev/v1alpha1/plan";
        town.plane.run(&[&town.eve, "create", "--raw", path, "-f", "-"], &list)
    };
    assert!(!plan(&town.theirs).status.success(), "she may not write it");
    let mut forged = claim("mine", "forged", &json!({"resourceRef": town.theirs["spec"]["resourceRef"]}));
    forged["metadata"]["uid"] = town.theirs["metadata"]["uid"].clone();
    let output = plan(&forged);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("belongs to another claim (another namespace)"), "{told}");
}
