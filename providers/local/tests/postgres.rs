//! Databases, in a real PostgreSQL server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod services;

use concert_model::Object;
use concert_provider::{Class, Effect, Enumerate, Lookup, Observation, PlanAction, Provider};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use services::{Cluster, EXTERNAL_NAME, Stage, account, call, object, token, with_fields};
use tempfile::TempDir;

/// A provider and a server for it.
struct Scene {
    cluster: Cluster,
    stage: Stage,
    folder: TempDir,
}

impl Scene {
    fn open() -> Option<Self> {
        let cluster = Cluster::start()?;
        let folder = tempfile::tempdir().unwrap();
        Some(Self { stage: Stage::open(folder.path()), cluster, folder })
    }

    async fn made(&self, mut object: Object) -> Object {
        let account = self.cluster.account();
        let created = self.stage.local.create(&object, Some(&account), &token(object.name()), &call()).await;
        object.set_annotation(EXTERNAL_NAME, &created.unwrap().delta.external_name.unwrap());
        object
    }

    async fn seen(&self, object: &Object) -> Observation {
        self.stage.local.observe(object, Some(&self.cluster.account())).await.unwrap()
    }

    async fn update(&self, object: &Object) -> Result<(), concert_provider::Error> {
        self.stage.local.update(object, Some(&self.cluster.account()), &call()).await.map(drop)
    }

    async fn delete(&self, object: &Object) -> Result<(), concert_provider::Error> {
        self.stage.local.delete(object, Some(&self.cluster.account()), &call()).await.map(drop)
    }

