//! Which configuration an object refers to.

use concert_model::{GroupVersionKind, Object, ObjectKey};
use concert_provider::{ConfigKind, Served};
use concert_store::Store;
use serde_json::Value;

use super::ConfigError;

/// The configuration that an object refers to.
#[derive(Debug)]
pub(super) struct Target {
    pub key: ObjectKey,
    pub usage: Option<GroupVersionKind>,
    /// As upstream's objects in namespaces refer: by kind and name.
    pub is_modern: bool,
}

const CLUSTER_CONFIG: &str = "ClusterProviderConfig";
const CONFIG: &str = "ProviderConfig";
const DEFAULT_NAME: &str = "default";

/// Finds out which configuration is meant; that it exists is for the caller to see.
pub(super) async fn target(
    store: &dyn Store,
    object: &Object,
    served: &Served,
) -> Result<Target, ConfigError> {
    let is_modern = !object.namespace().is_empty();
    let given = |field: &str| object.spec().get(field).filter(|it| !it.is_null());
    // What classes made before there were ProviderConfigs is called `providerRef`.
    let reference = given("providerConfigRef").or_else(|| given("providerRef"));
    let required = |field: &str| match reference {
        None => Ok(None),
        Some(reference) => match reference.get(field).and_then(Value::as_str).unwrap_or_default() {
            "" => Err(ConfigError::Invalid(format!("spec.providerConfigRef.{field} must not be empty"))),
            text => Ok(Some(text)),
        },
    };
    let name = required("name")?.unwrap_or(DEFAULT_NAME);
    let config = if is_modern {
        by_kind(served, required("kind")?.unwrap_or(CLUSTER_CONFIG))?
    } else {
        cluster_scoped(store, served).await?
    };
    let kind = config.kind.group_kind.clone();
    let key = match store.kind(&kind).await?.is_namespaced {
        true => ObjectKey::namespaced(kind, object.namespace(), name),
        false => ObjectKey::cluster(kind, name),
    };
    Ok(Target { key, usage: config.usage.clone(), is_modern })
}

fn by_kind<'a>(served: &'a Served, kind: &str) -> Result<&'a ConfigKind, ConfigError> {
    let found = served.configs.iter().find(|it| *it.kind.group_kind.kind == *kind);
    found.ok_or_else(|| {
        let known: Vec<&str> = served.configs.iter().map(|it| &*it.kind.group_kind.kind).collect();
        let known = known.join(", ");
        ConfigError::Invalid(format!("spec.providerConfigRef.kind {kind:?} is not one of: {known}"))
    })
}

/// The configuration of objects outside of namespaces, which name no kind.
async fn cluster_scoped<'a>(store: &dyn Store, served: &'a Served) -> Result<&'a ConfigKind, ConfigError> {
    let mut found = None;
    for config in &served.configs {
        if store.kind(&config.kind.group_kind).await?.is_namespaced {
            continue;
        }
        if *config.kind.group_kind.kind == *CONFIG {
            return Ok(config);
        }
        found = found.or(Some(config));
    }
    let kind = &served.kind;
    found.ok_or_else(|| ConfigError::Invalid(format!("{kind} declares no cluster-scoped configuration")))
}
