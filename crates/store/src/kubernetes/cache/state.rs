//! What the watch of one kind has told, as plain data.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use concert_model::{Encoded, ObjectKey, ResourceVersion};

use super::Order;
use super::overlay::{Newer, Overlay};
use crate::contract::Event;

/// Changes kept for watches that are a little behind. Those that are further behind list again, from here and
/// not from the server, so that keeping more is not worth its memory.
const CHANGES_MAX: usize = 2_048;
/// Bytes of objects kept for them, whatever their number.
const CHANGES_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What the cache says about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Look {
    Found(Encoded),
    Missing,
    /// It cannot say: ask the server.
    Ask,
}

/// What a watch finds next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Event(Event),
    /// Nothing to tell yet.
    Nothing,
    /// It fell behind what is kept, or there was a gap.
    Expired,
    /// There is nothing more to come.
    Ended(End),
}

/// Why nothing more is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nobody wanted it any more, or the store is closed.
    Closed,
    /// The kind is gone.
    UnknownKind,
}

/// Where one watch is.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    /// The number of the next change to look at.
    next: u64,
    gaps: u64,
    /// Everything up to here is known to the reader.
    pub(super) known: Order,
    pub(super) namespace: Option<Arc<str>>,
}

/// One kind, as told.
#[derive(Debug, Default)]
pub(super) struct State {
    objects: BTreeMap<ObjectKey, Encoded>,
    overlay: Overlay,
    changes: VecDeque<(Order, Event)>,
    changes_bytes: usize,
    /// The number of the first change that is kept.
    first: u64,
    /// Every change after this is kept.
    since: Order,
    /// Everything up to here was told; none before the first list.
    newest: Option<(Order, ResourceVersion)>,
    /// The last sign of progress that came without a change.
    bookmark: Option<(Order, ResourceVersion)>,
    /// How often the watch had to start over.
    gaps: u64,
    end: Option<End>,
}

impl State {
    /// Takes a whole list. All but the first mean that changes were missed: watches are told to list
    /// again, which they do from here.
    pub(super) fn list(&mut self, items: Vec<Encoded>, order: Order, position: ResourceVersion) {
        if self.newest.is_some() {
            self.gaps += 1;
        }
        self.first += u64::try_from(self.changes.len()).unwrap_or(u64::MAX);
        self.changes.clear();
        (self.changes_bytes, self.bookmark, self.since) = (0, None, order);
        self.objects = items.into_iter().map(|object| (object.key().clone(), object)).collect();
        let uid_of = |key: &ObjectKey| self.objects.get(key).map(|object| &object.head().uid);
        self.overlay.listed(order, uid_of);
        self.newest = Some((order, position));
    }

    /// Takes a change that the server told.
    pub(super) fn change(&mut self, order: Order, event: Event) {
        match &event {
            Event::Added(object) | Event::Modified(object) => {
                self.objects.insert(object.key().clone(), object.clone());
                self.overlay.told(object, order);
            }
            Event::Deleted(object) => {
                self.objects.remove(object.key());
                self.overlay.told_gone(object, order);
            }
            Event::Bookmark { .. } => {}
        }
        self.newest = Some((order, event.position().clone()));
        self.changes_bytes += bytes_of(&event);
        self.changes.push_back((order, event));
        // The newest stays, whatever its size: those who are awake must find it.
        while self.changes.len() > 1
            && (self.changes.len() > CHANGES_MAX || self.changes_bytes > CHANGES_BYTES_MAX)
        {
            let Some((order, event)) = self.changes.pop_front() else { break };
            self.changes_bytes -= bytes_of(&event);
            self.first += 1;
            self.since = order;
        }
    }

    /// Takes a sign that nothing up to `order` was missed.
    pub(super) fn progress(&mut self, order: Order, position: ResourceVersion) {
        self.overlay.passed(order);
        self.bookmark = Some((order, position.clone()));
        self.newest = Some((order, position));
    }

    /// A list is about to be asked for.
    pub(super) fn will_list(&mut self) {
        self.overlay.will_list();
    }

    /// True if more was answered than could be remembered: a list is needed before reads can be served.
    pub(super) fn needs_list(&self) -> bool {
        self.overlay.has_lost()
    }

    pub(super) fn end(&mut self, end: End) {
        self.end.get_or_insert(end);
    }

    /// Where the server's watch goes on.
    pub(super) fn position(&self) -> Option<&ResourceVersion> {
        self.newest.as_ref().map(|(_, position)| position)
    }

