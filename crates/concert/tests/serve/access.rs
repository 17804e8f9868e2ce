//! Who may do what, when authentication is on.

use serde_json::json;

use crate::plane::Plane;

#[test]
fn in_development_everybody_is_the_administrator() {
    let Some(plane) = Plane::start() else { return };
    assert!(plane.kubectl(&["auth", "whoami"]).contains("system:masters"));
    assert_eq!(plane.kubectl(&["auth", "can-i", "delete", "secrets"]), "yes\n");
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
