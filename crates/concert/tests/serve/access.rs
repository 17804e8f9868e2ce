//! Who may do what, when authentication is on.

use serde_json::{Value, json};

use crate::plane::Plane;
use crate::wait::eventually;

#[test]
fn in_development_everybody_is_the_administrator() {
    let Some(plane) = Plane::start() else { return };
    assert!(plane.kubectl(&["auth", "whoami"]).contains("system:masters"));
    assert_eq!(plane.kubectl(&["auth", "can-i", "delete", "secrets"]), "yes\n");
    let log = plane.log();
    let warning = log.lines().find(|line| line.contains("development mode: no authentication"));
    assert!(warning.is_some_and(|line| line.contains("\"WARN\"")), "{log}");
    assert!(!log.contains("export KUBECONFIG="), "there is no token to get in with: {log}");
}

#[test]
fn the_first_start_says_once_how_to_get_in() {
    let Some(mut plane) = Plane::start_with(&[]) else { return };
    let way_in = format!("\n  export KUBECONFIG={}\n  concert get namespaces", plane.kubeconfig().display());
    let first =
        eventually("the way in", || Some(plane.log()).filter(|it| it.contains(&way_in)).ok_or(plane.log()));
    assert_eq!(first.matches("export KUBECONFIG=").count(), 1);
    plane.kill();
    plane.start_again();
    assert!(plane.kubectl(&["get", "namespaces"]).contains("default"));
    assert!(!plane.log().contains("export KUBECONFIG="), "{}", plane.log());
}

#[test]
fn what_was_begun_in_development_lets_the_administrator_in_afterwards() {
    let Some(mut plane) = Plane::start() else { return };
    plane.kubectl(&["create", "configmap", "kept"]);
    plane.kill();
    plane.start_again_with(&[]);
    assert!(plane.kubectl(&["get", "configmap", "kept"]).contains("kept"));
    assert!(plane.kubectl(&["auth", "whoami"]).contains("system:masters"));
}

#[test]
fn a_service_account_may_do_what_its_roles_allow_until_they_are_taken_away() {
    let Some(plane) = Plane::start_with(&[]) else { return };
    assert!(plane.kubectl(&["auth", "whoami"]).contains("admin"));
    plane.kubectl(&["create", "serviceaccount", "robot"]);
    let token = plane.kubectl(&["create", "token", "robot"]);
    let token = format!("--token={}", token.trim());
    let refused = plane.refused(&[&token, "get", "configmaps"], "");
    let user = "system:serviceaccount:default:robot";
    assert!(refused.contains(&format!("User \"{user}\" cannot list resource \"configmaps\"")), "{refused}");

    plane.kubectl(&["create", "role", "reader", "--verb=get,list", "--resource=configmaps"]);
    plane.kubectl(&["create", "rolebinding", "reads", "--role=reader", "--serviceaccount=default:robot"]);
    assert_eq!(plane.kubectl(&[&token, "auth", "can-i", "list", "configmaps"]), "yes\n");
    let no = plane.run(&[&token, "auth", "can-i", "delete", "configmaps"], "");
    assert_eq!((no.status.code(), String::from_utf8_lossy(&no.stdout).as_ref()), (Some(1), "no\n"));
    plane.kubectl(&[&token, "get", "configmaps"]);
    let refused = plane.refused(&[&token, "create", "configmap", "c"], "");
    assert!(refused.contains("is forbidden"), "{refused}");
    plane.kubectl(&["delete", "rolebinding", "reads"]);
    plane.refused(&[&token, "get", "configmaps"], "");

    // Nobody gives away what they do not have.
    plane.kubectl(&[
        "create",
        "role",
        "granter",
        "--verb=create",
        "--resource=roles.rbac.authorization.k8s.io",
    ]);
    plane.kubectl(&["create", "rolebinding", "grants", "--role=granter", "--serviceaccount=default:robot"]);
    let more = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "more", "namespace": "default"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let refused = plane.refused(&[&token, "create", "-f", "-"], &more.to_string());
    assert!(refused.contains("attempting to grant RBAC permissions not currently held"), "{refused}");
    plane.kubectl(&["delete", "serviceaccount", "robot"]);
    let unknown = plane.refused(&[&token, "get", "configmaps"], "");
    assert!(unknown.contains("Unauthorized") || unknown.contains("logged in"), "{unknown}");
}

