//! The ledger of all entries, as new as the store whenever it is looked at.
//!
//! No task keeps it: whoever looks first reads what the log has since the last look. The store says without
//! waiting whether there is anything.

use concert_model::inventory::{Ledger, names};
use concert_model::{Encoded, GroupKind, Revision};
use concert_store::backend::Act;
use concert_store::local::{Change, Changes};
use concert_store::{Error, Local, PageRequest, Query, Store};
use tokio::sync::{Mutex, MutexGuard};

pub(super) struct Books {
    store: Local,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    ledger: Ledger,
    /// None before the first look, and after falling behind the log.
    changes: Option<Changes>,
}

/// The ledger, while one looks at it.
pub(super) struct Looked<'a>(MutexGuard<'a, Open>);

impl std::ops::Deref for Looked<'_> {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        &self.0.ledger
    }
}

impl Books {
    pub fn new(store: Local) -> Self {
        Self { store, open: Mutex::default() }
    }

    /// The ledger, in which everything is that was answered before this call.
    pub async fn now(&self) -> Result<Looked<'_>, Error> {
        let asked = self.touched();
        let mut open = self.open.lock().await;
        if open.changes.is_none() {
            *open = self.read().await?;
        }
        while let Some(changes) = open.changes.as_mut().filter(|it| it.position() < asked) {
            match changes.next().await {
                Some(Ok(change)) => note(&mut open.ledger, &change),
                // Further behind than the log reaches: what is there is read anew.
                Some(Err(Error::Expired)) => *open = self.read().await?,
                Some(Err(error)) => {
                    open.changes = None;
                    return Err(error);
                }
                None => return Err(Error::Unavailable("the store is closed".into())),
            }
        }
        Ok(Looked(open))
    }

    async fn read(&self) -> Result<Open, Error> {
        let is_meant = |kind: &GroupKind| *kind == names::entry_kind() || *kind == names::section_kind();
        // Before the lists, so that what changes meanwhile is heard of twice rather than never.
        let changes = self.store.changes(None, is_meant).await?;
        let mut ledger = Ledger::new();
        for object in self.all(names::section_kind()).await? {
            ledger.note_section(&object.decode());
        }
        for object in self.all(names::entry_kind()).await? {
            ledger.note_entry(&object.decode());
        }
        ledger.settle();
        Ok(Open { ledger, changes: Some(changes) })
    }

    async fn all(&self, kind: GroupKind) -> Result<Vec<Encoded>, Error> {
        Ok(self.store.list(&Query::all(kind), &PageRequest::whole()).await?.items)
    }

    /// The last change of an entry or a section.
    fn touched(&self) -> Revision {
        self.store.touched(&names::entry_kind()).max(self.store.touched(&names::section_kind()))
    }
}

fn note(ledger: &mut Ledger, change: &Change) {
    let object = change.object.decode();
    let is_entry = change.object.key().kind == names::entry_kind();
    match (is_entry, change.act) {
        (true, Act::Removed) => ledger.remove_entry(&change.object.head().uid),
        (true, _) => ledger.note_entry(&object),
        (false, Act::Removed) => ledger.remove_section(&object),
        (false, _) => ledger.note_section(&object),
    }
}
