//! Items as objects: one for each reconciler that has worked on an entry. Written only when what they say
//! changes; what they say is also kept in memory, as text, since it is asked for all the time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concert_engine::Watched;
use concert_model::inventory::{Entry, Item, State, names};
use concert_model::{Object, ObjectKey, Uid};
use concert_store::{By, Delete, Error, Store};
use serde_json::Value;

use super::decide::is_same;

/// Tries over what others write: they do so seldom.
const WRITES_MAX: usize = 8;

/// Is told which entry has an item that changed.
pub type Changed = Arc<dyn Fn(&str) + Send + Sync>;

/// Items by entry and reconciler.
type ByEntry = BTreeMap<Arc<str>, BTreeMap<Arc<str>, Known>>;

/// All items.
pub struct Items {
    store: Arc<dyn Store>,
    state: Mutex<ByEntry>,
    listed: Watched<bool>,
    changed: Changed,
}

/// What is known of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Where it stands.
    pub state: State,
    /// Whether somebody stopped it.
    pub is_stopped: bool,
    /// Which incarnation of it.
    pub uid: Uid,
    /// Of which incarnation of its entry; none if that was never written down.
    entry: Option<Uid>,
    /// Of what others may change, so that late news of that are known for what they are.
    generation: i64,
    status: Arc<str>,
    /// It is as we wrote it ourselves, which is known before there is word of it.
    is_ours: bool,
}

impl Known {
    fn of(object: &Object) -> Self {
        Self {
            state: Item(object).state(),
            is_stopped: object.spec()["stopped"].as_bool().unwrap_or_default(),
            uid: object.uid().unwrap_or_else(|| Uid("".into())),
            entry: object.spec()["entryUid"].as_str().map(|it| Uid(it.into())),
            generation: object.generation(),
            status: object.status().to_string().into(),
            is_ours: false,
        }
    }

    /// Whether it is of this incarnation of its entry.
    pub fn is_of(&self, entry: &Uid) -> bool {
        self.entry.as_ref().is_none_or(|it| it == entry)
    }

    /// What it says.
    pub fn status(&self) -> Value {
        serde_json::from_str(&self.status).unwrap_or_default()
    }
}

impl Items {
    /// Those of `store`. Nothing is known yet.
    pub fn new(store: Arc<dyn Store>, changed: Changed) -> Self {
        Self { store, state: Mutex::default(), listed: Watched::new(false), changed }
    }

    /// Completes when all that there is has been told.
    pub async fn ready(&self) {
        self.listed.wait_for(|it| *it).await;
    }

    /// All have been told.
    pub fn set_listed(&self) {
        self.listed.set(true);
    }

    /// What is known of one.
    pub fn get(&self, entry: &str, reconciler: &str) -> Option<Known> {
        self.lock().get(entry)?.get(reconciler).cloned()
    }

    /// Those of an entry, by reconciler.
    pub fn of_entry(&self, entry: &str) -> BTreeMap<Arc<str>, Known> {
        self.lock().get(entry).cloned().unwrap_or_default()
    }

    /// All of them.
    pub fn all(&self) -> Vec<(Arc<str>, Arc<str>, Known)> {
        let state = self.lock();
        let of = |(entry, items): (&Arc<str>, &BTreeMap<Arc<str>, Known>)| {
            let each = items.iter().map(|(reconciler, it)| (entry.clone(), reconciler.clone(), it.clone()));
            each.collect::<Vec<_>>()
        };
        state.iter().flat_map(of).collect()
    }

    /// An object is like this. Of one that we have written ourselves only what others may change is taken, and
    /// only if it is newer: the rest is known before there is word of it. Says whether it was stopped or set
    /// going.
    pub fn note(&self, object: &Object) -> bool {
        let (entry, reconciler, seen) = (Item(object).entry(), Item(object).reconciler(), Known::of(object));
        let mut state = self.lock();
        let of_entry = match state.get_mut(entry) {
            Some(of_entry) => of_entry,
            None => state.entry(entry.into()).or_default(),
        };
        let (is_moved, is_news) = match of_entry.get_mut(reconciler) {
            Some(known) if known.uid != seen.uid || known.generation > seen.generation => (false, false),
            Some(known) => {
                let is_moved = known.is_stopped != seen.is_stopped;
                let is_news = !known.is_ours && *known != seen;
                if known.is_ours {
                    (known.generation, known.is_stopped) = (seen.generation, seen.is_stopped);
                } else {
                    *known = seen;
                }
                (is_moved, is_news)
            }
            None => {
                of_entry.insert(reconciler.into(), seen);
                (false, false)
            }
        };
        drop(state);
        if is_news {
            (self.changed)(entry);
        }
        is_moved
    }

    /// What is not in a list of all items is no more. One that came meanwhile is met again when it is
    /// needed.
    pub fn keep_only(&self, listed: &BTreeMap<ObjectKey, Uid>) {
        for (entry, reconciler, known) in self.all() {
            if listed.get(&names::item_key(&entry, &reconciler)) != Some(&known.uid) {
                self.gone(&entry, &reconciler, &known.uid);
            }
        }
    }

    /// This incarnation of an object is no more.
    pub fn gone(&self, entry: &str, reconciler: &str, uid: &Uid) {
        let mut state = self.lock();
        if let Some(of_entry) = state.get_mut(entry) {
            if of_entry.get(reconciler).is_some_and(|it| it.uid == *uid) {
                of_entry.remove(reconciler);
            }
            if of_entry.is_empty() {
                state.remove(entry);
            }
        }
        drop(state);
        (self.changed)(entry);
    }

