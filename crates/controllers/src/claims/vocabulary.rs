//! Every word of the claim controllers that others read: one place to grep a bug report in.
#![allow(missing_docs, reason = "the names are the words")]

/// Keeps a claim until its managed resource is let go.
pub const FINALIZER: &str = "finalizer.resourceclaim.crossplane.io";

/// Keeps a definition until nothing is bound by it.
pub const DEFINITION_FINALIZER: &str = "finalizer.claimdefinition.concert.dev";

pub mod annotation {
    pub const EXTERNAL_NAME: &str = "crossplane.io/external-name";
    /// `"true"` on a class that claims without a word about classes get.
    pub const DEFAULT_CLASS: &str = "resourceclass.crossplane.io/is-default-class";
    pub const FROM_NAMESPACE: &str = "from.propagate.crossplane.io/namespace";
    pub const FROM_NAME: &str = "from.propagate.crossplane.io/name";
    pub const FROM_UID: &str = "from.propagate.crossplane.io/uid";
    /// In front of the uid of a secret that may have this one's data; the value says where that is.
    pub const TO_PREFIX: &str = "to.propagate.crossplane.io/";
}

/// Where a claim or a managed resource stands with its other half.
pub mod phase {
    pub const UNBINDABLE: &str = "Unbindable";
    pub const UNBOUND: &str = "Unbound";
    pub const BOUND: &str = "Bound";
    pub const RELEASED: &str = "Released";
}

pub mod condition {
    pub const READY: &str = "Ready";
    pub const SYNCED: &str = "Synced";
}

/// Reasons of conditions of claims: whole sentences, as people and programs know them.
pub mod reason {
    pub const AVAILABLE: &str = "Resource is available for use";
    pub const CREATING: &str = "Resource is being created";
    pub const DELETING: &str = "Resource is being deleted";
    pub const BINDING: &str = "Managed claim is waiting for managed resource to become bindable";
    pub const SUCCESS: &str = "Successfully reconciled resource";
    pub const ERROR: &str = "Encountered an error during resource reconciliation";
}

/// Reasons of the condition `Ready` of a ClaimDefinition.
pub mod definition {
    pub const AVAILABLE: &str = "Available";
    pub const WAITING: &str = "WaitingForKinds";
    pub const INVALID: &str = "Invalid";
    pub const TAKEN: &str = "Taken";
    pub const DELETING: &str = "Deleting";
}

/// Reasons of events.
pub mod event {
    pub const CANNOT_GET_MANAGED: &str = "CannotGetManagedResource";
    pub const CANNOT_GET_CLASS: &str = "CannotGetResourceClass";
    pub const CANNOT_CONFIGURE: &str = "CannotConfigureManagedResource";
    pub const CANNOT_CREATE: &str = "CannotCreateManagedResource";
    pub const CANNOT_PROPAGATE: &str = "CannotPropagateConnectionDetails";
    pub const CANNOT_BIND: &str = "CannotBindManagedResource";
    pub const CANNOT_UNBIND: &str = "CannotUnbindManagedResource";
    pub const MANAGED_NOT_FOUND: &str = "ManagedResourceNotFound";
    pub const CREATED: &str = "CreatedManagedResource";
    pub const WAITING: &str = "WaitingToBind";
    pub const BOUND: &str = "BoundManagedResource";
    pub const UNBOUND: &str = "UnboundManagedResource";
    pub const SELECTED_CLASS: &str = "SelectedResourceClass";
    pub const DEFAULT_CLASS: &str = "DefaultResourceClass";
}

/// Sentences that people and programs look for.
pub mod message {
    pub const CANNOT_LIST_POLICIES: &str = "unable to list policies for claim kind";
    pub const NO_POLICY: &str = "unable to locate a policy that specifies a default class for claim kind";
    pub const MANY_POLICIES: &str = "multiple policies that specify a default class defined for claim kind";
    pub const BAD_POLICY: &str = "unable to convert located policy to correct kind";
    pub const NOT_OURS: &str = "cannot establish control of existing connection secret";
}
