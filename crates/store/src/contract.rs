//! The `Store` contract: the narrow waist that everything hangs on.
//!
//! Objects with Kubernetes' semantics. Each sentence under *Guarantees* is a named case of the
//! conformance suite, which every implementation passes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use concert_model::{
    Encoded, FieldSelector, GroupKind, LabelSelector, Object, ObjectKey, Patch, ResourceVersion, Uid,
};
use futures_core::Stream;

use crate::error::Error;
use crate::kind::Kind;
use crate::unknown::{UnknownFields, Warnings};

/// What every call answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Objects that are declared, kept and watched.
///
/// # Guarantees
/// - Identity is (group, kind, namespace, name); versions are views of the same object.
/// - A write that changes nothing does nothing: no new resource version, no event.
/// - What a call returned is visible to every later call on the same store.
/// - A call that fails changed nothing, save [`Error::Unavailable`], which leaves that open.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The object as it is now.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::UnknownKind`].
    async fn get(&self, key: &ObjectKey) -> Result<Encoded>;

    /// The objects of one kind, in the order of namespace and name, as of one moment.
    ///
    /// # Guarantees
    /// - [`Page::position`] is the moment the whole list was read at; a watch from there misses nothing
    ///   and repeats nothing.
    /// - All pages of one list show the same moment, whatever is written in between.
    ///
    /// # Errors
    /// [`Error::Expired`] when the moment of a continued list is compacted; [`Error::Invalid`] for a
    /// token that was not given out, or a field the kind cannot be selected by.
    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page>;

    /// Every later change to the objects of one kind.
    ///
    /// # Guarantees
    /// - Changes come in the order they were made; none is missing, repeated or out of order.
    /// - An object that starts or stops matching the selectors appears as added or deleted.
    /// - A deleted event carries the object's final state.
    /// - Without a position the current objects come first as added events, then a bookmark with
    ///   [`Event::Bookmark::is_initial_end`] set, then the changes.
    ///
    /// # Errors
    /// [`Error::Expired`], at once or later in the stream, when the position is compacted or the reader
    /// is too slow: list again. [`Error::Invalid`] for a position that lies in the future.
    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events>;

    /// Makes a new object.
    ///
    /// # Guarantees
    /// - Sets uid, creation time and generation 1; drops `status` where the kind has a status
    ///   subresource; makes up a name where only `generateName` is given.
    /// - Applies defaults, prunes what the schema does not know as [`By::unknown_fields`] says, validates.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`], [`Error::Invalid`], [`Error::Unknown`], [`Error::NotFound`] naming the namespace that is
    /// missing, [`Error::Forbidden`] for a namespace that is being deleted.
    async fn create(&self, object: Object, by: &By) -> Result<Encoded>;

    /// Replaces everything but `status`.
    ///
    /// # Guarantees
    /// - Written only if `metadata.resourceVersion` is still the stored one.
    /// - Raises `generation` exactly when anything but metadata and status changed, and then by one;
    ///   where the kind has no status subresource, status counts as well.
    /// - The last finalizer taken from an object that is being deleted removes it.
    ///
    /// # Errors
    /// [`Error::Conflict`] when someone wrote first: read again and decide again; do not resend.
    /// [`Error::Invalid`] without a resource version, or for a change of what cannot change.
    async fn update(&self, object: Object, by: &By) -> Result<Encoded>;

    /// Replaces `status` and nothing else.
    ///
    /// # Guarantees
    /// Never changes spec, metadata or generation.
    ///
    /// # Errors
    /// As [`Store::update`]; [`Error::Invalid`] where the kind has no status subresource.
    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded>;

    /// Applies `patch` to what is stored at the moment of writing.
    ///
    /// # Guarantees
    /// - As [`Store::update`] or, for [`Part::Status`], [`Store::update_status`].
    /// - Repeated against a fresh read a bounded number of times when others write, unless the patch
    ///   names a resource version.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a patch that does not fit or whose result is invalid; [`Error::Conflict`].
    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded>;

    /// Asks for an object to go.
    ///
    /// # Guarantees
    /// - Without finalizers it is gone at once; with finalizers it gets a deletion time and its
    ///   generation rises by one, once.
    /// - [`Propagation::Foreground`] and [`Propagation::Orphan`] leave a finalizer for the collector.
    ///   What is asked for again replaces what was, as long as the object is there.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] when a precondition does not hold.
    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted>;

    /// How a kind is served.
    ///
    /// # Errors
    /// [`Error::UnknownKind`].
    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>>;
}

/// Who writes, why, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct By {
    /// The user or controller: `managed/bucket.example.com`.
    pub actor: Arc<str>,
    /// One word or sentence for the audit trail.
    pub reason: Arc<str>,
    /// The field manager, for ownership of fields.
    pub manager: Arc<str>,
    /// Do everything but the write: the answer is what would have been stored.
    pub is_dry_run: bool,
    /// Write only while this claim on an item is the newest (own stores only).
    pub fence: Option<Fence>,
    /// What becomes of fields that the schema does not know.
    pub unknown_fields: UnknownFields,
    /// Where to leave what the author should hear although the write succeeded.
    pub warnings: Warnings,
    /// What a namespace waits for (`spec.finalizers`) stays, whatever the write says (own stores only;
    /// Kubernetes decides by the path).
    pub keeps_namespaces: bool,
}

