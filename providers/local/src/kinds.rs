//! The kinds that the provider serves, and what it says of them.

use std::time::Duration;

use concert_model::{GroupKind, GroupVersionKind};
use concert_provider::{Capabilities, ConfigKind, Handshake, Protocol, Served};
use serde_json::Value;

const GROUP: &str = "local.concert.dev";
const VERSION: &str = "v1alpha1";

/// The CustomResourceDefinitions of all kinds, as YAML, by file name.
pub const CRDS: &[(&str, &str)] = &[
    ("redisinstances.yaml", include_str!("../crds/redisinstances.yaml")),
    ("redisinstanceclasses.yaml", include_str!("../crds/redisinstanceclasses.yaml")),
    ("postgresqldatabases.yaml", include_str!("../crds/postgresqldatabases.yaml")),
    ("postgresqldatabaseclasses.yaml", include_str!("../crds/postgresqldatabaseclasses.yaml")),
    ("providerconfigs.yaml", include_str!("../crds/providerconfigs.yaml")),
    ("providerconfigusages.yaml", include_str!("../crds/providerconfigusages.yaml")),
];

/// Servers on this machine are cheap to look at.
const POLL: Duration = Duration::from_secs(15);

pub(crate) fn redis_instance() -> GroupVersionKind {
    kind("RedisInstance")
}

pub(crate) fn postgresql_database() -> GroupVersionKind {
    kind("PostgreSQLDatabase")
}

fn kind(name: &str) -> GroupVersionKind {
    GroupKind::new(GROUP, name).at_version(VERSION)
}

pub(crate) fn redis_served() -> Served {
    served(redis_instance(), CRDS[0].1, &["port"])
}

pub(crate) fn postgresql_served() -> Served {
    let config = ConfigKind { kind: kind("ProviderConfig"), usage: Some(kind("ProviderConfigUsage")) };
    let immutable = ["database", "username", "encoding"];
    Served { configs: vec![config], ..served(postgresql_database(), CRDS[2].1, &immutable) }
}

fn served(kind: GroupVersionKind, manifest: &str, immutable: &[&str]) -> Served {
    Served {
        schema: schema(manifest),
        identity: vec!["metadata.annotations[crossplane.io/external-name]".to_owned()],
        immutable: immutable.iter().map(|field| format!("spec.forProvider.{field}")).collect(),
        poll: Some(POLL),
        // What was made is seen at once.
        creation_grace: Some(Duration::ZERO),
        ..Served::new(kind)
    }
}

fn schema(manifest: &str) -> Option<Value> {
    let definition: Value = serde_saphyr::from_str(manifest).ok()?;
    definition.pointer("/spec/versions/0/schema/openAPIV3Schema").cloned()
}

/// What a provider of these kinds says of itself.
pub(crate) fn handshake(kinds: Vec<Served>) -> Handshake {
    Handshake {
        protocol: Protocol::V1,
        name: "local".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: Capabilities {
            plan: true,
            lookup: true,
            watch: true,
            enumerate: true,
            configure: true,
        },
        kinds,
        refused: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_definition_named_after_its_kind() {
        for (file, text) in CRDS {
            let manifest: Value = serde_saphyr::from_str(text).unwrap();
            let plural = file.trim_end_matches(".yaml");
            assert_eq!(manifest["metadata"]["name"], format!("{plural}.{GROUP}"), "{file}");
            assert_eq!(manifest["spec"]["scope"], "Cluster", "{file}");
        }
    }

    #[test]
    fn what_is_served_has_a_schema_with_the_fields_it_speaks_of() {
        for served in [redis_served(), postgresql_served()] {
            let schema = served.schema.unwrap();
            for field in &served.immutable {
                let at = format!("/properties/{}", field.replace('.', "/properties/"));
                assert!(schema.pointer(&at).is_some(), "{field}");
            }
            let parts = &schema["properties"]["spec"]["properties"];
            for part in ["claimRef", "classRef", "providerRef", "reclaimPolicy", "writeConnectionSecretToRef"]
            {
                assert!(parts[part].is_object(), "{part}");
            }
        }
    }

    #[test]
    fn a_class_has_the_fields_of_what_it_is_a_template_of() {
        for at in [0, 2] {
            let fields = |text: &str, of: &str| {
                let schema = schema(text).unwrap();
                schema.pointer(&format!("/properties/{of}/properties/forProvider")).cloned().unwrap()
            };
            assert_eq!(fields(CRDS[at].1, "spec"), fields(CRDS[at + 1].1, "specTemplate"));
        }
    }
}
