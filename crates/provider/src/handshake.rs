//! What a provider says of itself before anything else.

use std::time::Duration;

use concert_model::GroupVersionKind;
use serde_json::Value;

/// A provider's word on itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Handshake {
    /// What it speaks.
    pub protocol: Protocol,
    /// Its own name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// What it can do beyond observe, create, update and delete.
    pub capabilities: Capabilities,
    /// The kinds it serves.
    pub kinds: Vec<Served>,
    /// Kinds that it names in a way that makes no sense, each in a sentence that says what is wrong. They are
    /// not among `kinds`. A provider leaves this empty: it is for those who ask.
    pub refused: Vec<String>,
}

/// The protocols there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `external.proto.v1alpha1`.
    V1Alpha1,
    /// `concert.provider.v1`.
    V1,
}

/// What a provider can do beyond the four verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Tells what it would do.
    pub plan: bool,
    /// Finds what a create left behind by its token.
    pub lookup: bool,
    /// Pushes external changes.
    pub watch: bool,
    /// Lists external things that nobody manages.
    pub enumerate: bool,
    /// Wants credentials from us rather than fetching them itself.
    pub configure: bool,
}

/// One kind, as a provider serves it. A hint here beats our default; an explicit flag beats both.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// Which kind.
    pub kind: GroupVersionKind,
    /// Its structural schema, where the provider brings it.
    pub schema: Option<Value>,
    /// Fields that identify the external thing.
    pub identity: Vec<String>,
    /// Fields that cannot change without a replacement.
    pub immutable: Vec<String>,
    /// Fields whose values must not be shown.
    pub sensitive: Vec<String>,
    /// Fields the provider may fill in.
    pub late_initialised: Vec<String>,
    /// Fields that are filled from other objects.
    pub references: Vec<Reference>,
    /// Whether the external name is known before the create, so that a repeated create cannot make two.
    pub has_deterministic_names: bool,
    /// The policy sets it supports; none for the standard list.
    pub policies: Option<Vec<Vec<Action>>>,
    /// Most reconciles at a time.
    pub concurrency: Option<usize>,
    /// How often to look when nothing changes.
    pub poll: Option<Duration>,
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// How long a new external thing may stay invisible.
    pub creation_grace: Option<Duration>,
    /// Kinds whose objects trigger the owner they name.
    pub owns: Vec<GroupVersionKind>,
    /// Kinds, or single objects, whose changes trigger the objects that refer to them.
    pub watches: Vec<WatchedKind>,
    /// The kinds of configuration that objects of this kind may refer to.
    pub configs: Vec<ConfigKind>,
}

impl Served {
    /// A kind about which nothing more is said.
    pub fn new(kind: GroupVersionKind) -> Self {
        Self {
            kind,
            schema: None,
            identity: Vec::new(),
            immutable: Vec::new(),
            sensitive: Vec::new(),
            late_initialised: Vec::new(),
            references: Vec::new(),
            has_deterministic_names: false,
            policies: None,
            concurrency: None,
            poll: None,
            timeout: None,
            creation_grace: None,
            owns: Vec::new(),
            watches: Vec::new(),
            configs: Vec::new(),
        }
    }
}

/// One action of a management policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// `Observe`.
    Observe,
    /// `Create`.
    Create,
    /// `Update`.
    Update,
    /// `Delete`.
    Delete,
    /// `LateInitialize`.
    LateInitialize,
    /// `*`.
    All,
}

/// A field that is filled from another object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The field to fill, as in `spec.forProvider.vpcId`. A list where `is_many`.
    pub field: String,
    /// The field that holds the reference (`{name, namespace?, policy?}`, or a list of them).
    pub reference_field: String,
    /// The field that holds the selector (`{matchLabels, matchControllerRef, policy?}`).
    pub selector_field: String,
    /// What is referred to.
    pub to: GroupVersionKind,
    /// What to take from it, as in `status.atProvider.arn`; empty for its external name.
    pub extract: String,
    /// Whether the field is a list.
    pub is_many: bool,
}

/// A kind, or one object, whose changes matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedKind {
    /// Which kind.
    pub kind: GroupVersionKind,
    /// Only this name; any if empty.
    pub name: String,
    /// Only in this namespace; any if empty.
    pub namespace: String,
}

/// A kind of configuration and, where usage is counted, the kind that counts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigKind {
    /// `ProviderConfig` or `ClusterProviderConfig`.
    pub kind: GroupVersionKind,
    /// `ProviderConfigUsage`.
    pub usage: Option<GroupVersionKind>,
}
