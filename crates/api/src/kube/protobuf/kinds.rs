//! The fields of the kinds that clients write in protobuf, with their numbers: one flat table.

use Kind::{
    Bool, BytesMap, Ignored, Int, Json, Message, Messages, MicroTime, OptionalInt, OptionalText, Text,
    TextMap, Texts, Time,
};

/// One field of a message.
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// What a field holds.
pub(super) enum Kind {
    /// Left out if empty.
    Text,
    /// Empty is not absent.
    OptionalText,
    Texts,
    /// Left out if zero.
    Int,
    /// Zero is not absent.
    OptionalInt,
    Bool,
    Time,
    MicroTime,
    TextMap,
    BytesMap,
    Json,
    Message(&'static [Field]),
    Messages(&'static [Field]),
    /// Only the server's to set.
    Ignored,
}

const fn field(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind }
}

/// The fields of a kind; none if it is not written in protobuf here.
pub(super) fn find(api_version: &str, kind: &str) -> Option<&'static [Field]> {
    match (api_version, kind) {
        (_, "DeleteOptions") => Some(DELETE_OPTIONS),
        ("v1", "Namespace") => Some(NAMESPACE),
        ("v1", "ConfigMap") => Some(CONFIG_MAP),
        ("v1", "Secret") => Some(SECRET),
        ("v1", "ServiceAccount") => Some(SERVICE_ACCOUNT),
        ("v1", "Event") => Some(EVENT),
        ("coordination.k8s.io/v1", "Lease") => Some(LEASE),
        ("rbac.authorization.k8s.io/v1", "Role") => Some(ROLE),
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => Some(CLUSTER_ROLE),
        ("rbac.authorization.k8s.io/v1", "RoleBinding" | "ClusterRoleBinding") => Some(BINDING),
        ("authentication.k8s.io/v1", "SelfSubjectReview") => Some(SELF_REVIEW),
        ("authentication.k8s.io/v1", "TokenRequest") => Some(TOKEN_REQUEST),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview") => Some(ACCESS_REVIEW),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview") => Some(RULES_REVIEW),
        _ => None,
    }
}

const METADATA: Field = field(1, "metadata", Message(OBJECT_META));

const OBJECT_META: &[Field] = &[
    field(1, "name", Text),
    field(2, "generateName", Text),
    field(3, "namespace", Text),
    field(4, "selfLink", Text),
    field(5, "uid", Text),
    field(6, "resourceVersion", Text),
    field(7, "generation", Int),
    field(8, "creationTimestamp", Time),
    field(9, "deletionTimestamp", Time),
    field(10, "deletionGracePeriodSeconds", OptionalInt),
    field(11, "labels", TextMap),
    field(12, "annotations", TextMap),
    field(13, "ownerReferences", Messages(OWNER)),
    field(14, "finalizers", Texts),
    field(17, "managedFields", Messages(MANAGED)),
];

const OWNER: &[Field] = &[
    field(1, "kind", Text),
    field(3, "name", Text),
    field(4, "uid", Text),
    field(5, "apiVersion", Text),
    field(6, "controller", Bool),
    field(7, "blockOwnerDeletion", Bool),
];

const MANAGED: &[Field] = &[
    field(1, "manager", Text),
    field(2, "operation", Text),
    field(3, "apiVersion", Text),
    field(4, "time", Time),
    field(6, "fieldsType", Text),
    field(7, "fieldsV1", Json),
    field(8, "subresource", Text),
];

const NAMESPACE: &[Field] = &[
    METADATA,
    field(2, "spec", Message(&[field(1, "finalizers", Texts)])),
    field(3, "status", Message(&[field(1, "phase", Text), field(2, "conditions", Messages(CONDITION))])),
];

const CONDITION: &[Field] = &[
    field(1, "type", Text),
    field(2, "status", Text),
    field(4, "lastTransitionTime", Time),
    field(5, "reason", Text),
    field(6, "message", Text),
];

const CONFIG_MAP: &[Field] =
    &[METADATA, field(2, "data", TextMap), field(3, "binaryData", BytesMap), field(4, "immutable", Bool)];

const SECRET: &[Field] = &[
    METADATA,
    field(2, "data", BytesMap),
    field(3, "type", Text),
    field(4, "stringData", TextMap),
    field(5, "immutable", Bool),
];

const SERVICE_ACCOUNT: &[Field] = &[
    METADATA,
    field(2, "secrets", Messages(REFERENCE)),
    field(3, "imagePullSecrets", Messages(&[field(1, "name", Text)])),
    field(4, "automountServiceAccountToken", Bool),
];

