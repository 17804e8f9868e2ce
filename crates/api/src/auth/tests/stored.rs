//! Tokens and roles in a store: what was taken away is gone at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use concert_model::{GroupKind, Object, ObjectKey};
use concert_store::backend::Memory;
use concert_store::conformance::HandClock;
use concert_store::{By, Chance, Config, Delete, Local, Query, Store};
use http::HeaderMap;
use serde_json::{Value, json};

use super::super::fixtures::*;
use super::super::index::GROUP;
use super::super::token::account_kind;
use super::super::*;

struct World {
    store: Local,
    clock: Arc<HandClock>,
    chance: Chance,
    gate: Gate,
}

fn by() -> By {
    By::actor("test")
}

impl World {
    fn new() -> Self {
        let (clock, chance) = (Arc::new(HandClock::new()), Chance::seeded(1));
        let store = Local::open(Arc::new(Memory::new()), Config::new(clock.clone(), chance.clone())).unwrap();
        let gate = Gate::guarded(store.clone(), clock.clone());
        Self { store, clock, chance, gate }
    }

    async fn put(&self, object: Value) {
        self.store.create(Object::from_value(object).unwrap(), &by()).await.unwrap();
    }

    async fn put_all(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            self.put(object).await;
        }
    }

    async fn delete(&self, key: &ObjectKey) {
        self.store.delete(key, &Delete::default(), &by()).await.unwrap();
    }

    async fn change(&self, key: &ObjectKey, change: impl FnOnce(&mut Object)) {
        let mut object = self.store.get(key).await.unwrap().decode();
        change(&mut object);
        self.store.update(object, &by()).await.unwrap();
    }

    async fn token(&self, user: &str, lifetime: Option<Duration>) -> Issued {
        let (clock, chance) = (&*self.clock, &self.chance);
        issue_for_user(&self.store, clock, chance, user, &["staff"], lifetime, &by()).await.unwrap()
    }

    async fn who(&self, token: &str) -> Result<User, Refusal> {
        self.gate.authenticate(&bearer(token)).await
    }

    async fn may(&self, user: &User, verb: &str, what: &str, place: &str) -> bool {
        match self.gate.authorise(user, &access(verb, what, place)).await {
            Ok(()) => true,
            Err(Refusal::Forbidden(_)) => false,
            Err(other) => panic!("{other:?}"),
        }
    }

    async fn bootstrap(&self) -> Option<Issued> {
        bootstrap(&self.store, &*self.clock, &self.chance).await.unwrap().first_token
    }
}

fn bearer(token: &str) -> HeaderMap {
    [(http::header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap())].into_iter().collect()
}

fn rbac(kind: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced(GroupKind::new(GROUP, kind), namespace, name)
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn is_unknown(result: &Result<User, Refusal>) -> bool {
    matches!(result, Err(Refusal::Unauthenticated(_)))
}

#[tokio::test]
async fn a_token_lets_in_until_it_expires_or_is_taken_away() {
    let world = World::new();
    let (lasting, brief) =
        (world.token("ann", None).await, world.token("bob", Some(Duration::from_secs(60))).await);
    let ann = world.who(&lasting.token).await.unwrap();
    assert_eq!((&*ann.name, &ann.groups[..]), ("ann", &["staff".into(), "system:authenticated".into()][..]));
    assert_eq!(&*world.who(&brief.token).await.unwrap().name, "bob");
    world.clock.advance(Duration::from_secs(60));
    assert!(is_unknown(&world.who(&brief.token).await));
    assert!(world.who(&lasting.token).await.is_ok());
    world.delete(&lasting.key).await;
    assert!(is_unknown(&world.who(&lasting.token).await));
    let stored = world.store.get(&brief.key).await.unwrap().to_json();
    assert!(!String::from_utf8(stored).unwrap().contains(&brief.token));
}

#[tokio::test]
async fn only_one_whole_bearer_token_is_a_token() {
    let world = World::new();
    let good = world.token("ann", None).await.token;
    let headers = |values: &[&str]| -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(http::header::AUTHORIZATION, value.parse().unwrap());
        }
        headers
    };
    for values in [
        &["Bearer"][..],
        &["Bearer "],
        &[&good],
        &[&format!("Basic {good}")],
        &[&format!("Bearer {good}x")],
        &[&format!("Bearer {}", &good[..good.len() - 1])],
        &[&format!("Bearer {} {good}", &good[..8])],
        &[&format!("Bearer {}", good.to_uppercase())],
        &[&format!("Bearer {}", "x".repeat(100_000))],
        &[&format!("Bearer {good}"), &format!("Bearer {good}")],
    ] {
        assert!(is_unknown(&world.gate.authenticate(&headers(values)).await), "{values:?}");
    }
    assert!(world.gate.authenticate(&headers(&[&format!("bearer  {good}")])).await.is_ok());
    assert_eq!(world.gate.authenticate(&HeaderMap::new()).await, Ok(User::anonymous()));
}