    /// Makes sure that there is an item, before anybody works on it.
    ///
    /// # Errors
    /// Of the store.
    pub async fn ensure(&self, entry: Entry<'_>, reconciler: &str, by: &By) -> Result<(), Error> {
        if self.get(entry.id(), reconciler).is_some_and(|it| it.is_of(&entry.uid())) {
            return Ok(());
        }
        let key = names::item_key(entry.id(), reconciler);
        for _ in 0..WRITES_MAX {
            match self.store.create(Item::of(entry, reconciler), by).await {
                Err(Error::AlreadyExists { .. }) => {}
                created => {
                    self.keep(entry.id(), reconciler, &created?.decode());
                    return Ok(());
                }
            }
            let found = match self.store.get(&key).await {
                Err(Error::NotFound { .. }) => continue,
                found => found?.decode(),
            };
            if Item(&found).is_of(&entry.uid()) {
                self.keep(entry.id(), reconciler, &found);
                return Ok(());
            }
            // Left of an entry of this name that is gone: what it says is not about this one.
            self.remove(entry.id(), reconciler, &Known::of(&found).uid, by).await?;
        }
        Err(Error::Conflict { key })
    }

    /// The entries that items are of.
    pub fn entries(&self) -> Vec<Arc<str>> {
        self.lock().keys().cloned().collect()
    }

    /// Has an item say what `say` makes of what it says, unless that is the same. One of another incarnation
    /// of the entry says nothing: what is said is not about it.
    ///
    /// # Errors
    /// Of the store: [`Error::Fenced`] if somebody else is in charge of it by now.
    pub async fn say(
        &self,
        entry: Entry<'_>,
        reconciler: &str,
        by: &By,
        say: impl Fn(&Value) -> Value,
    ) -> Result<(), Error> {
        if let Some(known) = self.get(entry.id(), reconciler).filter(|it| it.is_of(&entry.uid())) {
            let before = known.status();
            if is_same(&before, &say(&before)) {
                return Ok(());
            }
        }
        self.write(entry, reconciler, by, say).await
    }

    async fn write(
        &self,
        entry: Entry<'_>,
        reconciler: &str,
        by: &By,
        say: impl Fn(&Value) -> Value,
    ) -> Result<(), Error> {
        let key = names::item_key(entry.id(), reconciler);
        for _ in 0..WRITES_MAX {
            let object = match self.store.get(&key).await {
                Err(Error::NotFound { .. }) => {
                    match self.store.create(Item::of(entry, reconciler), by).await {
                        Err(Error::AlreadyExists { .. }) => continue,
                        created => created?,
                    }
                }
                found => found?,
            };
            let mut object = object.decode();
            if !Item(&object).is_of(&entry.uid()) {
                return Ok(());
            }
            let status = say(object.status());
            if is_same(object.status(), &status) {
                self.keep(entry.id(), reconciler, &object);
                return Ok(());
            }
            object.set("status", status);
            match self.store.update_status(object, by).await {
                Err(Error::Conflict { .. } | Error::NotFound { .. }) => {}
                written => {
                    self.keep(entry.id(), reconciler, &written?.decode());
                    return Ok(());
                }
            }
        }
        Err(Error::Conflict { key })
    }

    /// Stops an item, or lets it go again.
    ///
    /// # Errors
    /// Of the store.
    pub async fn set_stopped(
        &self,
        entry: &str,
        reconciler: &str,
        is_stopped: bool,
        by: &By,
    ) -> Result<(), Error> {
        let key = names::item_key(entry, reconciler);
        for _ in 0..WRITES_MAX {
            let mut object = self.store.get(&key).await?.decode();
            if object.spec()["stopped"].as_bool().unwrap_or_default() != is_stopped {
                object.get_mut("spec")["stopped"] = is_stopped.into();
                match self.store.update(object, by).await {
                    Err(Error::Conflict { .. }) => continue,
                    written => object = written?.decode(),
                }
            }
            self.note(&object);
            return Ok(());
        }
        Err(Error::Conflict { key })
    }

    /// Removes this incarnation of an item: nothing of it is left to do.
    ///
    /// # Errors
    /// Of the store.
    pub async fn remove(&self, entry: &str, reconciler: &str, uid: &Uid, by: &By) -> Result<(), Error> {
        let key = names::item_key(entry, reconciler);
        let options = Delete { uid: Some(uid.clone()), ..Delete::default() };
        match self.store.delete(&key, &options, by).await {
            // By now there is another one.
            Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        self.gone(entry, reconciler, uid);
        Ok(())
    }

    fn keep(&self, entry: &str, reconciler: &str, object: &Object) {
        let mut seen = Known { is_ours: true, ..Known::of(object) };
        let mut state = self.lock();
        let of_entry = match state.get_mut(entry) {
            Some(of_entry) => of_entry,
            None => state.entry(entry.into()).or_default(),
        };
        // Somebody may have been stopped since this was read.
        let newer = of_entry.get(reconciler);
        if let Some(newer) = newer.filter(|it| it.uid == seen.uid && it.generation > seen.generation) {
            (seen.generation, seen.is_stopped) = (newer.generation, newer.is_stopped);
        }
        of_entry.insert(reconciler.into(), seen);
        drop(state);
        (self.changed)(entry);
    }

    fn lock(&self) -> MutexGuard<'_, ByEntry> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Items {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Items").field("entries", &self.lock().len()).finish()
    }
}
