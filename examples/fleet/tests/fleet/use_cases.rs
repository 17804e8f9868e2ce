//! The use cases, each by its number.

use serde_json::{Value, json};

use crate::fleet::{Fleet, Layout};
use crate::wait::eventually;
use crate::web::Web;

/// Tests of each use case, with inventory and mothership together and apart.
macro_rules! in_both_layouts {
    ($($case:ident),* $(,)?) => {
        mod together {
            $(#[test]
            fn $case() {
                super::$case(super::Layout::Together);
            })*
        }

        mod apart {
            $(#[test]
            fn $case() {
                super::$case(super::Layout::Apart);
            })*
        }
    };
}

in_both_layouts!(
    u1_a_network_is_made_and_named_in_the_inventory,
    u2_a_shoot_waits_for_the_network_and_grows_by_itself,
    u3_a_kubeconfig_is_restricted_and_rotated_before_it_expires,
    u3_a_consumer_whose_credentials_are_refused_fetches_them_again_once,
    u4_a_brought_cluster_is_accepted_at_once_and_judged_later,
    u5_a_component_is_installed_updated_repaired_and_pruned,
    u5_a_service_instance_in_the_cluster_wakes_the_connectivity_proxy,
);

fn condition<'a>(item: &'a Value, kind: &str) -> &'a Value {
    let all = item["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|it| it["type"] == kind).unwrap_or(&Value::Null)
}

fn u1_a_network_is_made_and_named_in_the_inventory(layout: Layout) {
    let Some(mut fleet) = Fleet::start(layout) else { return };
    fleet.run("network");
    fleet.create("rt-u1", "runtime", &json!({"settings": {"cidr": "10.9.0.0/16"}}));
    let network = fleet.wait_section("rt-u1", "network", |data| data["vnet_name"].is_string());
    assert_eq!(network["data"]["vnet_name"], "vnet-rt-u1");
    assert_eq!(network["data"]["cidr"], "10.9.0.0/16");
    assert_eq!(fleet.cloud.networks(), ["vnet-rt-u1"]);
    let item = fleet.wait_item("rt-u1", "network", "ready");
    assert_eq!(condition(&item, "NetworkCreated")["status"], "True");
    fleet.inventory().web.good("DELETE", "/inventory/v1/entries/rt-u1", &Value::Null);
    eventually("the network is gone", || match fleet.cloud.networks() {
        none if none.is_empty() => Ok(()),
        left => Err(left.join(", ")),
    });
}

fn u2_a_shoot_waits_for_the_network_and_grows_by_itself(layout: Layout) {
    let Some(mut fleet) = Fleet::start(layout) else { return };
    fleet.run("shoot");
    fleet.create("rt-u2", "runtime", &json!({"settings": {"region": "here"}}));
    let item = fleet.wait_item("rt-u2", "shoot", "not_ready");
    assert_eq!(item["status"]["waitsFor"][0]["section"], "network", "{item}");
    assert!(fleet.world.shoot("rt-u2").is_none());
    fleet.run("network");
    let cluster = fleet.wait_section("rt-u2", "cluster", |data| data["api_server"].is_string());
    assert_eq!(cluster["data"]["api_server"], fleet.world.target.url());
    let shoot = fleet.world.shoot("rt-u2").unwrap();
    let vnet = shoot.pointer("/spec/provider/infrastructureConfig/networks/vnet/name").unwrap();
    assert_eq!((vnet, &shoot["spec"]["region"]), (&json!("vnet-rt-u2"), &json!("here")));
    let item = fleet.wait_item("rt-u2", "shoot", "ready");
    assert_eq!(condition(&item, "ShootCreated")["status"], "True");
}

/// The entry `id` with credentials, and nothing that consumes them.
fn with_credentials(fleet: &mut Fleet, id: &str) -> Value {
    ["network", "shoot", "kubeconfig"].into_iter().for_each(|name| fleet.run(name));
    fleet.create(id, "runtime", &json!({"settings": {}}));
    fleet.wait_section(id, "credentials", |data| data["kubeconfig"].is_string())
}

fn kubeconfig(section: &Value) -> &str {
    section["data"]["kubeconfig"].as_str().unwrap()
}