#[tokio::test]
async fn the_token_of_an_account_dies_with_that_account() {
    let world = World::new();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}});
    let key = ObjectKey::namespaced(account_kind(), "default", "robot");
    let hour = Duration::from_secs(3_600);
    let by = by();
    let issue = || issue(&world.store, &*world.clock, &world.chance, &key, hour, &by);
    assert!(matches!(issue().await, Err(TokenError::Store(concert_store::Error::NotFound { .. }))));
    world.put(account.clone()).await;
    let token = issue().await.unwrap();
    let robot = world.who(&token.token).await.unwrap();
    assert_eq!(&*robot.name, "system:serviceaccount:default:robot");
    assert!(robot.groups.contains(&"system:serviceaccounts:default".into()));
    world.delete(&key).await;
    assert!(is_unknown(&world.who(&token.token).await));
    world.put(account).await;
    assert!(is_unknown(&world.who(&token.token).await));
    let (again, expired) = (issue().await.unwrap(), world.token("bob", Some(Duration::from_secs(60))).await);
    assert!(world.who(&again.token).await.is_ok());
    // What is worth nothing is swept; what counts stays.
    world.clock.advance(Duration::from_secs(61));
    assert_eq!(sweep(&world.store, &*world.clock, &by).await.unwrap(), 2);
    assert!(world.store.get(&expired.key).await.is_err());
    assert!(world.who(&again.token).await.is_ok());
}

#[tokio::test]
async fn a_user_called_like_an_account_is_nobody() {
    let world = World::new();
    let forged = world.token("system:serviceaccount:default:robot", None).await;
    assert!(is_unknown(&world.who(&forged.token).await));
}

