//! A real kube-apiserver takes what is rendered, field by field.

use concert_testbed::Cluster;
use serde_json::{Value, json};

use crate::chart::{
    objects_of, text_of, with_a_database, with_a_file, with_a_reconciler, with_both, workloads,
};

#[test]
fn kubernetes_takes_every_object_as_it_is() {
    let all: Vec<(Value, String)> = [with_a_file(), with_a_database(), with_a_reconciler(), with_both()]
        .into_iter()
        .filter_map(|values| Some((values.clone(), text_of(&values)?.unwrap())))
        .collect();
    if all.is_empty() {
        return;
    }
    let Some(cluster) = Cluster::shared() else { return };
    for (values, text) in all {
        let words = ["apply", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"];
        let taken = cluster.kubectl_with(&words, &text).unwrap_or_else(|error| panic!("{values}: {error}"));
        assert!(taken.contains("serviceaccount/"), "{taken}");
    }
    // The same server notices a field that is none, so it has looked.
    let text = text_of(&with_a_file()).unwrap().unwrap().replace("replicas:", "replicaz:");
    let words = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"];
    assert!(cluster.kubectl_with(&words, &text).unwrap_err().to_string().contains("replicaz"));
}

#[test]
fn pods_get_into_a_namespace_that_takes_restricted_ones_only() {
    let sets = [with_a_database(), with_a_reconciler(), with_both()];
    let Some(objects) = sets.iter().map(objects_of).collect::<Option<Vec<_>>>() else { return };
    let Some(cluster) = Cluster::shared() else { return };
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": labels}});
    cluster.kubectl_with(&["apply", "-f", "-"], &namespace.to_string()).unwrap();
    let admit = |pod: &Value| {
        let metadata = json!({"name": "one", "namespace": "strict"});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod});
        cluster.kubectl_with(&["create", "--dry-run=server", "-f", "-"], &pod.to_string())
    };
    for workload in objects.iter().flat_map(|it| workloads(it)) {
        let mut pod = workload["spec"]["template"]["spec"].clone();
        admit(&pod).unwrap();
        pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = true.into();
        assert!(admit(&pod).unwrap_err().to_string().contains("violates PodSecurity"));
    }
}
