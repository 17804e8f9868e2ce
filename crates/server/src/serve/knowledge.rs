//! What the API cannot know by itself: why an object is not ready, and what its provider would do.

use std::sync::Arc;

use async_trait::async_trait;
use concert_api::error::Naming;
use concert_api::kube::Extensions;
use concert_api::relay::Way;
use concert_controllers::claims::ensemble::Ensemble;
use concert_controllers::managed::config::Configurations;
use concert_controllers::managed::reference;
use concert_controllers::managed::registry::Parts;
use concert_controllers::managed::registry::claims::Charge;
use concert_engine::Engine;
use concert_engine::controller::stored;
use concert_engine::workers::Board;
use concert_model::no8s::{self, Resource};
use concert_model::{FieldSelector, GroupKind, GroupVersionKind, Object, ObjectKey, inventory};
use concert_store::{Clock, Error, Local, PageRequest, Query, Store};
use futures_util::future::join_all;
use http::{HeaderMap, Uri};
use serde_json::Value;

use crate::config;
use crate::explain::{
    Definition, Explanation, Facts, Holder, Item, Related, Relation, Service, Told, explain,
};
use crate::managed::claimed::Asking as _;
use crate::managed::plan::{Live, Planned};
use crate::managed::{self, Reconciling};

use super::claimed;
use super::mothership::Mothership;

/// Events that an explanation looks at.
const EVENTS_MAX: usize = 50;

/// For how many objects providers are asked at the same time, for one request.
const PLANNED_AT_ONCE: usize = 8;

/// Everything that runs beside the API.
pub(super) struct Knowledge {
    store: Local,
    duty: Arc<Reconciling>,
    engine: Engine,
    clock: Arc<dyn Clock>,
    configurations: Arc<Configurations>,
    mothership: Mothership,
    board: Board,
    /// To the replica that lends work, where there are several.
    way: Option<Way>,
}

impl Knowledge {
    pub fn new(
        store: &Local,
        duty: &Arc<Reconciling>,
        parts: &Parts,
        mothership: &Mothership,
        board: &Board,
    ) -> Self {
        let shared = parts.store.clone();
        let configurations = Configurations::new(shared, parts.clock.clone(), config::variable);
        Self {
            store: store.clone(),
            duty: duty.clone(),
            engine: parts.engine.clone(),
            clock: parts.clock.clone(),
            configurations: Arc::new(configurations),
            mothership: mothership.clone(),
            board: board.clone(),
            way: None,
        }
    }

    /// The same, with the way to the replica that lends work.
    pub fn with_way(self, way: Option<Way>) -> Self {
        Self { way, ..self }
    }

    /// Why the object is as it is.
    async fn explanation(&self, key: &ObjectKey) -> Result<Explanation, Error> {
        let object = self.store.get(key).await?.decode();
        let mut facts = Facts::new(object, self.clock.now());
        facts.elapsed = self.clock.elapsed();
        facts.definition = self.definition(&key.kind).await?;
        facts.service = self.service(&key.kind, &facts.object);
        facts.related = self.related(&facts.object).await?;
        if let Some(ensemble) = self.ensemble_of(&key.kind) {
            self.explain_claim(&mut facts, &ensemble).await?;
        }
        facts.events = self.events(key, &facts.object).await?;
        facts.items = self.items(key).await?;
        facts.holder = self.holder(&facts.object);
        if key.kind == inventory::names::entry_kind() {
            facts.components = self.mothership.components(&key.name).await?;
        }
        Ok(explain(&facts))
    }

    /// What would be done about each object that a provider is in charge of.
    async fn plans(&self, objects: &[Object]) -> Vec<Option<Planned>> {
        let Some(registry) = self.duty.registry() else { return vec![None; objects.len()] };
        let (clock, configurations) = (self.clock.clone(), self.configurations.clone());
        let live = Live { registry, store: Arc::new(self.store.clone()), clock, configurations };
        let mut plans = Vec::with_capacity(objects.len());
        for some in objects.chunks(PLANNED_AT_ONCE) {
            plans.extend(join_all(some.iter().map(|object| self.plan_one(&live, object))).await);
        }
        plans
    }