#[tokio::test]
async fn what_is_given_or_taken_counts_at_once() {
    let world = World::new();
    let ann = user("ann");
    let read = json!([rule(&["get"], "a.dev", &["buckets"])]);
    let may = || world.may(&ann, "get", "a.dev/buckets", "default/x");
    assert!(!may().await);
    world.put(binding("default/ann", "Role/reader", "User/ann")).await;
    assert!(!may().await);
    world.put(role("default/reader", read.clone())).await;
    assert!(may().await);
    // Whatever else is written in between.
    world.put(config_map("one")).await;
    assert!(may().await && !world.may(&ann, "update", "a.dev/buckets", "default/x").await);
    let (reader, binding_key) = (rbac("Role", "default", "reader"), rbac("RoleBinding", "default", "ann"));
    world.change(&reader, |role| role.set("rules", json!([rule(&["list"], "a.dev", &["buckets"])]))).await;
    assert!(!may().await);
    world.change(&reader, |role| role.set("rules", read.clone())).await;
    assert!(may().await);
    world.change(&binding_key, |binding| binding.set("subjects", json!([]))).await;
    assert!(!may().await);
    world.delete(&binding_key).await;
    world.put(binding("default/ann", "Role/reader", "User/ann")).await;
    assert!(may().await);
    world.delete(&reader).await;
    assert!(!may().await);
    world.put(role("default/reader", json!([rule(&["list"], "a.dev", &["buckets"])]))).await;
    assert!(!may().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gets_through_after_the_answer_to_a_revocation() {
    let world = World::new();
    world.put(role("reader", json!([rule(&["get"], "a.dev", &["buckets"])]))).await;
    // Odd while somebody may have been let in.
    let turn = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let asking = async {
        while !is_over.load(Ordering::SeqCst) {
            let before = turn.load(Ordering::SeqCst);
            let is_let = world.may(&user("ann"), "get", "a.dev/buckets", "default/x").await;
            let is_revoked = before.is_multiple_of(2) && turn.load(Ordering::SeqCst) == before;
            assert!(!(is_revoked && is_let), "let through in turn {before}");
            tokio::task::yield_now().await;
        }
    };
    let writing = async {
        for round in 0..100 {
            turn.fetch_add(1, Ordering::SeqCst);
            world.put(binding("default/ann", "ClusterRole/reader", "User/ann")).await;
            assert!(world.may(&user("ann"), "get", "a.dev/buckets", "default/x").await);
            world.put(config_map(&format!("c{round}"))).await;
            world.delete(&rbac("RoleBinding", "default", "ann")).await;
            turn.fetch_add(1, Ordering::SeqCst);
            world.put(config_map(&format!("d{round}"))).await;
        }
        is_over.store(true, Ordering::SeqCst);
    };
    tokio::join!(asking, writing);
}

#[tokio::test]
async fn the_nameless_reach_the_probes_and_nothing_else() {
    let world = World::new();
    world.bootstrap().await;
    world.put(binding("all", "ClusterRole/cluster-admin", "Group/system:unauthenticated")).await;
    let nobody = User::anonymous();
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(
            world.gate.authorise(&nobody, &Access::Path { verb: "get", path }).await,
            Ok(()),
            "{path}"
        );
    }
    for path in ["/", "/api", "/apis", "/openapi/v3", "/metrics", "/healthz/x"] {
        let refusal = world.gate.authorise(&nobody, &Access::Path { verb: "get", path }).await;
        assert!(matches!(refusal, Err(Refusal::Unauthenticated(_))), "{path}");
    }
    let write = world.gate.authorise(&nobody, &Access::Path { verb: "post", path: "/healthz" }).await;
    assert!(write.is_err());
    let read = world.gate.authorise(&nobody, &access("get", "/secrets", "default/x")).await;
    assert!(matches!(read, Err(Refusal::Unauthenticated(_))));
}

#[tokio::test]
async fn a_new_store_gets_roles_and_one_token() {
    let world = World::new();
    let first = world.bootstrap().await.unwrap();
    let admin = world.who(&first.token).await.unwrap();
    assert_eq!(&*admin.name, "admin");
    assert!(world.may(&admin, "delete", "a.dev/buckets", "default/x").await);
    assert!(world.bootstrap().await.is_none());
    let newest = world.store.newest().await.unwrap();
    assert!(world.bootstrap().await.is_none());
    assert_eq!(world.store.newest().await.unwrap(), newest);

    let discovery = rbac("ClusterRole", "", "system:discovery");
    let own = json!({"nonResourceURLs": ["/own"], "verbs": ["get"]});
    world.change(&discovery, |role| role.set("rules", json!([own]))).await;
    let basic = rbac("ClusterRole", "", "system:basic-user");
    world
        .change(&basic, |role| {
            role.set("rules", json!([]));
            role.set_annotation("rbac.authorization.kubernetes.io/autoupdate", "false");
        })
        .await;
    world.delete(&first.key).await;
    assert!(world.bootstrap().await.is_none());
    let rules = world.store.get(&discovery).await.unwrap().decode().get("rules").clone();
    assert_eq!((rules[0].clone(), rules.as_array().unwrap().len()), (own, 2));
    assert_eq!(world.store.get(&basic).await.unwrap().decode().get("rules"), &json!([]));
}

#[tokio::test]
async fn the_usual_roles_mean_what_they_mean_elsewhere() {
    let world = World::new();
    world.bootstrap().await;
    for role in ["view", "edit", "admin"] {
        world
            .put(binding(&format!("default/{role}"), &format!("ClusterRole/{role}"), &format!("User/{role}")))
            .await;
    }
    for (verb, what, place, allowed) in [
        ("get", "/configmaps", "default/x", "view edit admin"),
        ("get", "/configmaps", "other/x", ""),
        ("create", "/configmaps", "default/x", "edit admin"),
        ("get", "/secrets", "default/x", "edit admin"),
        ("create", "rbac.authorization.k8s.io/rolebindings", "default/x", "admin"),
        ("create", "rbac.authorization.k8s.io/clusterroles", "x", ""),
        ("create", "concert.dev/tokens", "x", ""),
        ("create", "authorization.k8s.io/selfsubjectaccessreviews", "", "view edit admin nobody"),
        ("create", "concert.dev/plan", "", "view edit admin nobody"),
        ("get", "a.dev/buckets", "default/x", ""),
    ] {
        for name in ["view", "edit", "admin", "nobody"] {
            let is_allowed = allowed.split(' ').any(|it| it == name);
            assert_eq!(
                world.may(&user(name), verb, what, place).await,
                is_allowed,
                "{name} {verb} {what} {place}"
            );
        }
    }
    // A kind brings its own part of the usual roles.
    let mut part = role("buckets-view", json!([rule(&["get"], "a.dev", &["buckets"])]));
    part["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    world.put(part).await;
    for name in ["view", "edit", "admin"] {
        assert!(world.may(&user(name), "get", "a.dev/buckets", "default/x").await, "{name}");
    }
    let discovery = Access::Path { verb: "get", path: "/apis/a.dev/v1" };
    assert!(world.gate.authorise(&user("nobody"), &discovery).await.is_ok());
    let rules = world.gate.rules(&user("view"), "default").await.unwrap();
    assert!(rules.iter().any(|rule| rule.resources == ["buckets"]));
}

#[tokio::test]
async fn nobody_gives_away_more_than_they_have() {
    let world = World::new();
    world.bootstrap().await;
    let read = json!([rule(&["get"], "a.dev", &["buckets"])]);
    let write = json!([rule(&["get", "update"], "a.dev", &["buckets"])]);
    world.put_all([
        role("reader", read.clone()),
        role("writer", write.clone()),
        role("binder", json!([{"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["writer"]}])),
        role("escalator", json!([rule(&["escalate"], GROUP, &["roles", "clusterroles"])])),
        binding("default/ann", "ClusterRole/reader", "User/ann"),
        binding("default/bob", "ClusterRole/binder", "User/bob"),
        binding("eve", "ClusterRole/escalator", "User/eve"),
        binding("root", "ClusterRole/cluster-admin", "User/root"),
    ])
    .await;
    let mut aggregating = role("all", json!([]));
    aggregating["aggregationRule"] = json!({"clusterRoleSelectors": [{}]});
    for (object, allowed) in [
        (role("default/mine", read.clone()), "ann eve root"),
        (role("default/mine", write.clone()), "eve root"),
        (role("other/mine", read.clone()), "eve root"),
        (role("mine", read.clone()), "eve root"),
        (role("mine", json!([rule(&["*"], "*", &["*"])])), "eve root"),
        (role("default/mine", json!("nonsense")), ""),
        (aggregating, "eve root"),
        (binding("default/one", "ClusterRole/reader", "User/x"), "ann root"),
        (binding("default/one", "ClusterRole/writer", "User/x"), "bob root"),
        (binding("one", "ClusterRole/writer", "User/x"), "root"),
        (binding("default/one", "ClusterRole/cluster-admin", "User/x"), "root"),
        (binding("default/one", "ClusterRole/none", "User/x"), "root"),
        (binding("default/one", "Role/none", "User/x"), "root"),
        (config_map("harmless"), "ann bob eve root"),
    ] {
        let object = Object::from_value(object).unwrap();
        for name in ["ann", "bob", "eve", "root"] {
            let is_allowed = allowed.split(' ').any(|it| it == name);
            let result = world.gate.check_write(&user(name), None, &object).await;
            assert_eq!(result.is_ok(), is_allowed, "{name} {:?} {result:?}", object.as_map());
        }
    }
    let object = Object::from_value(role("default/mine", write)).unwrap();
    let refusal = world.gate.check_write(&user("ann"), None, &object).await.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "roles.rbac.authorization.k8s.io \"mine\" is forbidden: user \"ann\" (groups=[\"system:authenticated\"]) \
         is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"a.dev\"], Resources:[\"buckets\"], Verbs:[\"update\"]}"
    );
}

#[tokio::test]
async fn a_change_that_gives_nothing_away_needs_nothing() {
    let world = World::new();
    let old = Object::from_value(role("strong", json!([rule(&["*"], "*", &["*"])]))).unwrap();
    let mut noted = old.clone();
    noted.set_annotation("note", "text");
    assert_eq!(world.gate.check_write(&user("ann"), Some(&old), &noted).await, Ok(()));
    let mut labelled = old.clone();
    labelled.set_label("rbac.authorization.k8s.io/aggregate-to-view", "true");
    assert!(world.gate.check_write(&user("ann"), Some(&old), &labelled).await.is_err());
    let old = Object::from_value(binding("one", "ClusterRole/strong", "User/bob")).unwrap();
    let mut noted = old.clone();
    noted.set_annotation("note", "text");
    assert_eq!(world.gate.check_write(&user("ann"), Some(&old), &noted).await, Ok(()));
    let mut widened = old.clone();
    widened.set("subjects", json!([{"kind": "User", "name": "ann"}]));
    assert!(world.gate.check_write(&user("ann"), Some(&old), &widened).await.is_err());
}

#[tokio::test]
async fn a_token_is_for_whom_its_writer_may_speak_for() {
    let world = World::new();
    let speak = |resource: &str, names: Value| json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": [resource], "resourceNames": names});
    world.put(namespace("ops")).await;
    world
        .put_all([
            role("speaker", json!([speak("users", json!(["bob"])), speak("groups", json!(["staff"]))])),
            role("accounts", json!([rule(&["impersonate"], "", &["serviceaccounts"])])),
            binding("ann", "ClusterRole/speaker", "User/ann"),
            binding("ops/ann", "ClusterRole/accounts", "User/ann"),
        ])
        .await;
    let account =
        |namespace: &str| json!({"serviceAccount": {"namespace": namespace, "name": "robot", "uid": "1"}});
    for (spec, is_allowed) in [
        (json!({"user": "bob"}), true),
        (json!({"user": "bob", "groups": ["staff"]}), true),
        (json!({"user": "bob", "groups": ["staff", "system:masters"]}), false),
        (json!({"user": "ann"}), false),
        (account("ops"), true),
        (account("default"), false),
    ] {
        let mut spec = spec;
        spec["sha256"] = json!("0".repeat(64));
        let token = json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Token", "metadata": {"name": "t"}, "spec": spec});
        let token = Object::from_value(token).unwrap();
        assert!(is_sensitive(&token.key().unwrap().kind));
        let result = world.gate.check_write(&user("ann"), None, &token).await;
        assert_eq!(result.is_ok(), is_allowed, "{spec} {result:?}");
    }
    assert_eq!(Gate::open().check_token(&user("ann"), "root", &["system:masters"]).await, Ok(()));
}

#[tokio::test]
async fn an_open_gate_is_open() {
    let gate = Gate::open();
    let developer = gate.authenticate(&HeaderMap::new()).await.unwrap();
    assert_eq!(gate.authorise(&developer, &access("delete", "/secrets", "default/x")).await, Ok(()));
    assert!(!gate.rules(&developer, "default").await.unwrap().is_empty());
}

#[tokio::test]
async fn tokens_are_listed_without_their_secret() {
    let world = World::new();
    let issued = world.token("ann", None).await;
    let page =
        world.store.list(&Query::all(token_kind()), &concert_store::PageRequest::whole()).await.unwrap();
    assert_eq!(page.items.len(), 1);
    assert!(!format!("{issued:?}").contains(&issued.token));
}
