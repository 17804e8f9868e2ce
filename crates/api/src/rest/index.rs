//! Which object has which number.
//!
//! In memory, filled by whoever creates and by whoever asks. It only says where to look: what is found
//! there must carry the number, and a number that is not found is looked for among all resources.

use std::collections::{HashMap, VecDeque};
use std::sync::{PoisonError, RwLock};

use concert_model::no8s::{is_ours, names};
use concert_model::{Encoded, GroupKind, LabelSelector, ObjectKey};
use concert_store::{Error, Local, PageRequest, Query, Store};

use super::ids::{self, Ids};

/// Numbers kept: 64 bytes each, so this is some megabytes. The first that was noted makes room.
const KNOWN_MAX: usize = 100_000;
/// Objects that a search reads at a time.
const PAGE: usize = 1_000;

/// Where resources are, by number.
#[derive(Default)]
pub struct Index {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    keys: HashMap<u64, ObjectKey>,
    /// In which order they came, also of some that were forgotten since.
    order: VecDeque<u64>,
}

impl Known {
    fn note(&mut self, id: u64, key: ObjectKey, most: usize) {
        if self.keys.insert(id, key).is_some() {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > most
            && let Some(first) = self.order.pop_front()
        {
            self.keys.remove(&first);
        }
    }
}

impl Index {
    /// Takes note of an object.
    pub fn note(&self, object: &Encoded) {
        let Some(id) = id_of(object) else { return };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.note(id, object.key().clone(), KNOWN_MAX);
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, object: &Encoded) {
        if let Some(id) = id_of(object) {
            self.known.write().unwrap_or_else(PoisonError::into_inner).keys.remove(&id);
        }
    }

    /// The resource with this number, as it is now.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn find(&self, store: &Local, ids: &Ids, id: u64) -> Result<Option<Encoded>, Error> {
        if let Some(object) = self.known(store, id).await? {
            return Ok(Some(object));
        }
        // Most of what is not there never was; that need not cost a search.
        if !ids.is_given(ids::RESOURCES, id).await? {
            return Ok(None);
        }
        self.search(store, id).await
    }

    /// The same where it was seen last; none also if it is elsewhere.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn known(&self, store: &Local, id: u64) -> Result<Option<Encoded>, Error> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).keys.get(&id).cloned();
        let Some(key) = known else { return Ok(None) };
        match store.get(&key).await {
            Ok(object) => Ok(Some(object).filter(|it| id_of(it) == Some(id))),
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks for a number among all resources, and takes note of all that it comes across: who asks for one
    /// after a start asks for others soon, and a search for each would look at everything each time.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn search(&self, store: &Local, id: u64) -> Result<Option<Encoded>, Error> {
        let mut found = None;
        for kind in kinds(store) {
            let mut page = PageRequest { limit: Some(PAGE), token: None };
            loop {
                let read = match store.list(&Query::all(kind.clone()), &page).await {
                    Ok(read) => read,
                    Err(Error::UnknownKind { .. }) => break,
                    Err(error) => return Err(error),
                };
                for object in read.items {
                    self.note(&object);
                    if id_of(&object) == Some(id) {
                        found = Some(object);
                    }
                }
                match read.next {
                    Some(token) => page.token = Some(token),
                    None => break,
                }
            }
            if found.is_some() {
                break;
            }
        }
        // Others may have taken its place, where there are more than can be kept.
        if let Some(object) = &found {
            self.note(object);
        }
        Ok(found)
    }
}

/// The kinds whose objects may be resources.
pub fn kinds(store: &Local) -> Vec<GroupKind> {
    let all = store.cards();
    let ours = all.iter().filter(|card| is_ours(&card.kind.group_kind.group));
    ours.map(|card| card.kind.group_kind.clone()).collect()
}

/// The object of a kind that has this number.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn by_label(store: &Local, kind: GroupKind, id: u64) -> Result<Option<Encoded>, Error> {
    let labels = LabelSelector::label(names::ID, &id.to_string());
    let page = PageRequest { limit: Some(1), token: None };
    match store.list(&Query::all(kind).with_labels(labels), &page).await {
        Ok(page) => Ok(page.items.into_iter().next()),
        Err(Error::UnknownKind { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The number of an object.
pub fn id_of(object: &Encoded) -> Option<u64> {
    object.head().labels.get(names::ID)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use concert_model::Object;
    use concert_store::By;
    use serde_json::json;

    use super::*;
    use crate::rest::fixtures::World;

    #[tokio::test]
    async fn one_search_finds_all_that_is_there() {
        let world = World::new().await;
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "dnsrecords.no8s.concert.dev"},
            "spec": {"group": "no8s.concert.dev", "scope": "Cluster",
                "names": {"kind": "DnsRecord", "plural": "dnsrecords"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema}}]},
        });
        let (by, ids) = (By::actor("test"), Ids::new(world.store.clone()));
        world.store.create(Object::from_value(definition).unwrap(), &by).await.unwrap();
        for _ in 0..3 {
            let id = ids.draw(ids::RESOURCES).await.unwrap();
            let object = json!({"apiVersion": "no8s.concert.dev/v1", "kind": "DnsRecord",
                "metadata": {"name": format!("r{id}"), "labels": {names::ID: id.to_string()}}});
            world.store.create(Object::from_value(object).unwrap(), &by).await.unwrap();
        }
        let index = Index::default();
        let found = index.find(&world.store, &ids, 2).await.unwrap().unwrap();
        assert_eq!(&*found.key().name, "r2");
        assert_eq!(index.known.read().unwrap().keys.len(), 3);
    }

    #[test]
    fn the_first_that_was_noted_makes_room() {
        let mut known = Known::default();
        let key = |id: u64| ObjectKey::cluster(GroupKind::new("no8s.concert.dev", "A"), format!("r{id}"));
        for id in [1, 2, 1, 3, 4] {
            known.note(id, key(id), 3);
        }
        let mut left: Vec<u64> = known.keys.keys().copied().collect();
        left.sort_unstable();
        assert_eq!((left, known.order.len()), (vec![2, 3, 4], 3));
        known.keys.remove(&3);
        known.note(3, key(3), 3);
        assert!(known.keys.len() <= 3 && known.order.len() == 3, "{:?}", known.order);
    }
}