const REFERENCE: &[Field] = &[
    field(1, "kind", Text),
    field(2, "namespace", Text),
    field(3, "name", Text),
    field(4, "uid", Text),
    field(5, "apiVersion", Text),
    field(6, "resourceVersion", Text),
    field(7, "fieldPath", Text),
];

const EVENT: &[Field] = &[
    METADATA,
    field(2, "involvedObject", Message(REFERENCE)),
    field(3, "reason", Text),
    field(4, "message", Text),
    field(5, "source", Message(&[field(1, "component", Text), field(2, "host", Text)])),
    field(6, "firstTimestamp", Time),
    field(7, "lastTimestamp", Time),
    field(8, "count", Int),
    field(9, "type", Text),
    field(10, "eventTime", MicroTime),
    field(11, "series", Message(&[field(1, "count", Int), field(2, "lastObservedTime", MicroTime)])),
    field(12, "action", Text),
    field(13, "related", Message(REFERENCE)),
    field(14, "reportingComponent", Text),
    field(15, "reportingInstance", Text),
];

const LEASE: &[Field] = &[
    METADATA,
    field(
        2,
        "spec",
        Message(&[
            field(1, "holderIdentity", OptionalText),
            field(2, "leaseDurationSeconds", OptionalInt),
            field(3, "acquireTime", MicroTime),
            field(4, "renewTime", MicroTime),
            field(5, "leaseTransitions", OptionalInt),
            field(6, "strategy", OptionalText),
            field(7, "preferredHolder", OptionalText),
        ]),
    ),
];

const RULE: &[Field] = &[
    field(1, "verbs", Texts),
    field(2, "apiGroups", Texts),
    field(3, "resources", Texts),
    field(4, "resourceNames", Texts),
    field(5, "nonResourceURLs", Texts),
];

const ROLE: &[Field] = &[METADATA, field(2, "rules", Messages(RULE))];

const CLUSTER_ROLE: &[Field] = &[
    METADATA,
    field(2, "rules", Messages(RULE)),
    field(3, "aggregationRule", Message(&[field(1, "clusterRoleSelectors", Messages(SELECTOR))])),
];

const SELECTOR: &[Field] = &[
    field(1, "matchLabels", TextMap),
    field(
        2,
        "matchExpressions",
        Messages(&[field(1, "key", Text), field(2, "operator", Text), field(3, "values", Texts)]),
    ),
];

const BINDING: &[Field] = &[
    METADATA,
    field(
        2,
        "subjects",
        Messages(&[
            field(1, "kind", Text),
            field(2, "apiGroup", Text),
            field(3, "name", Text),
            field(4, "namespace", Text),
        ]),
    ),
    field(
        3,
        "roleRef",
        Message(&[field(1, "apiGroup", Text), field(2, "kind", Text), field(3, "name", Text)]),
    ),
];

const SELF_REVIEW: &[Field] = &[METADATA, field(2, "status", Ignored)];

const ACCESS_REVIEW: &[Field] = &[
    METADATA,
    field(
        2,
        "spec",
        Message(&[
            field(1, "resourceAttributes", Message(RESOURCE)),
            field(2, "nonResourceAttributes", Message(&[field(1, "path", Text), field(2, "verb", Text)])),
        ]),
    ),
    field(3, "status", Ignored),
];

/// Selectors narrow a question whose answer does not depend on them here.
const RESOURCE: &[Field] = &[
    field(1, "namespace", Text),
    field(2, "verb", Text),
    field(3, "group", Text),
    field(4, "version", Text),
    field(5, "resource", Text),
    field(6, "subresource", Text),
    field(7, "name", Text),
    field(8, "fieldSelector", Ignored),
    field(9, "labelSelector", Ignored),
];

const RULES_REVIEW: &[Field] =
    &[METADATA, field(2, "spec", Message(&[field(1, "namespace", Text)])), field(3, "status", Ignored)];

const TOKEN_REQUEST: &[Field] = &[
    METADATA,
    field(
        2,
        "spec",
        Message(&[
            field(1, "audiences", Texts),
            field(3, "boundObjectRef", Message(BOUND)),
            field(4, "expirationSeconds", OptionalInt),
        ]),
    ),
    field(3, "status", Ignored),
];

const BOUND: &[Field] =
    &[field(1, "kind", Text), field(2, "apiVersion", Text), field(3, "name", Text), field(4, "uid", Text)];

const DELETE_OPTIONS: &[Field] = &[
    field(1, "gracePeriodSeconds", OptionalInt),
    field(
        2,
        "preconditions",
        Message(&[field(1, "uid", OptionalText), field(2, "resourceVersion", OptionalText)]),
    ),
    field(3, "orphanDependents", Bool),
    field(4, "propagationPolicy", OptionalText),
    field(5, "dryRun", Texts),
];