    async fn names(&self, sql: &str) -> Vec<String> {
        let rows = self.cluster.admin("postgres").await.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    async fn databases(&self) -> Vec<String> {
        self.names("SELECT datname::text FROM pg_database WHERE NOT datistemplate ORDER BY 1").await
    }

    async fn roles(&self) -> Vec<String> {
        self.names(
            "SELECT rolname::text FROM pg_roles WHERE NOT starts_with(rolname::text, 'pg_') ORDER BY 1",
        )
        .await
    }
}

fn database(fields: Value) -> Object {
    object("PostgreSQLDatabase", "orders", fields)
}

fn paths(seen: &Observation) -> Vec<&str> {
    seen.diff.iter().map(|it| it.path.as_str()).collect()
}

#[tokio::test]
async fn a_life_from_create_to_delete() {
    let Some(scene) = Scene::open() else { return };
    let account = scene.cluster.account();
    scene.stage.local.configure(&account).await.unwrap();
    let wanted = database(json!({"connectionLimit": 5}));
    assert!(!scene.seen(&wanted).await.exists);
    let plan = scene.stage.local.plan(&wanted, Some(&account)).await.unwrap();
    assert_eq!((plan.action, plan.changes.len()), (PlanAction::Create, 4));
    let object = scene.made(wanted).await;

    let found = scene.seen(&object).await;
    assert!(found.exists && found.is_up_to_date, "{:?}", found.diff);
    assert_eq!(found.delta.status.as_ref().unwrap()["conditions"][0]["status"], "True");
    let application = scene.cluster.application(&found.connection).await.unwrap();
    application.batch_execute("CREATE TABLE a (b int); INSERT INTO a VALUES (7)").await.unwrap();
    let row = application.query_one("SELECT b FROM a", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 7);

    let changed = with_fields(&object, json!({"connectionLimit": 9}));
    let plan = scene.stage.local.plan(&changed, Some(&account)).await.unwrap();
    assert_eq!(plan.action, PlanAction::Update);
    assert_eq!((plan.changes[0].from.clone(), plan.changes[0].to.clone()), (Some(json!(5)), Some(json!(9))));
    scene.update(&changed).await.unwrap();
    assert!(scene.seen(&changed).await.is_up_to_date);

    // The application is still connected.
    scene.delete(&changed).await.unwrap();
    scene.delete(&changed).await.unwrap();
    assert!(!scene.seen(&changed).await.exists);
    assert_eq!(
        (scene.databases().await, scene.roles().await),
        (vec!["postgres".to_owned()], vec!["postgres".to_owned()])
    );
}

#[tokio::test]
async fn drift_by_hand_is_seen_and_repaired() {
    let Some(scene) = Scene::open() else { return };
    let admin = scene.cluster.admin("postgres").await;
    admin.batch_execute("CREATE ROLE reporting; CREATE ROLE stranger").await.unwrap();
    let grants = json!([{"role": "reporting", "privileges": ["CONNECT"]}]);
    let object = scene.made(database(json!({"database": "shop", "grants": grants}))).await;
    let before = scene.seen(&object).await;
    assert!(before.is_up_to_date, "{:?}", before.diff);
    for (sql, path) in [
        ("ALTER ROLE shop CREATEDB", "role.CREATEDB"),
        ("ALTER ROLE shop SUPERUSER", "role.SUPERUSER"),
        ("ALTER ROLE shop NOLOGIN", "role.LOGIN"),
        ("ALTER DATABASE shop OWNER TO stranger", "database.owner"),
        ("ALTER DATABASE shop CONNECTION LIMIT 3", "spec.forProvider.connectionLimit"),
        ("GRANT CONNECT ON DATABASE shop TO PUBLIC", "spec.forProvider.grants"),
        ("GRANT CREATE ON DATABASE shop TO stranger", "spec.forProvider.grants"),
        ("REVOKE ALL ON DATABASE shop FROM reporting", "spec.forProvider.grants"),
        ("REVOKE CREATE ON DATABASE shop FROM shop", "spec.forProvider.grants"),
        ("ALTER ROLE shop PASSWORD 'stolen'", "connection.password"),
        ("DROP DATABASE shop WITH (FORCE)", "status.atProvider.state"),
    ] {
        admin.batch_execute(sql).await.unwrap();
        let drifted = scene.seen(&object).await;
        assert_eq!(paths(&drifted), [path], "{sql}");
        scene.update(&object).await.unwrap();
        let repaired = scene.seen(&object).await;
        assert!(repaired.is_up_to_date, "{sql}: {:?}", repaired.diff);
        assert_eq!(repaired.connection, before.connection);
        scene.cluster.application(&repaired.connection).await.unwrap();
    }
    assert!(scene.cluster.connect("stranger", "", "shop").await.is_err());
}

#[tokio::test]
async fn names_cannot_inject_sql() {
    let Some(scene) = Scene::open() else { return };
    let admin = scene.cluster.admin("postgres").await;
    admin.batch_execute("CREATE DATABASE victim").await.unwrap();
    let bad = r#"a"; DROP DATABASE victim; --'\$$"#;
    let role = r#"r'"; ALTER ROLE postgres NOLOGIN; --"#;
    admin.batch_execute(&format!("CREATE ROLE \"{}\"", r#"g"";--'"#)).await.unwrap();
    let grants = json!([{"role": r#"g";--'"#, "privileges": ["CONNECT", "TEMPORARY"]}]);
    let mut wanted = database(json!({"database": bad, "username": role, "grants": grants}));
    wanted.set_metadata("uid", json!(r#"u'; DROP DATABASE victim; --\"#));
    let object = scene.made(wanted).await;
    assert_eq!(object.annotation(EXTERNAL_NAME), Some(bad));
    let found = scene.seen(&object).await;
    assert!(found.is_up_to_date, "{:?}", found.diff);
    let application = scene.cluster.application(&found.connection).await.unwrap();
    let row =
        application.query_one("SELECT current_database()::text, current_user::text", &[]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), (bad, role));
    assert_eq!(scene.databases().await, [bad, "postgres", "victim"]);
    scene.delete(&object).await.unwrap();
    assert_eq!(scene.databases().await, ["postgres", "victim"]);
    assert!(!scene.roles().await.contains(&role.to_owned()));
}

#[tokio::test]
async fn no_password_is_in_the_servers_log() {
    let Some(scene) = Scene::open() else { return };
    let object = scene.made(database(json!({}))).await;
    let details = scene.seen(&object).await.connection;
    let password = String::from_utf8(details.get("password").unwrap().to_vec()).unwrap();
    let statements = scene.cluster.statements();
    assert!(statements.contains("CREATE ROLE") && !statements.contains(&password));
}

#[tokio::test]
async fn a_token_makes_one_database_and_a_burnt_one_none() {
    let Some(scene) = Scene::open() else { return };
    let account = scene.cluster.account();
    let object = database(json!({}));
    let create =
        async |text: &str| scene.stage.local.create(&object, Some(&account), &token(text), &call()).await;
    let first = create("t").await.unwrap().delta.external_name;
    assert_eq!(create("t").await.unwrap().delta.external_name, first);
    let lookup =
        async |text: &str| scene.stage.local.lookup(&object, Some(&account), &token(text)).await.unwrap();
    assert!(matches!(lookup("t").await, Lookup::Found(delta) if delta.external_name == first));
    assert_eq!(lookup("other").await, Lookup::CertainlyNone);
    assert_eq!(create("other").await.unwrap_err().effect, Effect::None);

    let mut gone = object.clone();
    gone.set_annotation(EXTERNAL_NAME, &first.unwrap());
    scene.delete(&gone).await.unwrap();
    assert_eq!(create("t").await.unwrap_err().effect, Effect::None, "a late create makes nothing again");
    assert_eq!(scene.databases().await, ["postgres"]);
}

#[tokio::test]
async fn what_a_crash_left_half_made_is_found_and_finished() {
    let Some(scene) = Scene::open() else { return };
    let object = scene.made(database(json!({"database": "half"}))).await;
    let details = scene.seen(&object).await.connection;
    // As it is after the first transaction.
    scene.cluster.admin("postgres").await.batch_execute("DROP DATABASE half WITH (FORCE)").await.unwrap();
    let account = scene.cluster.account();
    let found =
        scene.stage.local.lookup(&database(json!({})), Some(&account), &token("orders")).await.unwrap();
    assert!(matches!(found, Lookup::Found(delta) if delta.external_name.as_deref() == Some("half")));
    scene.update(&object).await.unwrap();
    let again = scene.seen(&object).await;
    assert!(again.is_up_to_date);
    assert_eq!(again.connection, details);
}

#[tokio::test]
async fn passwords_outlive_the_provider() {
    let Some(mut scene) = Scene::open() else { return };
    let object = scene.made(database(json!({}))).await;
    let before = scene.seen(&object).await.connection;
    scene.stage = Stage::open(scene.folder.path());
    let after = scene.seen(&object).await;
    assert!(after.is_up_to_date);
    assert_eq!(after.connection, before);
}

#[tokio::test]
async fn immutable_fields_ask_for_a_replacement() {
    let Some(scene) = Scene::open() else { return };
    let account = scene.cluster.account();
    let object = scene.made(database(json!({"database": "shop", "encoding": "LATIN1"}))).await;
    assert!(scene.seen(&object).await.is_up_to_date);
    for (field, value) in [("database", "other"), ("username", "other"), ("encoding", "UTF8")] {
        let moved = with_fields(&object, json!({ field: value }));
        let plan = scene.stage.local.plan(&moved, Some(&account)).await.unwrap();
        assert_eq!(plan.action, PlanAction::Replace, "{field}");
        let error = scene.update(&moved).await.unwrap_err();
        assert_eq!(error.class, Class::Terminal);
        assert_eq!(error.message, format!("spec.forProvider.{field}: cannot change in place"));
    }
}

#[tokio::test]
async fn what_was_made_by_hand_can_be_watched_and_taken_over() {
    let Some(scene) = Scene::open() else { return };
    let admin = scene.cluster.admin("postgres").await;
    admin.batch_execute("CREATE DATABASE old").await.unwrap();
    admin.batch_execute("CREATE ROLE taken").await.unwrap();
    for fields in [json!({"database": "old"}), json!({"database": "new", "username": "taken"})] {
        let account = scene.cluster.account();
        let error = scene
            .stage
            .local
            .create(&database(fields), Some(&account), &token("t"), &call())
            .await
            .unwrap_err();
        assert_eq!(error.effect, Effect::None);
        assert!(error.message.contains("exists already"), "{error}");
    }
    let mut object = database(json!({}));
    object.set_annotation(EXTERNAL_NAME, "old");
    let found = scene.seen(&object).await;
    assert!(found.exists && found.is_up_to_date, "{:?}", found.diff);
    assert_eq!(found.connection.get("username"), Some(b"postgres".as_slice()));
    assert!(found.connection.get("password").is_none());
    assert_eq!(scene.update(&object).await.unwrap_err().class, Class::NeedsHuman);
    assert_eq!(scene.delete(&object).await.unwrap_err().class, Class::NeedsHuman);

    object.set_annotation("local.concert.dev/take-over", "true");
    assert!(!scene.seen(&object).await.is_up_to_date);
    scene.update(&object).await.unwrap();
    object.remove_annotation("local.concert.dev/take-over");
    let found = scene.seen(&object).await;
    assert!(found.is_up_to_date, "{:?}", found.diff);
    scene.cluster.application(&found.connection).await.unwrap();

    let mut thief = services::object("PostgreSQLDatabase", "thief", json!({}));
    thief.set_annotation(EXTERNAL_NAME, "old");
    assert!(scene.seen(&thief).await.connection.get("password").is_none());
    assert_eq!(scene.delete(&thief).await.unwrap_err().class, Class::NeedsHuman);
    for reserved in ["postgres", "template1"] {
        thief.set_annotation(EXTERNAL_NAME, reserved);
        thief.set_annotation("local.concert.dev/take-over", "true");
        assert_eq!(scene.delete(&thief).await.unwrap_err().class, Class::Terminal);
    }
}

#[tokio::test]
async fn bad_accounts_are_refused_without_a_word_of_the_url() {
    let Some(scene) = Scene::open() else { return };
    let local = &scene.stage.local;
    for url in [
        "",
        "postgres://postgres:hunter2@db.example.com/postgres",
        "postgres://postgres:hunter2@127.0.0.1:notaport/postgres",
        &format!("postgres://postgres:hunter2@127.0.0.1:{}/postgres", scene.cluster.port),
    ] {
        let error = local.configure(&account(url)).await.unwrap_err();
        assert_eq!(error.class, Class::Denied, "{error}");
        assert!(!error.message.contains("hunter2"), "{error}");
    }
    scene.cluster.admin("postgres").await.batch_execute("CREATE ROLE weak LOGIN PASSWORD 'w'").await.unwrap();
    let weak = account(&format!("postgres://weak:w@127.0.0.1:{}/postgres", scene.cluster.port));
    assert!(local.configure(&weak).await.unwrap_err().message.contains("superuser"));
    let error = local.observe(&scene.made(database(json!({}))).await, None).await.unwrap_err();
    assert!(error.message.contains("spec.providerConfigRef"), "{error}");
    let nobody = account("postgres://postgres:x@127.0.0.1:1/postgres");
    assert_eq!(local.configure(&nobody).await.unwrap_err().class, Class::Transient);
}

#[tokio::test]
async fn databases_that_are_neither_ours_nor_the_servers_can_be_found() {
    let Some(scene) = Scene::open() else { return };
    let ours = scene.made(object("PostgreSQLDatabase", "ours", json!({}))).await;
    scene.cluster.admin("postgres").await.batch_execute("CREATE DATABASE legacy_shop").await.unwrap();
    let configuration = Some(scene.cluster.account());
    let kind = ours.gvk().unwrap();
    let what = Enumerate { kind, prefix: String::new(), configuration };
    let found: Vec<_> = scene.stage.local.enumerate(&what).await.unwrap().collect().await;
    let [Ok(found)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((found.external_name.as_str(), found.object.name()), ("legacy_shop", "legacy-shop"));
    let seen = scene.seen(&found.object).await;
    assert!(seen.exists && seen.connection.get("password").is_none());
}
