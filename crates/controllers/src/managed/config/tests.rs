use concert_model::{GroupKind, GroupVersionKind};
use concert_provider::ConfigKind;
use concert_store::Delete;
use serde_json::{Value, json};

use super::*;
use crate::managed::connection::fixtures::{World, by, gvk, secret};
use crate::managed::vocabulary::config::{LABEL_CONFIG, LABEL_CONFIG_KIND};

fn legacy(kind: &str) -> GroupVersionKind {
    GroupKind::new("legacy.example.com", kind).at_version("v1")
}

fn served() -> Served {
    let config = |kind: &str| ConfigKind { kind: gvk(kind), usage: Some(gvk("ProviderConfigUsage")) };
    let configs = vec![config("ProviderConfig"), config("ClusterProviderConfig")];
    Served { configs, ..Served::new(gvk("Bucket")) }
}

fn served_outside() -> Served {
    let usage = Some(legacy("ProviderConfigUsage"));
    let configs = vec![ConfigKind { kind: legacy("ProviderConfig"), usage }];
    Served { configs, ..Served::new(gvk("ClusterBucket")) }
}

fn configurations(world: &World) -> Configurations {
    let environment = |name: &str| (name == "TOKEN").then(|| "from-env".to_owned());
    Configurations::new(world.store.clone(), world.clock.clone(), environment)
}

async fn config(world: &World, kind: &str, name: &str, credentials: Value) -> Object {
    world.object(kind, name, json!({"spec": {"credentials": credentials}})).await
}

async fn bucket(world: &World, reference: Value) -> Object {
    world.object("Bucket", "a", json!({"spec": {"providerConfigRef": reference}})).await
}

async fn usages(world: &World) -> Vec<Object> {
    world.list(gvk("ProviderConfigUsage").group_kind).await
}

