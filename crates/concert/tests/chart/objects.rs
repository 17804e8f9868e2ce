//! What objects say of each other is true.

use serde_json::{Value, json};

use crate::chart::{
    file, items, name, objects_of, of_kind, renderings, with_a_database, with_a_file, with_a_reconciler,
    workloads,
};

/// Whether labels satisfy a selector, which asks for something.
fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector.as_object().unwrap();
    !wanted.is_empty() && wanted.iter().all(|(key, value)| labels[key] == *value)
}

fn labels(workload: &Value) -> &Value {
    &workload["spec"]["template"]["metadata"]["labels"]
}

fn pod(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]
}

#[test]
fn nothing_is_made_unless_it_is_asked_for() {
    let Some(objects) = objects_of(&json!({})) else { return };
    assert!(objects.is_empty(), "{objects:?}");
    let kinds = |values: &Value| -> Vec<String> {
        let made = objects_of(values).unwrap();
        workloads(&made).iter().map(|it| it["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&with_a_file()), ["StatefulSet"]);
    assert_eq!(kinds(&with_a_reconciler()), ["Deployment"]);
}

#[test]
fn selectors_find_the_pods_that_they_are_meant_for() {
    for objects in renderings() {
        let workloads = workloads(&objects);
        for workload in &workloads {
            assert!(selects(&workload["spec"]["selector"]["matchLabels"], labels(workload)), "{workload}");
        }
        let services = of_kind(&objects, "Service").into_iter().map(|it| (it, &it["spec"]["selector"]));
        let budgets = of_kind(&objects, "PodDisruptionBudget").into_iter();
        let budgets = budgets.map(|it| (it, &it["spec"]["selector"]["matchLabels"]));
        for (object, selector) in services.chain(budgets) {
            let found: Vec<_> = workloads.iter().filter(|it| selects(selector, labels(it))).collect();
            assert_eq!(found.len(), 1, "{object}");
            // A budget for one replica would hold up whoever drains its node.
            assert!(object["kind"] == "Service" || found[0]["spec"]["replicas"].as_u64() > Some(1));
        }
    }
}

#[test]
fn ports_have_names_and_somebody_listens_there() {
    for objects in renderings() {
        for workload in workloads(&objects) {
            let container = &pod(workload)["containers"][0];
            let ports = items(&container["ports"]);
            let is_port = |it: &Value| ports.iter().any(|port| port["name"] == *it);
            for port in ports {
                let number = format!(":{}", port["containerPort"]);
                let listens =
                    |it: &Value| it.as_str().is_some_and(|it| it.starts_with("--") && it.ends_with(&number));
                assert!(items(&container["args"]).iter().any(listens), "{port} of {workload}");
            }
            for probe in ["livenessProbe", "readinessProbe"] {
                assert!(is_port(&container[probe]["httpGet"]["port"]), "{probe} of {workload}");
            }
            for service in of_kind(&objects, "Service") {
                if !selects(&service["spec"]["selector"], labels(workload)) {
                    continue;
                }
                for port in items(&service["spec"]["ports"]) {
                    assert!(is_port(&port["targetPort"]), "{service}");
                }
            }
        }
    }
}

#[test]
fn everything_that_is_mounted_or_named_is_there() {
    for objects in renderings() {
        let is_made =
            |kind: &str, called: &Value| of_kind(&objects, kind).iter().any(|it| *called == *name(it));
        for workload in workloads(&objects) {
            let pod = pod(workload);
            assert!(is_made("ServiceAccount", &pod["serviceAccountName"]), "{workload}");
            let claimed =
                items(&workload["spec"]["volumeClaimTemplates"]).iter().map(|it| &it["metadata"]["name"]);
            let mut volumes: Vec<&Value> =
                items(&pod["volumes"]).iter().map(|it| &it["name"]).chain(claimed).collect();
            let mounts = items(&pod["containers"][0]["volumeMounts"]);
            let mut mounted: Vec<&Value> = mounts.iter().map(|it| &it["name"]).collect();
            volumes.sort_by_key(ToString::to_string);
            mounted.sort_by_key(ToString::to_string);
            assert_eq!(volumes, mounted, "{workload}");
            for volume in items(&pod["volumes"]) {
                let map = &volume["configMap"]["name"];
                assert!(map.is_null() || is_made("ConfigMap", map), "{volume}");
            }
            let service = &workload["spec"]["serviceName"];
            assert!(service.is_null() || is_made("Service", service), "{workload}");
            // A path that a flag names lies in something that is mounted.
            for argument in items(&pod["containers"][0]["args"]) {
                let Some((_, path)) = argument.as_str().unwrap().split_once("=/") else { continue };
                let path = format!("/{path}");
                let is_inside =
                    |it: &Value| path.starts_with(&format!("{}/", it["mountPath"].as_str().unwrap()));
                let is_itself = |it: &Value| it["mountPath"] == *path;
                assert!(mounts.iter().any(|it| is_inside(it) || is_itself(it)), "{argument} of {workload}");
            }
        }
    }
}

#[test]
fn secrets_are_named_and_never_written() {
    for objects in renderings() {
        assert!(of_kind(&objects, "Secret").is_empty());
        for workload in workloads(&objects) {
            for variable in items(&pod(workload)["containers"][0]["env"]) {
                let (name, from) = (variable["name"].as_str().unwrap(), &variable["valueFrom"]);
                match name {
                    "POD_NAME" => assert!(from["fieldRef"].is_object(), "{variable}"),
                    "SSL_CERT_FILE" => assert!(variable["value"].as_str().unwrap().starts_with('/')),
                    _ => {
                        assert!(
                            from["secretKeyRef"].is_object() && variable["value"].is_null(),
                            "{variable}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn pods_may_do_nothing_that_they_need_not() {
    for objects in renderings() {
        for workload in workloads(&objects) {
            let (pod, container) = (pod(workload), &pod(workload)["containers"][0]);
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
            assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
            assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
            assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
            assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
            assert!(container["resources"]["requests"]["memory"].is_string());
            // The control plane does not speak to the cluster that it runs in.
            if workload["kind"] == "StatefulSet" {
                assert_eq!(pod["automountServiceAccountToken"], false);
            }
        }
    }
}

/// Name and rules of roles of a kind, without what the name begins with.
fn rules<'a>(objects: &'a [Value], kind: &str, prefix: &str) -> Vec<(&'a str, &'a Value)> {
    let roles = of_kind(objects, kind).into_iter();
    roles.map(|it| (name(it).strip_prefix(prefix).unwrap(), &it["rules"])).collect()
}

#[test]
fn the_rights_of_the_reconciler_are_those_of_the_plain_manifest() {
    let Some(objects) = objects_of(&with_a_reconciler()) else { return };
    let plain: Vec<Value> = serde_saphyr::from_multiple(&file("deploy/managed-reconciler.yaml")).unwrap();
    for kind in ["ClusterRole", "Role"] {
        let expected = rules(&plain, kind, "managed-reconciler");
        let mut found = rules(&objects, kind, "other-managed-reconciler");
        // The plain manifest has the kinds of the example, the chart those that its values name.
        found.iter_mut().filter(|it| it.0 == "-values").for_each(|it| it.0 = "-example");
        assert_eq!(found, expected);
    }
    for binding in ["ClusterRoleBinding", "RoleBinding"] {
        let names = |objects: &[Value]| -> Vec<String> {
            of_kind(objects, binding).iter().map(|it| name(it).replace("other-", "")).collect()
        };
        assert_eq!(names(&objects), names(&plain));
        for it in of_kind(&objects, binding) {
            assert_eq!(it["roleRef"]["name"], it["metadata"]["name"]);
            assert_eq!(it["subjects"][0]["name"], "other-managed-reconciler");
        }
    }
}

#[test]
fn replicas_are_reached_by_names_that_the_service_of_members_gives_them() {
    let Some(objects) = objects_of(&with_a_database()) else { return };
    let replicas = of_kind(&objects, "StatefulSet")[0];
    let members = replicas["spec"]["serviceName"].as_str().unwrap();
    let arguments = items(&pod(replicas)["containers"][0]["args"]);
    assert!(
        arguments.contains(&format!("--advertise=https://$(POD_NAME).{members}.default.svc:8000").into())
    );
    assert!(
        arguments.contains(&"--member-lease=20s".into()) && arguments.contains(&"--leader-election".into())
    );
    let service = of_kind(&objects, "Service").into_iter().find(|it| name(it) == members).unwrap();
    // It gives names to each, also while one stops.
    assert_eq!(service["spec"]["clusterIP"], "None");
    assert_eq!(service["spec"]["publishNotReadyAddresses"], true);
    // One that has a file has nobody to be reached by.
    let alone = objects_of(&with_a_file()).unwrap();
    let arguments = items(&pod(of_kind(&alone, "StatefulSet")[0])["containers"][0]["args"]);
    assert!(!arguments.iter().any(|it| it.as_str().unwrap().starts_with("--advertise")));
}
