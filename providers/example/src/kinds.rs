//! The kinds that the provider serves, and what it says of them.

use std::time::Duration;

use concert_model::{GroupKind, GroupVersionKind};
use concert_provider::{ConfigKind, Reference, Served};
use serde_json::Value;

use crate::claimed::CLAIMED;

const VERSION: &str = "v1alpha1";
const EXAMPLE: &str = "example.crossplane.io";
const CLOUD: &str = "cloud.concert.dev";

/// The CustomResourceDefinitions of all kinds, as YAML, by file name.
pub const CRDS: &[(&str, &str)] = &[
    ("exampleresources.yaml", include_str!("../crds/exampleresources.yaml")),
    ("anotherresources.yaml", include_str!("../crds/anotherresources.yaml")),
    ("buckets.yaml", include_str!("../crds/buckets.yaml")),
    ("networks.yaml", include_str!("../crds/networks.yaml")),
    ("example-providerconfigs.yaml", include_str!("../crds/example-providerconfigs.yaml")),
    ("example-providerconfigusages.yaml", include_str!("../crds/example-providerconfigusages.yaml")),
    ("providerconfigs.yaml", include_str!("../crds/providerconfigs.yaml")),
    ("clusterproviderconfigs.yaml", include_str!("../crds/clusterproviderconfigs.yaml")),
    ("providerconfigusages.yaml", include_str!("../crds/providerconfigusages.yaml")),
];

/// One kind and what it is in the cloud.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    /// The cloud's word for it.
    pub(crate) thing: &'static str,
    pub(crate) has_deterministic_names: bool,
    pub(crate) manifest: &'static str,
}

const KINDS: &[Kind] = &[
    Kind {
        group: EXAMPLE,
        kind: "ExampleResource",
        thing: "example",
        has_deterministic_names: false,
        manifest: CRDS[0].1,
    },
    Kind {
        group: EXAMPLE,
        kind: "AnotherResource",
        thing: "another",
        has_deterministic_names: true,
        manifest: CRDS[1].1,
    },
    Kind {
        group: CLOUD,
        kind: "Bucket",
        thing: "bucket",
        has_deterministic_names: false,
        manifest: CRDS[2].1,
    },
    Kind {
        group: CLOUD,
        kind: "Network",
        thing: "network",
        has_deterministic_names: true,
        manifest: CRDS[3].1,
    },
];

impl Kind {
    /// The kind that an object is of, if it is served.
    pub(crate) fn of(kind: &GroupVersionKind) -> Option<&'static Self> {
        all().find(|it| it.gvk() == *kind)
    }

    /// The kind that a thing of the cloud is served as.
    pub(crate) fn of_thing(thing: &str) -> Option<&'static Self> {
        all().find(|it| it.thing == thing)
    }

    pub(crate) fn gvk(&self) -> GroupVersionKind {
        GroupKind::new(self.group, self.kind).at_version(VERSION)
    }

    fn served(&self, creation_grace: Option<Duration>) -> Served {
        Served {
            schema: schema(self.manifest),
            identity: vec!["metadata.annotations[crossplane.io/external-name]".to_owned()],
            immutable: vec!["spec.forProvider.region".to_owned()],
            sensitive: vec!["spec.forProvider.password".to_owned()],
            late_initialised: vec!["spec.forProvider.tier".to_owned()],
            references: self.references(),
            has_deterministic_names: self.has_deterministic_names,
            creation_grace,
            configs: self.configs(),
            ..Served::new(self.gvk())
        }
    }

    fn references(&self) -> Vec<Reference> {
        if self.kind != "Bucket" {
            return Vec::new();
        }
        vec![Reference {
            field: "spec.forProvider.networkId".to_owned(),
            reference_field: "spec.forProvider.networkIdRef".to_owned(),
            selector_field: "spec.forProvider.networkIdSelector".to_owned(),
            to: GroupKind::new(CLOUD, "Network").at_version(VERSION),
            extract: String::new(),
            is_many: false,
        }]
    }

    fn configs(&self) -> Vec<ConfigKind> {
        // Cluster-scoped kinds refer to a name alone, so there is one kind it can mean. Those of other clouds
        // are in the accounts of this one.
        let (group, kinds): (_, &[&str]) = match self.group {
            CLOUD => (CLOUD, &["ClusterProviderConfig", "ProviderConfig"]),
            _ => (EXAMPLE, &["ProviderConfig"]),
        };
        let of_group = |kind: &str| GroupKind::new(group, kind).at_version(VERSION);
        let config =
            |kind: &&str| ConfigKind { kind: of_group(kind), usage: Some(of_group("ProviderConfigUsage")) };
        kinds.iter().map(config).collect()
    }
}

fn all() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().chain(CLAIMED)
}

/// What the handshake says of every kind.
pub fn served(creation_grace: Option<Duration>) -> Vec<Served> {
    KINDS.iter().map(|kind| kind.served(creation_grace)).collect()
}

/// What it says of the kinds that claims are bound to.
pub fn claimed(creation_grace: Option<Duration>) -> Vec<Served> {
    CLAIMED.iter().map(|kind| kind.served(creation_grace)).collect()
}

fn schema(manifest: &str) -> Option<Value> {
    let definition: Value = serde_saphyr::from_str(manifest).ok()?;
    definition.pointer("/spec/versions/0/schema/openAPIV3Schema").cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_definition_that_fits_it() {
        for kind in all() {
            let manifest: Value = serde_saphyr::from_str(kind.manifest).unwrap();
            assert_eq!(manifest["spec"]["group"], kind.group);
            assert_eq!(manifest["spec"]["names"]["kind"], kind.kind);
            assert_eq!(manifest["spec"]["versions"][0]["subresources"]["status"], serde_json::json!({}));
            assert!(kind.served(None).schema.is_some(), "{}", kind.kind);
        }
    }

    #[test]
    fn every_file_is_a_definition_named_after_its_kind() {
        for (file, text) in CRDS {
            let manifest: Value = serde_saphyr::from_str(text).unwrap();
            let plural = file.trim_end_matches(".yaml").rsplit('-').next().unwrap();
            let group = manifest["spec"]["group"].as_str().unwrap();
            assert_eq!(manifest["metadata"]["name"], format!("{plural}.{group}"), "{file}");
        }
    }

    #[test]
    fn only_buckets_refer_to_networks() {
        let served = served(None);
        assert_eq!(served.iter().filter(|it| !it.references.is_empty()).count(), 1);
        assert_eq!(&*served[2].references[0].to.group_kind.kind, "Network");
    }
}