    pub(super) fn look(&self, key: &ObjectKey) -> Look {
        if self.newest.is_none() || self.end.is_some() || self.overlay.has_lost() {
            return Look::Ask;
        }
        let cached = self.objects.get(key);
        let found = |object: Option<&Encoded>| object.cloned().map_or(Look::Missing, Look::Found);
        match self.overlay.get(key) {
            None => found(cached),
            Some(Newer::Stale) => Look::Ask,
            // The watch has not got so far, or the entry would not be here.
            Some(Newer::State(object, _)) => Look::Found(object.clone()),
            Some(Newer::Gone { uid, at }) => {
                let is_later = |object: &&Encoded| {
                    object.head().uid != *uid
                        && Order::of(object.resource_version()).is_some_and(|order| order > *at)
                };
                found(cached.filter(is_later))
            }
        }
    }

    /// An object as the server answered it, by whatever call.
    pub(super) fn answered(&mut self, object: &Encoded) {
        match Order::of(object.resource_version()) {
            Some(order) if self.newest.as_ref().is_some_and(|(newest, _)| order <= *newest) => {
                // The watch is at least as far. What it told stands, and whoever doubted it has asked.
                self.overlay.confirmed(object.key());
            }
            Some(order) => self.overlay.answered(object, order),
            None => self.overlay.stale(object.key()),
        }
    }

    /// The server answered that an object is gone; `last` was its last state.
    pub(super) fn gone(&mut self, last: &Encoded) {
        let Some(at) = Order::of(last.resource_version()) else { return self.overlay.stale(last.key()) };
        let is_behind = self.newest.as_ref().is_none_or(|(newest, _)| at > *newest);
        let cached = self.objects.get(last.key());
        if is_behind || cached.is_some_and(|object| object.head().uid == last.head().uid) {
            self.overlay.gone(last, at);
        }
    }

    /// The server answered that there is no such object.
    pub(super) fn absent(&mut self, key: &ObjectKey) {
        self.overlay.absent(key, self.objects.contains_key(key));
    }

    /// A write was refused, or its outcome is unknown: what is known of `key` is not to be relied on.
    pub(super) fn stale(&mut self, key: &ObjectKey) {
        self.overlay.stale(key);
    }

    /// True if everything that this store was answered has been told by the watch as well.
    pub(super) fn is_caught_up(&self) -> bool {
        self.newest.is_some() && !self.overlay.is_ahead()
    }

    /// The objects there are, and a watch that goes on from there.
    pub(super) fn start(
        &self,
        namespace: Option<Arc<str>>,
    ) -> Option<(Vec<Encoded>, ResourceVersion, Cursor)> {
        let (known, position) = self.newest.clone()?;
        let is_meant = |object: &&Encoded| namespace.as_ref().is_none_or(|it| *it == object.key().namespace);
        let objects = self.objects.values().filter(is_meant).cloned().collect();
        let next = self.first + u64::try_from(self.changes.len()).unwrap_or_default();
        Some((objects, position, Cursor { next, gaps: self.gaps, known, namespace }))
    }

    /// A watch that goes on from an earlier place; none if changes since are no longer kept.
    pub(super) fn resume(&self, known: Order, namespace: Option<Arc<str>>) -> Option<Cursor> {
        let is_kept = self.newest.is_some() && known >= self.since;
        is_kept.then_some(Cursor { next: self.first, gaps: self.gaps, known, namespace })
    }

    /// What comes next for a watch.
    pub(super) fn next(&self, cursor: &mut Cursor) -> Next {
        if let Some(end) = self.end {
            return Next::Ended(end);
        }
        if cursor.gaps != self.gaps || cursor.next < self.first {
            return Next::Expired;
        }
        while let Ok(index) = usize::try_from(cursor.next - self.first)
            && let Some((order, event)) = self.changes.get(index)
        {
            cursor.next += 1;
            let is_meant =
                |object: &Encoded| cursor.namespace.as_ref().is_none_or(|it| *it == object.key().namespace);
            if *order > cursor.known {
                cursor.known = *order;
                if event.object().is_some_and(is_meant) {
                    return Next::Event(event.clone());
                }
            }
        }
        match &self.bookmark {
            Some((order, position)) if *order > cursor.known => {
                cursor.known = *order;
                Next::Event(Event::Bookmark { position: position.clone(), is_initial_end: false })
            }
            _ => Next::Nothing,
        }
    }
}

fn bytes_of(event: &Event) -> usize {
    event.object().map_or(0, |object| object.body().payload().len())
}
