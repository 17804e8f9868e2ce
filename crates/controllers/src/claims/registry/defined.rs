//! Kinds that are defined and not served yet. A server serves a kind some time after its definition says that
//! it is established, and nothing tells when.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use concert_model::condition::{self, Status};
use concert_model::{Encoded, GroupKind, Object, ObjectKey};
use concert_store::{Error, Store};

use super::super::definition::Kinds;
use super::decide::Declared;

/// Which definition each kind has, as their watch tells of them.
#[derive(Debug, Default)]
pub struct Defined(Mutex<BTreeMap<GroupKind, ObjectKey>>);

impl Defined {
    /// Something became of a CustomResourceDefinition.
    pub fn see(&self, definition: &Encoded) {
        let object = definition.decode();
        let spec = object.spec();
        if let (Some(group), Some(kind)) = (spec["group"].as_str(), spec["names"]["kind"].as_str()) {
            self.lock().insert(GroupKind::new(group, kind), definition.key().clone());
        }
    }

    /// A kind that is named, and defined by now, and that the store did not know when it was asked.
    ///
    /// # Errors
    /// As the store's.
    pub async fn unserved(
        &self,
        store: &dyn Store,
        declared: &[Declared],
        kinds: &Kinds,
    ) -> Result<Option<GroupKind>, Error> {
        let named = declared.iter().flat_map(Declared::kinds);
        let missing: Vec<&GroupKind> = named.filter(|it| !kinds.contains_key(*it)).collect();
        for kind in missing {
            let key = self.lock().get(kind).cloned();
            let Some(key) = key else { continue };
            match store.get(&key).await {
                Ok(definition) if is_to_be_served(&definition.decode()) => return Ok(Some(kind.clone())),
                // The watch tells what becomes of it.
                Ok(_) => {}
                Err(Error::NotFound { .. }) => drop(self.lock().remove(kind)),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupKind, ObjectKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_to_be_served(definition: &Object) -> bool {
    let established = condition::find(definition.status(), "Established");
    definition.deleted_at().is_none() && established.is_some_and(|it| it.status == Status::True)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use concert_store::backend::memory::Memory;
    use concert_store::{By, Chance, Config, Delete, Local};
    use serde_json::json;

    use super::super::read;
    use super::*;
    use crate::fixtures::PausedClock;

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_awaited_from_its_definition_on_until_it_is_known_or_gone() {
        let config = Config::new(Arc::new(PausedClock::new()), Chance::seeded(1)).inline();
        let store = Local::open(Arc::new(Memory::new()), config).unwrap();
        let by = By::actor("test");
        let kind = |kind: &str| json!({"apiVersion": "new.dev/v1", "kind": kind});
        let declared = [read::declared(
            &Object::from_value(json!({"apiVersion": "concert.dev/v1alpha1", "kind": "ClaimDefinition",
                "metadata": {"name": "thing"}, "spec": {"claim": kind("Thing"),
                    "implementations": [{"class": kind("ThingClass"), "managed": kind("Made")}]}}))
            .unwrap(),
        )];
        let (defined, unknown) = (Defined::default(), Kinds::new());
        let thing = GroupKind::new("new.dev", "Thing");
        defined.lock().insert(thing.clone(), ObjectKey::cluster(read::crd(), "gone.new.dev"));
        assert_eq!(defined.unserved(&store, &declared, &unknown).await.unwrap(), None, "nobody defines it");
        assert!(defined.lock().is_empty());

        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.new.dev"},
            "spec": {"group": "new.dev", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
        let made = store.create(Object::from_value(definition).unwrap(), &by).await.unwrap();
        defined.see(&made);
        // As it is where the server has not heard of it yet.
        let awaited = defined.unserved(&store, &declared, &unknown).await.unwrap();
        assert_eq!(awaited, Some(thing.clone()));

        let known = read::kinds(&store, &declared).await.unwrap();
        assert!(known.contains_key(&thing));
        assert_eq!(defined.unserved(&store, &declared, &known).await.unwrap(), None, "it is known");

        store.delete(made.key(), &Delete::default(), &by).await.unwrap();
        assert_eq!(defined.unserved(&store, &declared, &unknown).await.unwrap(), None, "it goes");
    }
}
