//! Which kinds are served right now.
//!
//! Built-in ones, and one for each CustomResourceDefinition. Kept up to date by the writer as
//! definitions are committed, before their writer is answered.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use concert_model::{Encoded, GroupKind, ObjectKey, Revision};
use concert_schema::Schema;

use super::hub::Published;
use super::names::Taken;
use super::{Local, Shared, builtin, definition, revision_of};
use crate::backend::{Act, Backend, Failure, Scan};
use crate::card::Card;
use crate::contract::{PageRequest, Query, Result, Store};
use crate::error::Error;
use crate::kind::Kind;

/// A kind, with what is needed to admit objects of it.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) kind: Arc<Kind>,
    pub(super) card: Arc<Card>,
    /// One for each version.
    pub(super) versions: Vec<Version>,
    /// The definition it comes from, as it was then; none for built-in kinds.
    pub(super) definition: Option<(ObjectKey, Revision)>,
    /// The definition is being deleted: no new objects.
    pub(super) is_terminating: bool,
}

/// What objects of one version must be like.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) name: Arc<str>,
    pub(super) schema: Schema,
    /// Whether there are rules that may want to see the state before.
    pub(super) has_rules: bool,
}

impl Served {
    /// One version, served or not.
    pub(super) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    /// True if it comes from the definition of this name.
    fn is_of(&self, definition: &str) -> bool {
        self.definition.as_ref().is_some_and(|(key, _)| *key.name == *definition)
    }
}

pub(super) struct Kinds(RwLock<Known>);

struct Known {
    served: BTreeMap<GroupKind, Arc<Served>>,
    /// One for each kind, in order.
    cards: Arc<Vec<Arc<Card>>>,
    /// Rises with every change.
    version: u64,
}

impl Known {
    fn built_in() -> BTreeMap<GroupKind, Arc<Served>> {
        let all = builtin::all().into_iter();
        all.map(|served| (served.kind.group_kind.clone(), Arc::new(served))).collect()
    }

    fn changed(&mut self) {
        self.cards = Arc::new(self.served.values().map(|served| served.card.clone()).collect());
        self.version += 1;
    }
}

impl Kinds {
    pub(super) fn built_in() -> Self {
        let mut known = Known { served: Known::built_in(), cards: Arc::default(), version: 0 };
        known.changed();
        Self(RwLock::new(known))
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a kind is served.
    pub(super) fn find(&self, kind: &GroupKind) -> Result<Arc<Served>> {
        let found = self.read().served.get(kind).cloned();
        found.ok_or_else(|| Error::UnknownKind { kind: kind.clone() })
    }

    /// The card of a kind, if it is served by the definition of this name.
    pub(super) fn served_by(&self, kind: &GroupKind, definition: &str) -> Option<Arc<Card>> {
        let served = self.read().served.get(kind).cloned();
        served.filter(|served| served.is_of(definition)).map(|served| served.card.clone())
    }

    /// The names in `group` that others than this definition have.
    pub(super) fn taken(&self, group: &str, definition: &str) -> Taken {
        let mut taken = Taken::default();
        for (kind, served) in &self.read().served {
            if &*kind.group == group && !served.is_of(definition) {
                taken.add(&served.card);
            }
        }
        taken
    }

    /// Takes note of a committed change, if it is one to a definition.
    pub(super) fn learn(&self, change: &Published) {
        if !definition::is_definition(&change.object.key().kind) {
            return;
        }
        if change.act == Act::Removed {
            let kind = definition::defined_kind(&change.object.decode());
            let mut known = self.write();
            // One that was never accepted goes without taking the kind of another with it.
            if known.served.get(&kind).is_some_and(|served| served.is_of(&change.object.key().name)) {
                known.served.remove(&kind);
                known.changed();
            }
            return;
        }
        if let Some(served) = read_definition(&change.object) {
            let mut known = self.write();
            insert(&mut known.served, served);
            known.changed();
        }
    }

    /// Serves what these definitions say, and nothing else but what is built in.
    fn reset(&self, definitions: &[Encoded]) {
        let mut served = Known::built_in();
        for one in definitions.iter().filter_map(read_definition) {
            insert(&mut served, one);
        }
        let mut known = self.write();
        known.served = served;
        known.changed();
    }
}

fn insert(kinds: &mut BTreeMap<GroupKind, Arc<Served>>, served: Served) {
    let kind = served.kind.group_kind.clone();
    let name = served.definition.as_ref().map(|(key, _)| key.name.clone()).unwrap_or_default();
    // Two that were written at the same moment may both have been accepted: who came first stays.
    if kinds.get(&kind).is_some_and(|other| !other.is_of(&name)) {
        tracing::warn!(definition = %name, "kind has another definition");
        return;
    }
    kinds.insert(kind, Arc::new(served));
}

/// What a stored definition serves.
fn read_definition(encoded: &Encoded) -> Option<Served> {
    let revision = revision_of(encoded.resource_version()).unwrap_or_default();
    match definition::serve(&encoded.decode(), encoded.key().clone(), revision) {
        Ok(served) => Some(served),
        // It was admitted, so only an older program with laxer rules can have stored it.
        Err(errors) => {
            let error = errors.first().map(ToString::to_string).unwrap_or_default();
            tracing::warn!(definition = %encoded.key(), error, "definition cannot be served");
            None
        }
    }
}

impl Shared {
    /// Serves every definition there is, and nothing else.
    pub(super) fn load_kinds(&self, backend: &dyn Backend) -> Result<(), Failure> {
        let everything = |_: &ObjectKey, _: &[u8]| true;
        let range = backend.range(&Scan {
            kind: &definition::kind(),
            namespace: None,
            after: None,
            at: None,
            limit: usize::MAX,
            keep: &everything,
        })?;
        let definitions: Vec<Encoded> =
            range.rows.into_iter().map(|row| self.unseal(row)).collect::<Result<_, _>>()?;
        self.kinds.reset(&definitions);
        Ok(())
    }
}

impl Local {
    /// All kinds that are served, in order of group and kind.
    pub fn kinds(&self) -> Vec<Arc<Kind>> {
        self.cards().iter().map(|card| card.kind.clone()).collect()
    }

    /// How all kinds that are served present themselves, in order of group and kind.
    pub fn cards(&self) -> Arc<Vec<Arc<Card>>> {
        self.inner().shared.kinds.read().cards.clone()
    }

    /// A number that changes whenever [`Local::cards`] may: for whoever keeps what follows from them.
    pub fn cards_version(&self) -> u64 {
        self.inner().shared.kinds.read().version
    }

    /// How one kind presents itself.
    ///
    /// # Errors
    /// [`Error::UnknownKind`].
    pub fn card(&self, kind: &GroupKind) -> Result<Arc<Card>> {
        Ok(self.inner().shared.kinds.find(kind)?.card.clone())
    }

    /// Checks that every payload can be opened, page by page: for after a restore.
    ///
    /// # Errors
    /// The first object that cannot be read.
    pub async fn verify(&self) -> Result<usize> {
        let mut count = 0;
        for kind in self.kinds() {
            let query = Query::all(kind.group_kind.clone());
            let mut request = PageRequest { limit: Some(500), token: None };
            loop {
                let page = self.list(&query, &request).await?;
                count += page.items.len();
                request.token = page.next;
                if request.token.is_none() {
                    break;
                }
            }
        }
        Ok(count)
    }
}
