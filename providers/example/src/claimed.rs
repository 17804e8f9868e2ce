//! Managed kinds of real clouds that portable claims are bound to, played by the simulated one.

use crate::kinds::Kind;

/// The CustomResourceDefinitions of these kinds, as YAML, by file name.
pub const CLAIMED_CRDS: &[(&str, &str)] = &[
    ("s3buckets.yaml", include_str!("../../../deploy/claims/managed/s3buckets.yaml")),
    ("gcpbuckets.yaml", include_str!("../../../deploy/claims/managed/gcpbuckets.yaml")),
    ("cloudsqlinstances.yaml", include_str!("../../../deploy/claims/managed/cloudsqlinstances.yaml")),
    (
        "cloudmemorystoreinstances.yaml",
        include_str!("../../../deploy/claims/managed/cloudmemorystoreinstances.yaml"),
    ),
    ("aksclusters.yaml", include_str!("../../../deploy/claims/managed/aksclusters.yaml")),
];

const fn kind(group: &'static str, kind: &'static str, thing: &'static str, manifest: &'static str) -> Kind {
    Kind { group, kind, thing, has_deterministic_names: true, manifest }
}

/// The kinds. Their names are known before they are made, as those of real clouds are.
pub(crate) const CLAIMED: &[Kind] = &[
    kind("storage.aws.crossplane.io", "S3Bucket", "s3bucket", CLAIMED_CRDS[0].1),
    kind("storage.gcp.crossplane.io", "Bucket", "gcsbucket", CLAIMED_CRDS[1].1),
    kind("database.gcp.crossplane.io", "CloudSQLInstance", "cloudsql", CLAIMED_CRDS[2].1),
    kind("cache.gcp.crossplane.io", "CloudMemorystoreInstance", "memorystore", CLAIMED_CRDS[3].1),
    kind("compute.azure.crossplane.io", "AKSCluster", "aks", CLAIMED_CRDS[4].1),
];
