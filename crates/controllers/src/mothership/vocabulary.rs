//! The words that are told: states, reasons, conditions.

/// What the finalizers begin with that hold an entry until each reconciler that has worked on it says that
/// it is done.
pub const FINALIZERS: &str = "mothership.concert.dev/";
/// Annotation of an entry: a new value asks all reconcilers for a run.
pub const RECONCILE_AT: &str = "mothership.concert.dev/reconcile-at";

/// The controller that starts and stops those of component reconcilers.
pub const CONTROLLER: &str = "mothership";
/// The controller that makes one status of many.
pub const ENTRIES: &str = "mothership/entries";
/// Rows of work state in which claims of items are counted.
pub const LEASES: &str = "mothership/leases";
/// What is told of a lease that ran out.
pub const LEASE_EXPIRED: &str = "lease expired";

/// What the controller of a component reconciler is called.
pub fn controller_of(reconciler: &str) -> String {
    format!("{CONTROLLER}/items/{reconciler}")
}

/// The finalizer of a reconciler. It is written before the reconciler first gets the entry: an entry that
/// can be given one is there and not on its way out.
pub fn finalizer_of(reconciler: &str) -> String {
    format!("{FINALIZERS}{reconciler}")
}

/// Types of conditions.
pub mod condition {
    /// It is as it should be.
    pub const READY: &str = "Ready";
    /// What it needs of others is there.
    pub const DEPENDENCIES_READY: &str = "DependenciesReady";
}

/// Why an item or an entry is in its state.
pub mod reason {
    /// Nobody has worked on it yet.
    pub const PENDING: &str = "Pending";
    /// The last run ended well.
    pub const RECONCILED: &str = "Reconciled";
    /// It goes on later.
    pub const IN_PROGRESS: &str = "InProgress";
    /// Something that it needs is not there yet.
    pub const DEPENDENCIES_MISSING: &str = "DependenciesMissing";
    /// The last run failed and is tried again.
    pub const RECONCILE_ERROR: &str = "ReconcileError";
    /// The last run failed for good.
    pub const TERMINAL_ERROR: &str = "TerminalError";
    /// The target cluster does not answer.
    pub const UNREACHABLE: &str = "Unreachable";
    /// The host was not heard of in time.
    pub const LEASE_EXPIRED: &str = "LeaseExpired";
    /// The entry is paused.
    pub const PAUSED: &str = "Paused";
    /// Somebody stopped it.
    pub const STOPPED: &str = "Stopped";
    /// The entry is to go.
    pub const DELETING: &str = "Deleting";
    /// No reconciler handles entries of its kind.
    pub const NO_RECONCILERS: &str = "NoReconcilers";
}

/// Why an item comes back, and whether that is meant to be.
pub mod requeue {
    /// It is time for a look.
    pub const RESYNC: (&str, bool) = ("resync", true);
    /// Its reconciler asked for it.
    pub const REQUEUE: (&str, bool) = ("requeue", true);
    /// It waits for something.
    pub const NOT_READY: (&str, bool) = ("not_ready", true);
    /// It wanted to wait for something that has changed since.
    pub const STALE: (&str, bool) = ("stale", true);
    /// It failed.
    pub const TRANSIENT: (&str, bool) = ("transient", false);
    /// Its target does not answer.
    pub const UNREACHABLE: (&str, bool) = ("unreachable", false);
    /// Its host was not heard of.
    pub const LEASE_EXPIRED: (&str, bool) = ("lease_expired", false);
    /// It failed for good: comes back when something changes.
    pub const TERMINAL: (&str, bool) = ("terminal", false);

    /// All of them.
    pub const ALL: [(&str, bool); 8] =
        [RESYNC, REQUEUE, NOT_READY, STALE, TRANSIENT, UNREACHABLE, LEASE_EXPIRED, TERMINAL];
}