#[test]
fn a_viewer_is_told_how_an_object_is_and_not_how_it_was() {
    let Some(plane) = Plane::start_with(&[]) else { return };
    plane.kubectl(&["create", "configmap", "c"]);
    plane.kubectl(&["create", "serviceaccount", "viewer"]);
    let who = "--serviceaccount=default:viewer";
    plane.kubectl(&["create", "rolebinding", "views", "--clusterrole=view", who]);
    let token = plane.kubectl(&["create", "token", "viewer"]).trim().to_owned();
    let told = plane.concert(&["explain", "configmap/c", "--token", &token]);
    assert!(told.starts_with("ConfigMap default/c "), "{told}");
    let history = "/api/v1/namespaces/default/configmaps/c/history";
    let refused = plane.refused(&[&format!("--token={token}"), "get", "--raw", history], "");
    assert!(refused.contains("orbidden"), "{refused}");
}

/// The line of a file of the audit trail that has all of these.
fn noted(plane: &Plane, file: &str, wanted: &Value) -> Value {
    eventually(&format!("a note of {wanted}"), || {
        let trail = std::fs::read_to_string(plane.data().join(file)).map_err(|it| it.to_string())?;
        let mut lines = trail.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let has_all =
            |line: &Value| wanted.as_object().unwrap().iter().all(|(name, it)| line.get(name) == Some(it));
        lines.find(has_all).ok_or(trail)
    })
}

#[test]
fn the_audit_trail_says_who_did_what_and_keeps_secrets() {
    let Some(plane) = Plane::start_with(&[]) else { return };
    plane.kubectl(&["create", "secret", "generic", "s", "--from-literal=password=open-sesame"]);
    plane.kubectl(&["create", "serviceaccount", "robot"]);
    let robot = plane.kubectl(&["create", "token", "robot"]).trim().to_owned();
    let path = "/api/v1/namespaces/default/secrets/s";
    plane.refused(&[&format!("--token={robot}"), "get", "--raw", path], "");
    plane.refused(&["--token=concert_made-up", "get", "--raw", path], "");

    let secret = json!({"resource": "secrets", "namespace": "default", "name": "s"});
    let about_in = |file: &str, more: Value| {
        let mut wanted = secret.clone();
        wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        noted(&plane, file, &wanted)
    };
    let about = |more: Value| about_in("audit.jsonl", more);
    let made = about(json!({"user": "admin", "verb": "create", "code": 201}));
    assert_eq!(made["from"], "127.0.0.1");
    assert!(made["time"].is_string() && made["tookMicros"].is_number(), "{made}");
    about(json!({"user": "system:serviceaccount:default:robot", "verb": "get", "code": 403}));
    let nobody = about_in("audit-strangers.jsonl", json!({"verb": "get", "code": 401}));
    assert!(nobody.get("user").is_none(), "{nobody}");

    let file = |name: &str| std::fs::read_to_string(plane.data().join(name)).unwrap();
    let trail = file("audit.jsonl") + &file("audit-strangers.jsonl");
    let admin = plane.kubectl(&["config", "view", "--raw", "-o", "jsonpath={.users[0].user.token}"]);
    // The value, and how it looks in an object.
    for secret in ["open-sesame", "b3Blbi1zZXNhbWU", &robot, &admin, "made-up"] {
        assert!(!secret.is_empty() && !trail.contains(secret), "{secret} is in {trail}");
    }
}