    /// What would be done about one.
    async fn plan_one(&self, live: &Live, object: &Object) -> Option<Planned> {
        match object.gvk().ok().and_then(|it| self.ensemble_of(&it.group_kind)) {
            Some(ensemble) => Some(managed::claimed::plan(live, &self.store, &ensemble, object).await),
            None => live.one(object).await,
        }
    }

    /// All that play for a claim kind; none if it is none.
    fn ensemble_of(&self, kind: &GroupKind) -> Option<Arc<Ensemble>> {
        self.duty.claims()?.ensemble_of(kind)
    }

    /// From the claim to its class, its managed resource, and who makes that real.
    async fn explain_claim(&self, facts: &mut Facts, ensemble: &Ensemble) -> Result<(), Error> {
        facts.is_claim = true;
        for (relation, key) in claimed::chain(&facts.object, ensemble) {
            let found = self.find(&key).await?;
            if let (Relation::Managed, Some(managed)) = (relation, &found) {
                // Who may read a claim may not therefore read what is another's.
                if !claimed::may_know(&facts.object, managed) {
                    continue;
                }
                facts.service = self.service(&key.kind, managed);
                facts.related.extend(self.related(managed).await?);
            }
            facts.related.push(Related::of(relation, key, found.as_ref()));
        }
        Ok(())
    }

    async fn definition(&self, kind: &GroupKind) -> Result<Definition, Error> {
        let card = self.store.card(kind)?;
        if card.is_built_in {
            return Ok(Definition::Served);
        }
        let definitions = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        let key = ObjectKey::cluster(definitions, format!("{}.{}", card.kind.plural, kind.group));
        let found = self.find(&key).await?;
        Ok(Definition::of(found.as_ref()))
    }

    fn service(&self, kind: &GroupKind, object: &Object) -> Service {
        let Some(registry) = self.duty.registry() else { return Service::Unknown };
        if let Some((_, Charge::Managed { provider, .. })) = registry.in_charge_of(kind) {
            return match registry.provider(&provider) {
                Some(Ok(_)) => Service::Up { provider: provider.to_string() },
                Some(Err(why)) => Service::Down { provider: provider.to_string(), why },
                None => Service::Nobody { silent: Vec::new() },
            };
        }
        // What has the shape of a managed resource wants a provider.
        if object.spec().get("forProvider").is_none() {
            return Service::NotNeeded;
        }
        let named = |subject: &str| subject.strip_prefix("provider ").map(str::to_owned);
        Service::Nobody { silent: registry.problems().iter().filter_map(|it| named(&it.subject)).collect() }
    }

    async fn related(&self, object: &Object) -> Result<Vec<Related>, Error> {
        let mut related = Vec::new();
        for owner in object.owners() {
            let Ok(kind) = GroupVersionKind::parse(&owner.api_version, &owner.kind) else { continue };
            let kind = kind.group_kind;
            let key = match self.store.kind(&kind).await {
                Ok(it) if it.is_namespaced => ObjectKey::namespaced(kind, object.namespace(), owner.name),
                Ok(_) => ObjectKey::cluster(kind, owner.name),
                Err(Error::UnknownKind { .. }) => continue,
                Err(error) => return Err(error),
            };
            // By uid: whoever writes an object may write any name here, to be told of what has it.
            let found = self.find(&key).await?.filter(|it| it.uid().as_ref() == Some(&owner.uid));
            related.push(Related::of(Relation::Owner, key, found.as_ref()));
        }
        for (relation, key) in self.referred(object).await? {
            let found = self.find(&key).await?;
            related.push(Related::of(relation, key, found.as_ref()));
        }
        Ok(related)
    }