fn u3_a_kubeconfig_is_restricted_and_rotated_before_it_expires(layout: Layout) {
    // Ten minutes is the least that Kubernetes gives; a hundredth of it is what a test can wait for.
    let Some(mut fleet) = Fleet::start_rotating(layout, (0.01, 0.015)) else { return };
    let first = with_credentials(&mut fleet, "rt-u3");
    let web = Web::open(kubeconfig(&first));
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let review = web.good("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", &who);
    assert_eq!(review["status"]["userInfo"]["username"], "system:serviceaccount:fleet:fleet-components");
    web.get("/api/v1/namespaces/fleet/configmaps");
    for forbidden in ["/api/v1/secrets", "/api/v1/namespaces/kube-system/configmaps", "/api/v1/nodes"] {
        assert_eq!(web.ask("GET", forbidden, &Value::Null).0, 403, "{forbidden}");
    }
    // Whoever runs reconcilers cannot read it: only what comes with a claim of that entry can.
    let path = "/inventory/v1/entries/rt-u3/sections/credentials";
    // An inventory elsewhere does not even know whom the mothership has let in.
    let code = if layout == Layout::Apart { 401 } else { 403 };
    assert_eq!(fleet.inventory().web_as(&fleet.token()).ask("GET", path, &Value::Null).0, code);
    let is_other = |data: &Value| data["kubeconfig"] != first["data"]["kubeconfig"];
    let second = fleet.wait_section("rt-u3", "credentials", is_other);
    assert!(second["version"].as_u64() > first["version"].as_u64());
    // Both are good for a while: nobody is cut off by a rotation.
    Web::open(kubeconfig(&second)).get("/api/v1/namespaces/fleet/configmaps");
    web.get("/api/v1/namespaces/fleet/configmaps");
    let time = |field: &str| first["data"][field].as_str().unwrap().to_owned();
    assert!(time("not_before") < time("rotate_at") && time("rotate_at") < time("expires_at"));
}

fn u3_a_consumer_whose_credentials_are_refused_fetches_them_again_once(layout: Layout) {
    let Some(mut fleet) = Fleet::start(layout) else { return };
    with_credentials(&mut fleet, "rt-u3b");
    fleet.run("component");
    fleet.wait_item("rt-u3b", "component", "ready");
    fleet.reconciler("kubeconfig").kill();
    fleet.world.target.kubectl(&["delete", "serviceaccount", "fleet-components", "-n", "fleet"]).unwrap();
    // The API server itself believes a token for some seconds after its account is gone.
    let item = eventually("the credentials are refused", || {
        fleet.ask_for_run("rt-u3b", "component");
        let item = fleet.item("rt-u3b", "component");
        if item["status"]["state"] == "not_ready" { Ok(item) } else { Err(item.to_string()) }
    });
    assert_eq!(item["status"]["waitsFor"][0]["section"], "credentials", "{item}");
    assert!(fleet.logs()["component"].contains("credentials refused, fetching them again"));
    fleet.run("kubeconfig");
    fleet.ask_for_run("rt-u3b", "kubeconfig");
    fleet.wait_item("rt-u3b", "component", "ready");
}

fn u4_a_brought_cluster_is_accepted_at_once_and_judged_later(layout: Layout) {
    let Some(mut fleet) = Fleet::start(layout) else { return };
    fleet.run("kubeconfig");
    const CANARY: &str = "canary-of-a-kubeconfig";
    fleet.create("byoc-odd", "byoc", &json!({"admin": {"kubeconfig": format!("{{{CANARY}: [")}}));
    fleet.create(
        "byoc-far",
        "byoc",
        &json!({"admin": {"kubeconfig":
        crate::web::kubeconfig("https://169.254.169.254", "x", CANARY)}}),
    );
    let nowhere =
        fleet.world.admin_kubeconfig(CANARY).replace(fleet.world.target.url(), "https://127.0.0.1:1");
    fleet.create("byoc-away", "byoc", &json!({"admin": {"kubeconfig": nowhere}}));
    fleet.create(
        "byoc-refused",
        "byoc",
        &json!({"admin": {"kubeconfig": fleet.world.admin_kubeconfig(CANARY)}}),
    );
    for (id, reason) in [
        ("byoc-odd", "Malformed"),
        ("byoc-far", "Malformed"),
        ("byoc-away", "NoAnswer"),
        ("byoc-refused", "Refused"),
    ] {
        let item = fleet.wait_item(id, "kubeconfig", "failed");
        let reachable = condition(&item, "Reachable");
        assert_eq!((&reachable["status"], &reachable["reason"]), (&json!("False"), &json!(reason)), "{item}");
        assert!(!item.to_string().contains(CANARY) && !fleet.entry(id).to_string().contains(CANARY));
    }
    let good = fleet.world.admin_kubeconfig(fleet.world.target.token());
    fleet.write("byoc-refused", "admin", &json!({"kubeconfig": good}));
    let item = fleet.wait_item("byoc-refused", "kubeconfig", "ready");
    assert_eq!(condition(&item, "Reachable")["status"], "True");
    let derived = fleet.section("byoc-refused", "credentials");
    assert!(!derived.to_string().contains(fleet.world.target.token()), "only what was derived is handed on");
    for log in fleet.logs().values() {
        assert!(!log.contains(CANARY));
    }
    // The cluster stays, and nothing of the fleet in it.
    fleet.run("component");
    fleet.wait_item("byoc-refused", "component", "ready");
    assert!(fleet.world.in_target("deployment", "component").is_some());
    fleet.inventory().web.good("DELETE", "/inventory/v1/entries/byoc-refused", &Value::Null);
    let made = [
        ("deployment", "component"),
        ("serviceaccount", "fleet-components"),
        ("role", "fleet-components"),
        ("clusterrole", "fleet-components"),
        ("clusterrolebinding", "fleet-components"),
    ];
    eventually("what was made in the cluster is gone", || {
        let left = made.iter().find(|(kind, name)| fleet.world.in_target(kind, name).is_some());
        left.map_or(Ok(()), |(kind, name)| Err(format!("{kind} {name}")))
    });
}

