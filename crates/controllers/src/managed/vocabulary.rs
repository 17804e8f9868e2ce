//! Every word of the managed reconciler that others read: one place to grep a bug report in.
#![allow(missing_docs, reason = "the names are the words")]

/// Keeps an object until its external thing is gone.
pub const FINALIZER: &str = "finalizer.managedresource.crossplane.io";

pub mod annotation {
    pub const EXTERNAL_NAME: &str = "crossplane.io/external-name";
    pub const CREATE_PENDING: &str = "crossplane.io/external-create-pending";
    pub const CREATE_SUCCEEDED: &str = "crossplane.io/external-create-succeeded";
    pub const CREATE_FAILED: &str = "crossplane.io/external-create-failed";
    /// Names the create that is under way. Ours: goes with the answer, so that an open create is
    /// recognised whatever the clocks say.
    pub const CREATE_TOKEN: &str = "concert.dev/external-create-token";
    pub const PAUSED: &str = "crossplane.io/paused";
    pub const POLL_INTERVAL: &str = "crossplane.io/poll-interval";
    pub const RECONCILE_REQUESTED_AT: &str = "crossplane.io/reconcile-requested-at";
    pub const DELETE_WHILE_PAUSED: &str = "concert.dev/delete-while-paused";
}

pub mod connection {
    pub const SECRET_TYPE: &str = "connection.crossplane.io/v1alpha1";
}

pub mod config {
    /// Keeps a ProviderConfig while it is used.
    pub const FINALIZER: &str = "in-use.crossplane.io";
    pub const USAGE_FINALIZER: &str = "finalizer.providerconfigusage.crossplane.io";
    pub const LABEL_CONFIG: &str = "crossplane.io/provider-config";
    pub const LABEL_CONFIG_KIND: &str = "crossplane.io/provider-config-kind";
    pub const TERMINATING: &str = "Terminating";
    pub const IN_USE: &str = "InUse";
    pub const IN_USE_MESSAGE: &str = "Blocking deletion while usages still exist";
    pub const USAGE_ACCOUNTING: &str = "UsageAccounting";
}

pub mod condition {
    pub const READY: &str = "Ready";
    pub const SYNCED: &str = "Synced";
    pub const UP_TO_DATE: &str = "UpToDate";
}

pub mod reason {
    pub const CREATING: &str = "Creating";
    pub const DELETING: &str = "Deleting";
    pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
    pub const RECONCILE_ERROR: &str = "ReconcileError";
    pub const RECONCILE_PAUSED: &str = "ReconcilePaused";
    pub const OBSERVE_MATCHED: &str = "ObserveMatched";
    pub const UPDATE_REQUESTED: &str = "UpdateRequested";
    pub const UPDATE_RESTRICTED: &str = "UpdateRestricted";
    pub const UPDATE_FAILED: &str = "UpdateFailed";
}

/// Reasons of events.
pub mod event {
    pub const CREATED: &str = "CreatedExternalResource";
    pub const UPDATED: &str = "UpdatedExternalResource";
    pub const DELETED: &str = "DeletedExternalResource";
    pub const PENDING: &str = "PendingExternalResource";
    pub const PAUSED: &str = "ReconciliationPaused";
    pub const REQUEST_HANDLED: &str = "ReconcileRequestHandled";
    pub const CANNOT_CONNECT: &str = "CannotConnectToProvider";
    pub const CANNOT_DISCONNECT: &str = "CannotDisconnectFromProvider";
    pub const CANNOT_INITIALIZE: &str = "CannotInitializeManagedResource";
    pub const CANNOT_RESOLVE: &str = "CannotResolveResourceReferences";
    pub const CANNOT_OBSERVE: &str = "CannotObserveExternalResource";
    pub const CANNOT_CREATE: &str = "CannotCreateExternalResource";
    pub const CANNOT_UPDATE: &str = "CannotUpdateExternalResource";
    pub const CANNOT_DELETE: &str = "CannotDeleteExternalResource";
    pub const CANNOT_PUBLISH: &str = "CannotPublishConnectionDetails";
    pub const CANNOT_UPDATE_MANAGED: &str = "CannotUpdateManagedResource";
    pub const INVALID_POLICY: &str = "CannotUseInvalidManagementPolicy";
}

/// Sentences that people and programs look for.
pub mod message {
    pub const CREATED: &str = "Successfully requested creation of external resource";
    pub const UPDATED: &str = "Successfully requested update of external resource";
    pub const DELETED: &str = "Successfully requested deletion of external resource";
    pub const PENDING: &str = "Waiting for external resource existence to be confirmed";
    pub const CREATE_IN_DOUBT: &str = "cannot determine creation result - remove the crossplane.io/external-create-pending annotation if it is safe to proceed";
    pub const CREATE_OPEN: &str = "how an earlier create has ended is not known yet: the provider is asked before anything else is done";
    pub const ABSENT: &str = "external resource does not exist";
}

/// The manager of fields that references filled.
pub const REFERENCE_MANAGER: &str = "managed.crossplane.io/api-simple-reference-resolver";