impl By {
    /// A write by `actor`.
    pub fn actor(actor: impl Into<Arc<str>>) -> Self {
        Self { actor: actor.into(), ..Self::default() }
    }

    /// The same, for this reason.
    pub fn because(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.reason = reason.into();
        self
    }

    /// The same, without writing.
    pub fn dry_run(mut self) -> Self {
        self.is_dry_run = true;
        self
    }

    /// The same, with this fate for unknown fields.
    pub fn with_unknown(mut self, unknown_fields: UnknownFields) -> Self {
        self.unknown_fields = unknown_fields;
        self
    }

    /// The same, with its warnings left in `warnings`.
    pub fn warning(mut self, warnings: &Warnings) -> Self {
        self.warnings = warnings.clone();
        self
    }

    /// The same, while `fence` is the newest claim.
    pub fn fenced(mut self, fence: Fence) -> Self {
        self.fence = Some(fence);
        self
    }
}

/// One claim on one item of work. Each claim has a higher number; a store refuses writes that carry an
/// older one, so that a process that wakes up late changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Which item.
    pub item: ItemKey,
    /// Which claim.
    pub number: u64,
}

/// Which row of work state: (controller, item).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    /// The controller, or a name such as `leader/…` for what is claimed as a whole.
    pub controller: Arc<str>,
    /// The item, in words of the controller; for objects, the printed key.
    pub item: Arc<str>,
}

/// Which objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Of which kind.
    pub kind: GroupKind,
    /// In one namespace, or in all.
    pub namespace: Option<Arc<str>>,
    /// With these labels.
    pub labels: LabelSelector,
    /// With these fields.
    pub fields: FieldSelector,
}

impl Query {
    /// All objects of a kind.
    pub fn all(kind: GroupKind) -> Self {
        let (labels, fields) = (LabelSelector::everything(), FieldSelector::everything());
        Self { kind, namespace: None, labels, fields }
    }

    /// The same, in one namespace.
    pub fn in_namespace(mut self, namespace: impl Into<Arc<str>>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The same, with these labels.
    pub fn with_labels(mut self, labels: LabelSelector) -> Self {
        self.labels = labels;
        self
    }

    /// The same, with these fields.
    pub fn with_fields(mut self, fields: FieldSelector) -> Self {
        self.fields = fields;
        self
    }
}

/// How much of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// At most so many objects; no bound if none.
    pub limit: Option<usize>,
    /// The token of the page before.
    pub token: Option<String>,
}

impl PageRequest {
    /// Everything at once.
    pub fn whole() -> Self {
        Self::default()
    }
}

/// A part of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The objects, by namespace and name.
    pub items: Vec<Encoded>,
    /// The moment the list shows.
    pub position: ResourceVersion,
    /// For the next page, if there is one.
    pub next: Option<String>,
}

/// A change, or a sign of progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// New, or newly selected.
    Added(Encoded),
    /// Changed.
    Modified(Encoded),
    /// Gone, or no longer selected; the final state.
    Deleted(Encoded),
    /// Nothing up to here was missed.
    Bookmark {
        /// A later watch may start here.
        position: ResourceVersion,
        /// The current objects have all been sent.
        is_initial_end: bool,
    },
}

impl Event {
    /// The object concerned, none for bookmarks.
    pub fn object(&self) -> Option<&Encoded> {
        match self {
            Event::Added(object) | Event::Modified(object) | Event::Deleted(object) => Some(object),
            Event::Bookmark { .. } => None,
        }
    }

    /// Where a watch must start to get what comes after this event.
    pub fn position(&self) -> &ResourceVersion {
        match self {
            Event::Added(object) | Event::Modified(object) | Event::Deleted(object) => {
                object.resource_version()
            }
            Event::Bookmark { position, .. } => position,
        }
    }
}

/// The events of one watch; ends after its first error.
pub struct Events(Pin<Box<dyn Stream<Item = Result<Event>> + Send>>);

impl Events {
    /// Takes a stream for the events of a watch.
    pub fn new(stream: impl Stream<Item = Result<Event>> + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }

    /// The next event; none when the watch has ended.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        std::future::poll_fn(|context| self.0.as_mut().poll_next(context)).await
    }
}

impl Stream for Events {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

/// Which part of an object a patch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but status.
    Main,
    /// Only status.
    Status,
}

/// What happens to the objects an object owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// As its finalizers say, if one of the collector's is there; else as [`Propagation::Background`].
    #[default]
    Unsaid,
    /// They are collected after it is gone.
    Background,
    /// It goes after they are gone.
    Foreground,
    /// They stay, without their owner.
    Orphan,
}

impl Propagation {
    /// The finalizer that the collector removes when its part is done.
    pub fn finalizer(self) -> Option<&'static str> {
        match self {
            Propagation::Unsaid | Propagation::Background => None,
            Propagation::Foreground => Some("foregroundDeletion"),
            Propagation::Orphan => Some("orphan"),
        }
    }
}

/// How to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// Only this incarnation.
    pub uid: Option<Uid>,
    /// Only this state.
    pub resource_version: Option<ResourceVersion>,
    /// What happens to what it owns.
    pub propagation: Propagation,
}

/// What became of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone; this was its final state.
    Gone(Encoded),
    /// It waits for its finalizers.
    Waiting(Encoded),
}

impl Deleted {
    /// The object, gone or not.
    pub fn into_object(self) -> Encoded {
        match self {
            Deleted::Gone(object) | Deleted::Waiting(object) => object,
        }
    }
}