fn u5_a_component_is_installed_updated_repaired_and_pruned(layout: Layout) {
    let Some(mut fleet) = Fleet::start(layout) else { return };
    with_credentials(&mut fleet, "rt-u5");
    fleet.write("rt-u5", "settings", &json!({"component": {"version": "1.0.0", "dashboard": true}}));
    fleet.run("component");
    let item = fleet.wait_item("rt-u5", "component", "ready");
    assert_eq!(condition(&item, "Available")["status"], "True");
    let world = &fleet.world;
    assert!(world.in_target("configmap", "dashboard").is_some());
    let image =
        |it: &Value| it.pointer("/spec/template/spec/containers/0/image").cloned().unwrap_or_default();

    fleet.write("rt-u5", "settings", &json!({"component": {"version": "2.0.0"}}));
    eventually("the component is updated and what is not wanted is gone", || {
        let deployment = world.in_target("deployment", "component").unwrap_or_default();
        let is_pruned = world.in_target("configmap", "dashboard").is_none();
        if image(&deployment) == "component:2.0.0" && is_pruned {
            Ok(())
        } else {
            Err(deployment.to_string())
        }
    });
    let scale = [
        "patch",
        "deployment",
        "component",
        "-n",
        "fleet",
        "--type=merge",
        "-p",
        r#"{"spec":{"replicas":7}}"#,
    ];
    world.target.kubectl(&scale).unwrap();
    eventually("a change by somebody else is undone", || {
        let deployment = world.in_target("deployment", "component").unwrap_or_default();
        if deployment["spec"]["replicas"] == 1 { Ok(()) } else { Err(deployment["spec"].to_string()) }
    });
    world.target.kubectl(&["delete", "deployment", "component", "-n", "fleet"]).unwrap();
    eventually("a deleted object is back", || world.in_target("deployment", "component").ok_or("".into()));
    fleet.wait_item("rt-u5", "component", "ready");
}

fn u5_a_service_instance_in_the_cluster_wakes_the_connectivity_proxy(layout: Layout) {
    let Some(mut fleet) = Fleet::start(layout) else { return };
    fleet.world.define_service_instances();
    with_credentials(&mut fleet, "rt-u5p");
    fleet.run("connectivity-proxy");
    fleet.wait_item("rt-u5p", "connectivity-proxy", "ready");
    assert!(fleet.world.in_target("deployment", "connectivity-proxy").is_none());
    let instance = json!({"apiVersion": "services.cloud.sap.com/v1", "kind": "ServiceInstance",
        "metadata": {"name": "mine", "namespace": "default"}, "spec": {"serviceOfferingName": "connectivity"}});
    fleet.world.target.kubectl_with(&["apply", "-f", "-"], &instance.to_string()).unwrap();
    eventually("the proxy is installed", || {
        fleet.world.in_target("deployment", "connectivity-proxy").ok_or("there is none".into())
    });
    fleet.world.target.kubectl(&["delete", "serviceinstance", "mine", "-n", "default"]).unwrap();
    eventually("the proxy is gone", || match fleet.world.in_target("deployment", "connectivity-proxy") {
        None => Ok(()),
        Some(_) => Err("it is there".into()),
    });
}
