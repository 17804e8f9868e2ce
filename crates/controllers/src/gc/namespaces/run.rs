//! Does what `decide.rs` says about namespaces.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::{Controller, Objects, Outcome, source};
use concert_model::{GroupKind, Object, Timestamp};
use concert_store::{By, Error, Kind, Query, Store};

use super::super::contents::{Remains, sweep};
use super::super::leaving::{Container, Leaving, Step};
use super::super::vocabulary::controller::NAMESPACES;
use super::super::{Kinds, Parts};
use super::decide::{decide, finish, is_terminating};

struct Namespaces {
    store: Arc<dyn Store>,
    kinds: Kinds,
}

/// The controller of namespaces that are being deleted.
pub fn controller(parts: &Parts) -> Controller {
    let namespaces = Objects::new(Query::all(GroupKind::new("", "Namespace")));
    let container = Namespaces { store: parts.store.clone(), kinds: parts.kinds.clone() };
    let reconciler = Leaving::new(container, parts.store.clone(), parts.clock.clone());
    Controller::builder(NAMESPACES, Arc::new(reconciler))
        .objects(namespaces.changed(source::except_status))
        .concurrency(4)
        .authority(parts.fence.clone().into())
        .build()
}

#[async_trait]
impl Container for Namespaces {
    const NAME: &'static str = NAMESPACES;
    const REASON: &'static str = "the namespace is deleted";

    fn is_terminating(&self, namespace: &Object) -> bool {
        is_terminating(namespace)
    }

    /// Nothing new can come: the store refuses it from the moment the deletion was asked for.
    async fn sweep(&self, namespace: &Object, by: &By) -> Remains {
        let mut remains = Remains::default();
        for kind in (self.kinds)().iter().filter(|it| it.is_namespaced) {
            let query = Query::all(kind.group_kind.clone()).in_namespace(namespace.name());
            sweep(&*self.store, &query, &in_words(kind), by, &mut remains).await;
        }
        remains
    }

    fn decide(&self, namespace: &Object, remains: &Remains, now: Timestamp) -> Step {
        decide(namespace, remains, now)
    }

    async fn finish(&self, mut namespace: Object, by: &By) -> Result<Outcome, Error> {
        finish(&mut namespace);
        self.store.update(namespace, by).await?;
        Ok(Outcome::Done)
    }
}

/// `widgets.example.com`, `configmaps`.
fn in_words(kind: &Kind) -> String {
    let group = &kind.group_kind.group;
    if group.is_empty() { kind.plural.to_string() } else { format!("{}.{group}", kind.plural) }
}
