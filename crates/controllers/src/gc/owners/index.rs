//! Who refers to whom. Plain data: nothing here waits.
//!
//! Only objects that have owners are in it, and only what their heads say. Everything that is told to
//! the index answers with the keys that somebody should look at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concert_model::{Encoded, GroupKind, GroupVersionKind, ObjectKey, Uid};

use super::super::finalizers;
use super::super::vocabulary::finalizer::{FOREGROUND, ORPHAN};

/// The references of all objects of the kinds that are watched.
#[derive(Debug, Default)]
pub struct Index {
    dependents: BTreeMap<ObjectKey, Dependent>,
    owners: BTreeMap<Uid, Owner>,
    kinds: BTreeMap<GroupKind, Listing>,
    /// Who wants to look again once all kinds are listed.
    patient: BTreeSet<ObjectKey>,
    epochs: u64,
}

/// An object that has owners.
#[derive(Debug)]
struct Dependent {
    uid: Uid,
    ties: Vec<Tie>,
    /// It is being deleted and waits for dependents of its own.
    is_foreground: bool,
    round: u32,
}

#[derive(Debug, PartialEq, Eq)]
struct Tie {
    owner: Uid,
    is_blocking: bool,
}

/// One that objects name as their owner; whether it is there is another question.
#[derive(Debug)]
struct Owner {
    /// As the first who named it says; none if that cannot be read.
    kind: Option<GroupKind>,
    dependents: BTreeSet<ObjectKey>,
    fate: Fate,
    /// It waits for its dependents, under this key.
    waiting: Option<ObjectKey>,
}

/// What the watches know of an owner. A uid is never used again, so what is gone stays so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// Nothing: ask the store.
    #[default]
    Unknown,
    /// It went, from this namespace, or from outside of all if that is empty.
    Gone(Arc<str>),
    /// It was looked for in every namespace.
    Nowhere,
}

/// How far the list of a kind is.
#[derive(Debug)]
struct Listing {
    epoch: u64,
    round: u32,
    is_complete: bool,
}

/// The right to tell the index about a kind. One that was replaced by a newer one is not listened to.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// Which kind.
    pub kind: GroupKind,
    epoch: u64,
}

impl Index {
    /// Starts to listen about a kind.
    pub fn open(&mut self, kind: GroupKind) -> Ticket {
        self.epochs += 1;
        let epoch = self.epochs;
        self.kinds.insert(kind.clone(), Listing { epoch, round: 0, is_complete: false });
        Ticket { kind, epoch }
    }

    /// Forgets a kind that is no longer served, and so all objects of it.
    pub fn close(&mut self, kind: &GroupKind) -> Vec<ObjectKey> {
        self.kinds.remove(kind);
        self.leave_all(kind, |_| true)
    }

    /// A list of all objects follows.
    pub fn list_begins(&mut self, ticket: &Ticket) {
        if let Some(listing) = self.listing(ticket) {
            listing.round = listing.round.wrapping_add(1);
        }
    }

    /// All objects there are have been told.
    pub fn list_ends(&mut self, ticket: &Ticket) -> Vec<ObjectKey> {
        let Some(listing) = self.listing(ticket) else { return Vec::new() };
        let round = listing.round;
        let has_gap = std::mem::replace(&mut listing.is_complete, true);
        let mut wakes = self.leave_all(&ticket.kind, |it| it.round != round);
        if has_gap {
            // Owners that went unseen left no trace: everybody looks for theirs again.
            wakes.extend(self.dependents.keys().cloned());
        }
        wakes.extend(std::mem::take(&mut self.patient));
        wakes
    }

    /// An object is there, in this state.
    pub fn present(&mut self, ticket: &Ticket, object: &Encoded) -> Vec<ObjectKey> {
        let Some(round) = self.listing(ticket).map(|it| it.round) else { return Vec::new() };
        let (key, head) = (object.key(), object.head());
        let is_deleting = head.deleted_at.is_some();
        let known = self.dependents.get(key).map(|it| it.uid.clone());
        if head.owners.is_empty() && known.is_none() && !is_deleting {
            return Vec::new();
        }
        let mut wakes = Vec::new();
        if let Some(former) = known.filter(|uid| *uid != head.uid) {
            wakes = self.leave(key, &former);
        }
        let finalizers = if is_deleting { finalizers::of(object) } else { Vec::new() };
        let has = |finalizer: &str| finalizers.iter().any(|it| it == finalizer);
        let is_foreground = has(FOREGROUND);
        let new = Dependent { uid: head.uid.clone(), ties: ties(object), is_foreground, round };
        let is_owner_news = self.replace(key, new, object, &mut wakes);
        if is_deleting && (is_foreground || has(ORPHAN)) || !is_deleting && is_owner_news {
            wakes.push(key.clone());
        }
        wakes
    }

