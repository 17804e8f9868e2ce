use std::os::unix::fs::PermissionsExt as _;

use crate::world::{World, ran};

#[test]
fn a_login_is_remembered() {
    let Some(world) = World::enter("logins") else { return };
    let authority = world.cluster.authority();
    let (url, token) = (world.cluster.url(), world.cluster.token());
    let nobody = ran(&mut world.bare(&["get", "namespaces"]), "");
    nobody.fails(1, &["no server is known", "concert serve"]);
    let wrong = [
        "login",
        "--server",
        url,
        "--token",
        "wrong",
        "--certificate-authority",
        authority.to_str().unwrap(),
    ];
    ran(&mut world.bare(&wrong), "").fails(1, &["Unauthorized", &format!("concert login --server {url}")]);
    let login =
        ["login", "--server", url, "--token", "-", "--certificate-authority", authority.to_str().unwrap()];
    let logged_in = ran(&mut world.bare(&login), &format!("{token}\n"));
    assert!(logged_in.said.contains("as admin") && !logged_in.said.contains(token), "{}", logged_in.said);
    logged_in.fine();
    let file = world.path(".config/concert/kubeconfig");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let out = ran(&mut world.bare(&["get", "namespace/logins", "-o", "name"]), "").fine();
    assert_eq!(out, "namespace/logins\n");
}

#[test]
fn kubectl_can_use_what_kubeconfig_prints() {
    let Some(world) = World::enter("kubeconfig") else { return };
    let out = world.run(&["kubeconfig"]).fine();
    assert!(out.contains("certificate-authority-data") && out.contains("namespace: kubeconfig"), "{out}");
    let file = world.file("printed", &out);
    let output = std::process::Command::new(world.cluster.kubectl_program())
        .args(["--kubeconfig", &file, "--cache-dir", world.path("cache").to_str().unwrap(), "auth", "whoami"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("admin"), "{output:?}");
}

#[test]
fn a_token_of_a_service_account_works() {
    let Some(world) = World::enter("tokens") else { return };
    world.kubectl(&["create", "serviceaccount", "robot"]);
    let token = world.run(&["token", "--service-account", "robot", "--lifetime", "1h"]).fine();
    let ran = world.run(&["get", "buckets", "--token", token.trim()]);
    ran.fails(1, &["forbidden", "system:serviceaccount:tokens:robot", "--context"]);
    world.run(&["token", "--user", "jo"]).fails(1, &["keeps no tokens of users", "--service-account"]);
    assert_eq!(world.run(&["token"]).code, Some(64));
}

#[test]
fn a_server_that_is_not_there_is_said() {
    let Some(world) = World::enter("nowhere") else { return };
    let ran = world.run(&["get", "buckets", "--server", "http://127.0.0.1:1"]);
    ran.fails(1, &["cannot reach http://127.0.0.1:1", "refused", "concert serve"]);
    world.run(&["get", "buckets", "--context", "none"]).fails(1, &["no context none", "testbed"]);
    let unverified = world.run(&["get", "buckets", "--server", world.cluster.url()]);
    unverified.fails(1, &["cannot reach", "ertificate"]);
}
