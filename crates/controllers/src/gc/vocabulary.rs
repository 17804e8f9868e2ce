//! Every word of the collectors that others read: one place to grep a bug report in.
#![allow(missing_docs, reason = "the names are the words")]

/// Names of controllers, and who their writes are by.
pub mod controller {
    pub const OWNERS: &str = "gc/owners";
    pub const NAMESPACES: &str = "gc/namespaces";
    pub const DEFINITIONS: &str = "gc/definitions";
    pub const NAMES: &str = "gc/names";
    pub const EVENTS: &str = "gc/events";
}

pub mod finalizer {
    /// Asks for dependents to be let go before the object goes.
    pub const ORPHAN: &str = "orphan";
    /// Asks for dependents to be deleted before the object goes.
    pub const FOREGROUND: &str = "foregroundDeletion";
    /// In `spec.finalizers` of a namespace: keeps it until it is empty.
    pub const NAMESPACE: &str = "kubernetes";
}

/// Conditions of a namespace that is being deleted.
pub mod namespace {
    pub const CONTENT_FAILURE: &str = "NamespaceDeletionContentFailure";
    pub const CONTENT_REMAINING: &str = "NamespaceContentRemaining";
    pub const FINALIZERS_REMAINING: &str = "NamespaceFinalizersRemaining";

    pub const DELETION_FAILED: &str = "ContentDeletionFailed";
    pub const DELETED: &str = "ContentDeleted";
    pub const SOME_REMAIN: &str = "SomeResourcesRemain";
    pub const REMOVED: &str = "ContentRemoved";
    pub const SOME_FINALIZERS: &str = "SomeFinalizersRemain";
    pub const NO_FINALIZERS: &str = "ContentHasNoFinalizers";
}

/// The condition of a definition that is being deleted.
pub mod definition {
    pub const TERMINATING: &str = "Terminating";

    pub const IN_PROGRESS: &str = "InstanceDeletionInProgress";
    pub const FAILED: &str = "InstanceDeletionFailed";
    pub const COMPLETED: &str = "InstanceDeletionCompleted";
}