    /// What a managed resource takes fields from, and the account that it is in.
    async fn referred(&self, object: &Object) -> Result<Vec<(Relation, ObjectKey)>, Error> {
        let kind = object.gvk().ok().map(|it| it.group_kind);
        let registry = self.duty.registry().zip(kind);
        let Some((_, Charge::Managed { served, .. })) =
            registry.and_then(|(registry, kind)| registry.in_charge_of(&kind))
        else {
            return Ok(Vec::new());
        };
        let named = reference::named(&self.store, object, &served.references).await?;
        let config = match self.configurations.meant_by(object, &served).await {
            // Nobody has defined what accounts are.
            Err(Error::UnknownKind { .. }) => None,
            other => other?,
        };
        let named = named.into_iter().map(|key| (Relation::Reference, key));
        Ok(named.chain(config.map(|key| (Relation::ProviderConfig, key))).collect())
    }

    async fn events(&self, key: &ObjectKey, object: &Object) -> Result<Vec<Told>, Error> {
        let uid = object.uid().map(|it| it.to_string()).unwrap_or_default();
        let fields = FieldSelector::field("involvedObject.uid", &uid);
        let namespace = if key.namespace.is_empty() { "default".into() } else { key.namespace.clone() };
        let query = Query::all(GroupKind::new("", "Event")).in_namespace(namespace).with_fields(fields);
        let page = self.store.list(&query, &PageRequest::whole()).await?;
        let mut told: Vec<Told> =
            page.items.iter().filter_map(|it| Told::of(&it.decode().into_value())).collect();
        told.sort_by_key(|it| std::cmp::Reverse(it.at));
        told.truncate(EVENTS_MAX);
        Ok(told)
    }

    /// What the engine knows of it; where replicas share the work, also what another one has written down.
    async fn items(&self, key: &ObjectKey) -> Result<Vec<Item>, Error> {
        let mut items = Vec::new();
        for controller in self.engine.controllers() {
            let mut state = self.engine.state(&controller.name, key);
            if state.is_none() && self.store.is_shared() {
                state = stored(&self.store, &*self.clock, &controller.name, key).await?;
            }
            items.extend(state.map(|state| Item { controller: controller.name.to_string(), state }));
        }
        Ok(items)
    }

    /// The host that has a resource. Where replicas share the work, only the one that lends knows.
    fn holder(&self, object: &Object) -> Option<Holder> {
        let kind = object.gvk().ok()?.group_kind;
        let id = Resource(object).id().filter(|_| no8s::is_ours(&kind.group))?;
        let (worker, leased) = self.board.holder(&id.to_string())?;
        let (worker, host) = (worker.to_string(), leased.host.to_string());
        Some(Holder { worker, host, since: leased.since_time })
    }

    async fn find(&self, key: &ObjectKey) -> Result<Option<Object>, Error> {
        match self.store.get(key).await {
            Ok(found) => Ok(Some(found.decode())),
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl Extensions for Knowledge {
    async fn explain(&self, key: &ObjectKey) -> Result<Value, concert_api::Error> {
        let explained = self.explanation(key).await.map_err(|error| {
            let plural = self.store.card(&key.kind).map(|it| it.kind.plural.clone()).unwrap_or_default();
            let naming = Naming { kind: &key.kind, plural: &plural, name: &key.name };
            concert_api::Error::of_read(error, &naming)
        })?;
        Ok(serde_json::to_value(explained).unwrap_or(Value::Null))
    }

    /// Who works on what is lent, since when and when next, only the one knows that lends it.
    async fn explained_elsewhere(&self, key: &ObjectKey, uri: &Uri, headers: &HeaderMap) -> Option<Value> {
        let is_lent = no8s::is_ours(&key.kind.group) || key.kind == inventory::names::entry_kind();
        self.way.as_ref().filter(|_| is_lent)?.ask(uri, headers).await
    }

    async fn plan(&self, objects: Vec<Object>) -> Result<Value, concert_api::Error> {
        let plans: Vec<Planned> = self.plans(&objects).await.into_iter().flatten().collect();
        Ok(serde_json::to_value(plans).unwrap_or(Value::Null))
    }
}