    /// An object is gone; this was its final state.
    pub fn gone(&mut self, ticket: &Ticket, object: &Encoded) -> Vec<ObjectKey> {
        match self.listing(ticket) {
            Some(_) => self.leave(object.key(), &object.head().uid),
            None => Vec::new(),
        }
    }

    /// Whether these kinds are all listed. If not, `key` is told to look again when one more is.
    pub fn is_complete<'a>(
        &mut self,
        kinds: impl IntoIterator<Item = &'a GroupKind>,
        key: Option<&ObjectKey>,
    ) -> bool {
        let is_complete = kinds.into_iter().all(|kind| self.kinds.get(kind).is_some_and(|it| it.is_complete));
        if !is_complete {
            self.patient.extend(key.cloned());
        }
        is_complete
    }

    /// What the watches know of an owner.
    pub fn fate(&self, owner: &Uid) -> Fate {
        self.owners.get(owner).map(|it| it.fate.clone()).unwrap_or_default()
    }

    /// An owner was looked for everywhere.
    pub fn set_nowhere(&mut self, owner: &Uid) {
        if let Some(owner) = self.owners.get_mut(owner).filter(|it| it.fate == Fate::Unknown) {
            owner.fate = Fate::Nowhere;
        }
    }

    /// The objects that name an owner and may: those in its namespace, or all if it has none.
    pub fn dependents<'a>(
        &'a self,
        namespace: &'a str,
        owner: &Uid,
    ) -> impl Iterator<Item = &'a ObjectKey> + use<'a> {
        let all = self.owners.get(owner).into_iter().flat_map(|it| &it.dependents);
        all.filter(move |it| is_in_reach(namespace, it))
    }

    /// The objects that name an owner of a kind.
    pub fn dependents_on(&self, kind: &GroupKind) -> Vec<ObjectKey> {
        let owners = self.owners.values().filter(|it| it.kind.as_ref() == Some(kind));
        let all: BTreeSet<&ObjectKey> = owners.flat_map(|it| &it.dependents).collect();
        all.into_iter().cloned().collect()
    }

    /// From now on `key` is told when its dependents change. Says whether that is new.
    pub fn await_dependents(&mut self, key: &ObjectKey, uid: &Uid) -> bool {
        let owner = self.owners.get_mut(uid);
        owner.is_some_and(|it| it.waiting.replace(key.clone()).is_none())
    }

    /// Whether an owner in the foreground must wait for a dependent. Those that wait for the owner in
    /// turn, however far around, do not count: nobody would ever go.
    pub fn is_blocked(&self, key: &ObjectKey, uid: &Uid) -> bool {
        self.blocking(uid)
            .any(|(it, dependent)| is_in_reach(&key.namespace, it) && !self.waits_for(dependent, uid))
    }

    /// Whether `from` waits in the foreground for `target`, directly or through others that wait.
    fn waits_for(&self, from: &Dependent, target: &Uid) -> bool {
        let mut seen = BTreeSet::new();
        let mut rest = vec![from];
        while let Some(next) = rest.pop() {
            if next.uid == *target {
                return true;
            }
            if next.is_foreground && seen.insert(&next.uid) {
                rest.extend(self.blocking(&next.uid).map(|(_, dependent)| dependent));
            }
        }
        false
    }

    /// Dependents that a deletion of `owner` in the foreground waits for.
    fn blocking<'a>(&'a self, owner: &Uid) -> impl Iterator<Item = (&'a ObjectKey, &'a Dependent)> {
        let keys = self.owners.get(owner).into_iter().flat_map(|it| &it.dependents);
        let all = keys.filter_map(|key| self.dependents.get_key_value(key));
        all.filter(move |(_, it)| it.ties.iter().any(|tie| tie.is_blocking && tie.owner == *owner))
    }

    /// How many objects and owners are known.
    pub fn len(&self) -> (usize, usize) {
        (self.dependents.len(), self.owners.len())
    }

    /// Whether nothing refers to anything.
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    fn listing(&mut self, ticket: &Ticket) -> Option<&mut Listing> {
        self.kinds.get_mut(&ticket.kind).filter(|it| it.epoch == ticket.epoch)
    }

    /// Puts `new` in the place of what was known of `key`. Says whether its owners are news.
    fn replace(
        &mut self,
        key: &ObjectKey,
        new: Dependent,
        object: &Encoded,
        wakes: &mut Vec<ObjectKey>,
    ) -> bool {
        let old = self.dependents.remove(key);
        let is_same_owners = old.as_ref().map_or(new.ties.is_empty(), |it| it.ties == new.ties);
        let was_foreground = old.as_ref().is_some_and(|it| it.is_foreground);
        if !is_same_owners || was_foreground != new.is_foreground {
            let before = old.as_ref().map(|it| it.ties.as_slice()).unwrap_or_default();
            wakes.extend(self.awaiting(before));
            wakes.extend(self.awaiting(&new.ties));
        }
        if !is_same_owners {
            for reference in &object.head().owners {
                let kind = GroupVersionKind::parse(&reference.api_version, &reference.kind);
                let kind = kind.ok().map(|it| it.group_kind);
                self.owners
                    .entry(reference.uid.clone())
                    .or_insert(Owner::new(kind))
                    .dependents
                    .insert(key.clone());
            }
            let is_kept = |tie: &&Tie| new.ties.iter().any(|it| it.owner == tie.owner);
            for tie in old.iter().flat_map(|it| &it.ties).filter(|tie| !is_kept(tie)) {
                self.untie(key, &tie.owner);
            }
        }
        let has_owners = !new.ties.is_empty();
        if has_owners {
            self.dependents.insert(key.clone(), new);
        }
        !is_same_owners && has_owners
    }

    /// One incarnation of `key` is gone.
    fn leave(&mut self, key: &ObjectKey, uid: &Uid) -> Vec<ObjectKey> {
        let mut wakes = Vec::new();
        if self.dependents.get(key).is_some_and(|it| it.uid == *uid)
            && let Some(old) = self.dependents.remove(key)
        {
            wakes.extend(self.awaiting(&old.ties));
            for tie in &old.ties {
                self.untie(key, &tie.owner);
            }
        }
        if let Some(owner) = self.owners.get_mut(uid) {
            (owner.fate, owner.waiting) = (Fate::Gone(key.namespace.clone()), None);
            wakes.extend(owner.dependents.iter().filter(|it| is_in_reach(&key.namespace, it)).cloned());
        }
        wakes
    }

    fn leave_all(&mut self, kind: &GroupKind, is_it: impl Fn(&Dependent) -> bool) -> Vec<ObjectKey> {
        // Keys are ordered by kind first.
        let first = ObjectKey::cluster(kind.clone(), "");
        let all = self.dependents.range(first..).take_while(|(key, _)| key.kind == *kind);
        let lost: Vec<_> =
            all.filter(|(_, it)| is_it(it)).map(|(key, it)| (key.clone(), it.uid.clone())).collect();
        lost.into_iter().flat_map(|(key, uid)| self.leave(&key, &uid)).collect()
    }

    fn untie(&mut self, key: &ObjectKey, owner: &Uid) {
        let Some(entry) = self.owners.get_mut(owner) else { return };
        entry.dependents.remove(key);
        if entry.dependents.is_empty() {
            self.owners.remove(owner);
        }
    }

    /// Those of the owners that wait for their dependents.
    fn awaiting(&self, ties: &[Tie]) -> Vec<ObjectKey> {
        ties.iter().filter_map(|tie| self.owners.get(&tie.owner)?.waiting.clone()).collect()
    }
}

impl Owner {
    fn new(kind: Option<GroupKind>) -> Self {
        Self { kind, dependents: BTreeSet::new(), fate: Fate::Unknown, waiting: None }
    }
}

/// Whether an owner in `namespace`, empty for none, may own `dependent`.
pub fn is_in_reach(namespace: &str, dependent: &ObjectKey) -> bool {
    namespace.is_empty() || *namespace == *dependent.namespace
}

fn ties(object: &Encoded) -> Vec<Tie> {
    let tie = |it: &concert_model::OwnerReference| Tie {
        owner: it.uid.clone(),
        is_blocking: it.block_owner_deletion == Some(true),
    };
    object.head().owners.iter().map(tie).collect()
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