fn bytes(configuration: Option<&Arc<Configuration>>) -> Option<String> {
    let bytes = configuration?.credentials.get(CREDENTIALS)?;
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

/// The credentials that a cluster-scoped configuration with this source gives.
async fn credentials(world: &World, source: Value) -> Result<Option<String>, ConfigError> {
    let name = format!("c{}", world.list(gvk("ClusterProviderConfig").group_kind).await.len());
    config(world, "ClusterProviderConfig", &name, source).await;
    let spec = json!({"spec": {"providerConfigRef": {"kind": "ClusterProviderConfig", "name": name}}});
    let object = world.object("Bucket", &name, spec).await;
    let found = configurations(world).of(&object, &served(), &by()).await?;
    Ok(bytes(found.as_ref()))
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_configurations_has_no_account() {
    let world = World::new().await;
    let object = bucket(&world, Value::Null).await;
    let served = Served::new(gvk("Bucket"));
    assert!(configurations(&world).of(&object, &served, &by()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_default_is_a_cluster_wide_configuration_called_default() {
    let world = World::new().await;
    let object = bucket(&world, Value::Null).await;
    let error = configurations(&world).of(&object, &served(), &by()).await.unwrap_err();
    let ConfigError::NotReady { message, waits } = error else { panic!("{error}") };
    assert_eq!(message, "cannot get configuration: ClusterProviderConfig.example.com default does not exist");
    let key = ObjectKey::cluster(gvk("ClusterProviderConfig").group_kind, "default");
    assert_eq!(waits, [Wait::existence_of(key)]);

    config(&world, "ClusterProviderConfig", "default", json!({"source": "None"})).await;
    let found = configurations(&world).of(&object, &served(), &by()).await.unwrap().unwrap();
    assert_eq!(found.name, "ClusterProviderConfig.example.com default");
    assert!(found.credentials.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_usage_says_who_uses_what_and_goes_with_its_object() {
    let world = World::new().await;
    config(&world, "ProviderConfig", "p", json!({"source": "None"})).await;
    let object = bucket(&world, json!({"kind": "ProviderConfig", "name": "p"})).await;
    configurations(&world).of(&object, &served(), &by()).await.unwrap().unwrap();
    let usages = usages(&world).await;
    let [usage] = &usages[..] else { panic!("{usages:?}") };
    assert_eq!((usage.name(), usage.namespace()), (&*object.uid().unwrap().0, "default"));
    let labels = usage.labels();
    assert_eq!((&*labels[LABEL_CONFIG], &*labels[LABEL_CONFIG_KIND]), ("p", "ProviderConfig"));
    let [owner] = &usage.owners()[..] else { panic!("one owner") };
    assert!(owner.is_controller() && owner.block_owner_deletion.is_none() && owner.name == "a");
    assert_eq!(usage.get("providerConfigRef"), &json!({"kind": "ProviderConfig", "name": "p"}));
    let resource = json!({"apiVersion": "example.com/v1", "kind": "Bucket", "name": "a"});
    assert_eq!(usage.get("resourceRef"), &resource);
    assert_eq!(usage.finalizers(), ["finalizer.providerconfigusage.crossplane.io"]);
}

#[tokio::test(start_paused = true)]
async fn objects_outside_of_namespaces_name_no_kind() {
    let world = World::new().await;
    let mut config = Object::new(&legacy("ProviderConfig"), "", "default");
    config.set("spec", json!({"credentials": {"source": "InjectedIdentity"}}));
    world.create(config.into_value()).await;
    let object = world.object("ClusterBucket", "a", json!({"spec": {}})).await;
    let found = configurations(&world).of(&object, &served_outside(), &by()).await.unwrap().unwrap();
    assert_eq!(found.name, "ProviderConfig.legacy.example.com default");
    let usages = world.list(legacy("ProviderConfigUsage").group_kind).await;
    assert_eq!(usages[0].labels().into_iter().collect::<Vec<_>>(), [(LABEL_CONFIG.into(), "default".into())]);
    assert_eq!(usages[0].get("providerConfigRef"), &json!({"name": "default"}));
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_names_half_is_invalid() {
    let world = World::new().await;
    for (index, (reference, text)) in [
        (json!({"name": "p"}), "spec.providerConfigRef.kind must not be empty"),
        (json!({"kind": "ProviderConfig"}), "spec.providerConfigRef.name must not be empty"),
        (
            json!({"kind": "Other", "name": "p"}),
            "spec.providerConfigRef.kind \"Other\" is not one of: ProviderConfig, ClusterProviderConfig",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let spec = json!({"spec": {"providerConfigRef": reference}});
        let object = world.object("Bucket", &format!("b{index}"), spec).await;
        let error = configurations(&world).of(&object, &served(), &by()).await.unwrap_err();
        assert!(matches!(&error, ConfigError::Invalid(it) if it == text), "{error}");
    }
    assert!(usages(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_usage_is_written_once_and_follows_the_reference() {
    let world = World::new().await;
    config(&world, "ProviderConfig", "p", json!({"source": "None"})).await;
    config(&world, "ProviderConfig", "q", json!({"source": "None"})).await;
    let mut object = bucket(&world, json!({"kind": "ProviderConfig", "name": "p"})).await;
    let configurations = configurations(&world);
    configurations.of(&object, &served(), &by()).await.unwrap();
    let first = usages(&world).await.remove(0);
    configurations.of(&object, &served(), &by()).await.unwrap();
    // One that remembers nothing reads, and writes nothing.
    self::configurations(&world).of(&object, &served(), &by()).await.unwrap();
    assert_eq!(usages(&world).await, std::slice::from_ref(&first));

    object.get_mut("spec")["providerConfigRef"]["name"] = json!("q");
    configurations.of(&object, &served(), &by()).await.unwrap();
    let second = usages(&world).await.remove(0);
    assert_eq!((second.uid(), &*second.labels()[LABEL_CONFIG]), (first.uid(), "q"));
    assert_eq!(second.get("providerConfigRef"), &json!({"kind": "ProviderConfig", "name": "q"}));

    // Whoever deletes it, it stays for as long as it is needed.
    world.store.delete(&second.key().unwrap(), &Delete::default(), &by()).await.unwrap();
    self::configurations(&world).of(&object, &served(), &by()).await.unwrap();
    assert_eq!(usages(&world).await.len(), 1);
    for _ in 0..2 {
        configurations.release(&object, &served(), &by()).await.unwrap();
        assert!(usages(&world).await.is_empty());
    }
    tokio::time::advance(USAGE_LIFE).await;
    configurations.of(&object, &served(), &by()).await.unwrap();
    assert_eq!(usages(&world).await.len(), 1);
    configurations.forget(&object.uid().unwrap());
    assert!(configurations.lock().usages.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_usage_that_lost_its_controller_gets_it_back() {
    let world = World::new().await;
    config(&world, "ProviderConfig", "p", json!({"source": "None"})).await;
    let object = bucket(&world, json!({"kind": "ProviderConfig", "name": "p"})).await;
    configurations(&world).of(&object, &served(), &by()).await.unwrap();
    let mut usage = usages(&world).await.remove(0);
    usage.set_metadata("ownerReferences", Value::Null);
    world.store.update(usage, &by()).await.unwrap();
    configurations(&world).of(&object, &served(), &by()).await.unwrap();
    assert_eq!(usages(&world).await[0].owners()[0].uid, object.uid().unwrap());
}

#[tokio::test(start_paused = true)]
async fn credentials_come_from_all_sources() {
    let world = World::new().await;
    world
        .create(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
            "data": {"key": "aHVudGVyMg=="}}),
        )
        .await;
    let secret_ref = json!({"name": "s", "namespace": "default", "key": "key"});
    let path = std::env::temp_dir().join(format!("concert-credentials-{}", std::process::id()));
    std::fs::write(&path, "from-file").unwrap();
    for (source, expected) in [
        (json!({"source": "None"}), None),
        (json!({"source": "InjectedIdentity"}), None),
        (json!({"source": "Secret", "secretRef": secret_ref}), Some("hunter2")),
        (json!({"source": "Environment", "env": {"name": "TOKEN"}}), Some("from-env")),
        (json!({"source": "Filesystem", "fs": {"path": path}}), Some("from-file")),
    ] {
        let found = credentials(&world, source.clone()).await.unwrap();
        assert_eq!(found.as_deref(), expected, "{source}");
    }
    std::fs::write(&path, vec![b'x'; 1024 * 1024 + 1]).unwrap();
    let error = credentials(&world, json!({"source": "Filesystem", "fs": {"path": path}})).await.unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert!(error.to_string().ends_with("it has more than 1048576 bytes"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_not_there_say_why() {
    let world = World::new().await;
    for (source, text) in [
        (json!({}), "source must not be empty"),
        (json!({"source": "Vault"}), "source \"Vault\" is not supported"),
        (json!({"source": "Secret"}), "secretRef.name must not be empty"),
        (json!({"source": "Environment", "env": {"name": "HOME"}}), "variable HOME is not set"),
        (json!({"source": "Filesystem", "fs": {"path": "/"}}), "cannot read /: it is not a file"),
    ] {
        let error = credentials(&world, source).await.unwrap_err();
        assert!(matches!(&error, ConfigError::Invalid(it) if it.ends_with(text)), "{error}");
    }
    let source = json!({"source": "Secret", "secretRef": {"name": "s", "namespace": "default", "key": "k"}});
    let error = credentials(&world, source.clone()).await.unwrap_err();
    let ConfigError::NotReady { waits, .. } = error else { panic!("{error}") };
    assert_eq!(waits, [Wait::existence_of(secret("s"))]);
    let empty =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}});
    let stored = world.create(empty).await;
    let error = credentials(&world, source).await.unwrap_err();
    let ConfigError::NotReady { waits, message } = error else { panic!("{error}") };
    assert_eq!((waits, message.ends_with("has no key \"k\"")), (vec![Wait::change_of(&stored)], true));
}

#[tokio::test(start_paused = true)]
async fn a_configuration_in_a_namespace_reaches_only_secrets_next_to_it() {
    let world = World::new().await;
    for (index, (source, text)) in [
        (
            json!({"source": "Secret", "secretRef": {"name": "s", "namespace": "kube-system", "key": "k"}}),
            "secretRef.namespace must be that of the configuration",
        ),
        (
            json!({"source": "Environment", "env": {"name": "TOKEN"}}),
            "only for cluster-scoped configurations",
        ),
        (json!({"source": "Filesystem", "fs": {"path": "/x"}}), "only for cluster-scoped configurations"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("p{index}");
        config(&world, "ProviderConfig", &name, source).await;
        let spec = json!({"spec": {"providerConfigRef": {"kind": "ProviderConfig", "name": name}}});
        let object = world.object("Bucket", &name, spec).await;
        let error = configurations(&world).of(&object, &served(), &by()).await.unwrap_err();
        assert!(matches!(&error, ConfigError::Invalid(it) if it.ends_with(text)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_configuration_is_read_once_a_minute_or_when_somebody_says_so() {
    let world = World::new().await;
    let source = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
            "data": {"key": value}})
    };
    world.create(source("MQ==")).await;
    let secret_ref = json!({"name": "s", "key": "key"});
    config(&world, "ProviderConfig", "p", json!({"source": "Secret", "secretRef": secret_ref})).await;
    let object = bucket(&world, json!({"kind": "ProviderConfig", "name": "p"})).await;
    let configurations = configurations(&world);
    let served = served();
    let read = || async { configurations.of(&object, &served, &by()).await.unwrap().unwrap() };
    let change = |value: &'static str| async {
        world.store.delete(&secret("s"), &Delete::default(), &by()).await.unwrap();
        world.create(source(value)).await;
    };

    let first = read().await;
    assert_eq!(read().await.fingerprint, first.fingerprint);
    assert_eq!(first.fingerprint.len(), 32);
    change("Mg==").await;
    assert_eq!(bytes(Some(&read().await)).as_deref(), Some("1"));
    tokio::time::advance(LIFE).await;
    let second = read().await;
    assert_eq!(bytes(Some(&second)).as_deref(), Some("2"));
    assert_ne!(second.fingerprint, first.fingerprint);

    change("Mw==").await;
    configurations.invalidate(&secret("s"));
    assert_eq!(bytes(Some(&read().await)).as_deref(), Some("3"));
    change("NA==").await;
    configurations.invalidate(&first.object.key().unwrap());
    assert_eq!(bytes(Some(&read().await)).as_deref(), Some("4"));
    change("NQ==").await;
    configurations.invalidate(&secret("another"));
    assert_eq!(bytes(Some(&read().await)).as_deref(), Some("4"));
}
