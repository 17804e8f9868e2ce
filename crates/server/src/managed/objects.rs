//! Providers that are declared as objects: `concert.dev/v1alpha1 Provider`.
//!
//! The same as in the configuration file, but added, changed and removed while the process runs. How
//! a provider stands is written to its status when that changes, and not otherwise. What it was in charge of
//! is read from there again when the process starts, since it may not answer then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_controllers::managed::registry::claims::Charge;
use concert_controllers::managed::registry::{Declaration, Parts, Rank, Registry};
use concert_engine::source::except_status;
use concert_engine::{Controller, Failure, Objects, OnExit, Outcome, Reconciler, Request};
use concert_model::condition::{self, Condition, Status};
use concert_model::{Encoded, GroupKind, GroupVersionKind, Object, ObjectKey};
use concert_provider::{Capabilities, Handshake, Protocol, Served};
use concert_store::{By, Clock, Error, PageRequest, Query, Store};
use serde_json::{Map, Value, json};
use tracing::{info, warn};

use super::config::ProviderConfig;
use super::provider::{Dial, declaration, warn_of_plain_text};
use super::validate;

/// The controller's name.
pub(super) const CONTROLLER: &str = "managed/providers";

/// How often a provider's standing is compared with what its status says. A look costs no request.
const LOOK: Duration = Duration::from_secs(2);

/// Reasons of the condition `Ready`.
const AVAILABLE: &str = "Available";
const UNREACHABLE: &str = "Unreachable";
const INVALID: &str = "Invalid";
const NAME_TAKEN: &str = "NameTaken";
const NOT_IN_CHARGE: &str = "NotInCharge";

/// The kind.
pub(super) fn kind() -> GroupKind {
    GroupKind::new("concert.dev", "Provider")
}

/// What the objects act on.
pub(super) struct Surroundings {
    pub registry: Registry,
    pub dial: Dial,
    /// Names that the configuration file has taken.
    pub declared: BTreeSet<Arc<str>>,
}

/// Looks at the objects whenever their kind is defined, for as long as the tasks of `parts` run.
pub(super) fn start(surroundings: Surroundings, parts: &Parts) {
    let providers = Arc::new(Providers {
        surroundings,
        store: parts.store.clone(),
        clock: parts.clock.clone(),
        added: Mutex::default(),
    });
    let (parts, shutdown) = (parts.clone(), parts.tasks.shutdown().clone());
    parts.tasks.clone().spawn("providers/gate", OnExit::Log, async move {
        tokio::select! {
            biased;
            () = shutdown.requested() => {}
            () = gate(providers, &parts) => {}
        }
    });
}

/// Starts the controller when the kind is defined and stops it when it no longer is. A cluster without
/// the definition is fine: there are just no such objects.
async fn gate(providers: Arc<Providers>, parts: &Parts) {
    let definitions = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
    let key = ObjectKey::cluster(definitions, "providers.concert.dev");
    loop {
        let is_running = parts.engine.controller(CONTROLLER).is_some();
        // Definitions are watched anyway, so this is answered from memory.
        match parts.store.get(&key).await {
            Ok(found) if !is_running && is_established(&found.decode()) => {
                if let Err(error) = providers.declare_all().await {
                    warn!(%error, "cannot list Provider objects");
                    parts.clock.sleep(LOOK).await;
                    continue;
                }
                let controller = Controller::builder(CONTROLLER, providers.clone())
                    .objects(Objects::new(Query::all(kind())).changed(except_status))
                    .concurrency(4)
                    .authority(parts.authority.everywhere())
                    .build();
                if let Err(error) = parts.engine.start(controller) {
                    warn!(%error, "cannot look at Provider objects");
                }
            }
            Err(Error::NotFound { .. }) if is_running => {
                info!("the kind Provider is gone, and its objects with it");
                parts.engine.stop(CONTROLLER, LOOK).await;
                providers.remove_all().await;
            }
            _ => {}
        }
        parts.clock.sleep(LOOK).await;
    }
}

fn is_established(definition: &Object) -> bool {
    condition::find(definition.status(), "Established").is_some_and(|it| it.status == Status::True)
}

struct Providers {
    surroundings: Surroundings,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// What was added for an object, by its name; none while what the object says now is refused.
    added: Mutex<BTreeMap<Arc<str>, Option<ProviderConfig>>>,
}

/// Why a provider is not in the registry.
struct Refusal {
    reason: &'static str,
    message: String,
}

#[async_trait]
impl Reconciler for Providers {
    async fn reconcile(&self, request: Request) -> Outcome {
        let object = match self.store.get(&request.key).await {
            Ok(object) => object.decode(),
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => {
                self.remove(&request.key.name).await;
                return Outcome::Done;
            }
            Err(error) => return Outcome::Transient(Failure::from_error(&error)),
        };
        if object.deleted_at().is_some() {
            self.remove(&request.key.name).await;
            return Outcome::Done;
        }
        let status = match self.declare(&object).await {
            Ok(()) => self.standing(&object),
            Err(refusal) => {
                let no = Condition::new("Ready", Status::False, refusal.reason, refusal.message);
                self.status(&object, no, None)
            }
        };
        match self.write(object, status, &request).await {
            Ok(()) => Outcome::Poll(LOOK),
            Err(Error::NotFound { .. }) => Outcome::Done,
            Err(error) => Outcome::Transient(Failure::from_error(&error)),
        }
    }
}

impl Providers {
    /// Has the registry know the provider as the object says.
    async fn declare(&self, object: &Object) -> Result<(), Refusal> {
        let name: Arc<str> = object.name().into();
        if self.surroundings.declared.contains(&name) {
            let message = "the configuration file has a provider of this name: rename one of them".to_owned();
            return Err(Refusal { reason: NAME_TAKEN, message });
        }
        let config = match read(object) {
            Ok(config) => config,
            Err(message) => return Err(self.refuse(object, message).await),
        };
        if self.added().get(&name).is_some_and(|it| it.as_ref() == Some(&config)) {
            return Ok(());
        }
        let Surroundings { registry, dial, .. } = &self.surroundings;
        let declaration = match declared(object, &config, dial, &*self.clock) {
            Ok(declaration) => declaration,
            Err(message) => return Err(self.refuse(object, message).await),
        };
        registry
            .replace(declaration)
            .await
            .map_err(|error| Refusal { reason: NAME_TAKEN, message: error.to_string() })?;
        warn_of_plain_text(std::iter::once(&config));
        info!(provider = %name, "provider declared");
        self.added().insert(name, Some(config));
        Ok(())
    }

    /// Declares all that there are, by rank: one that answers at once would otherwise be given what another
    /// has been in charge of that is declared a moment later. What is wrong with one is said when it is
    /// looked at.
    async fn declare_all(&self) -> Result<(), Error> {
        let page = self.store.list(&Query::all(kind()), &PageRequest::whole()).await?;
        let mut objects: Vec<Object> = page.items.iter().map(Encoded::decode).collect();
        objects.retain(|it| it.deleted_at().is_none());
        objects.sort_by_key(|it| (it.created_at(), it.name().to_owned()));
        for object in &objects {
            if let Err(refusal) = self.declare(object).await {
                warn!(provider = object.name(), why = %refusal.message, "a Provider object is refused");
            }
        }
        Ok(())
    }

    /// Has nobody call a provider whose object makes no sense, and says so.
    async fn refuse(&self, object: &Object, message: String) -> Refusal {
        let name: Arc<str> = object.name().into();
        let is_known = self.added().contains_key(&name);
        if is_known {
            self.suspend(&name, &message).await;
        } else {
            self.withhold(object, &message);
        }
        let has_kinds = object.status()["kinds"].as_array().is_some_and(|it| !it.is_empty());
        let is_kept = has_kinds && self.added().contains_key(&name);
        let message = if is_kept {
            format!("{message}; the kinds in its status go to nobody else until it is corrected or deleted")
        } else {
            message
        };
        Refusal { reason: INVALID, message }
    }

    /// It made no sense when the process started, and its status tells what it was in charge of: that stays
    /// its own, as it would have if it had been changed while the process ran.
    fn withhold(&self, object: &Object, why: &str) {
        let Some(last) = remembered(object).filter(|it| !it.kinds.is_empty()) else { return };
        let name: Arc<str> = object.name().into();
        let rank = rank(object, &*self.clock);
        match self.surroundings.registry.withhold(name.clone(), rank, Arc::new(last), why) {
            Ok(()) => {
                info!(provider = %name, "provider withheld");
                self.added().insert(name, None);
            }
            Err(error) => warn!(provider = %name, %error, "a provider that is refused keeps no kinds"),
        }
    }

    /// What it was before holds no longer; what it made is still its own, so it stays in charge of its kinds.
    async fn suspend(&self, name: &str, why: &str) {
        let is_called = match self.added().get_mut(name) {
            Some(config) => config.take().is_some(),
            None => false,
        };
        if is_called {
            self.surroundings.registry.suspend(name, why).await;
            info!(provider = %name, "provider suspended");
        }
    }

    async fn remove(&self, name: &str) {
        let was_added = self.added().remove(name).is_some();
        if was_added {
            self.surroundings.registry.remove(name).await;
            info!(provider = %name, "provider removed");
        }
    }

    async fn remove_all(&self) {
        let names: Vec<Arc<str>> = self.added().keys().cloned().collect();
        for name in names {
            self.remove(&name).await;
        }
    }

    /// The status of a provider that the registry knows.
    fn standing(&self, object: &Object) -> Value {
        match self.surroundings.registry.provider(object.name()) {
            Some(Ok(handshake)) => {
                let complaints = self.surroundings.registry.complaints(object.name()).join("; ");
                // Others have whatever it could serve, or it serves nothing of what it was declared for.
                let is_idle = !complaints.is_empty() && self.kinds(object.name(), &handshake).is_empty();
                let (status, reason) =
                    if is_idle { (Status::False, NOT_IN_CHARGE) } else { (Status::True, AVAILABLE) };
                let ready = Condition::new("Ready", status, reason, complaints);
                self.status(object, ready, Some(&handshake))
            }
            Some(Err(why)) => {
                let no = Condition::new("Ready", Status::False, UNREACHABLE, why);
                self.status(object, no, None)
            }
            None => object.status().clone(),
        }
    }

    /// What was learnt of a provider stays while it is away.
    fn status(&self, object: &Object, ready: Condition, handshake: Option<&Handshake>) -> Value {
        let mut status = object.status().clone();
        if !status.is_object() {
            status = Value::Object(Map::new());
        }
        condition::set(&mut status, ready.observed(object.generation()), self.clock.now());
        if let Some(handshake) = handshake {
            status["protocol"] = json!(protocol(handshake.protocol));
            status["version"] = json!(handshake.version);
            status["kinds"] = json!(self.kinds(object.name(), handshake));
        }
        status
    }

    /// The kinds that the provider is in charge of, as kubectl takes them.
    fn kinds(&self, name: &str, handshake: &Handshake) -> Vec<String> {
        let added = self.added();
        let config = added.get(name).and_then(Option::as_ref);
        let declared = config.map(|it| it.resource_types.as_slice()).unwrap_or_default();
        let declared = declared.iter().filter_map(|it| it.gvk().ok());
        let named = handshake.kinds.iter().map(|it| it.kind.clone());
        let kinds: BTreeSet<_> = declared.chain(named).map(|it| (it.group_kind, it.version)).collect();
        let is_ours = |kind: &GroupKind| {
            let charge = self.surroundings.registry.in_charge_of(kind);
            charge.is_some_and(|(_, it)| matches!(it, Charge::Managed { provider, .. } if &*provider == name))
        };
        let kinds = kinds.into_iter().filter(|(kind, _)| is_ours(kind));
        kinds.map(|(kind, version)| written(&kind, &version)).collect()
    }

    /// Writes only what is new: a provider that stays as it is costs nothing.
    async fn write(&self, mut object: Object, status: Value, request: &Request) -> Result<(), Error> {
        // Every member connects to every provider; one of them says how that went.
        if request.is_onlooker || *object.status() == status {
            return Ok(());
        }
        object.set("status", status);
        let by = By::actor(CONTROLLER).because("standing");
        let by = match &request.fence {
            Some(fence) => by.fenced(fence.clone()),
            None => by,
        };
        self.store.update_status(object, &by).await.map(drop)
    }

    fn added(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Option<ProviderConfig>>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All that objects declare, whose names are not `taken`; the others with what is wrong with them, unless it
/// is remembered what they were in charge of. None where there is no such kind.
///
/// # Errors
/// Any of the store's.
pub(super) async fn all(
    store: &dyn Store,
    clock: &dyn Clock,
    dial: &Dial,
    taken: &BTreeSet<Arc<str>>,
) -> Result<Vec<Result<Declaration, String>>, Error> {
    let page = match store.list(&Query::all(kind()), &PageRequest::whole()).await {
        Ok(page) => page,
        Err(Error::UnknownKind { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let objects = page.items.iter().map(Encoded::decode);
    let ours = objects.filter(|it| it.deleted_at().is_none() && !taken.contains(it.name()));
    let one = |object: Object| {
        let found = read(&object).and_then(|config| declared(&object, &config, dial, clock));
        found.or_else(|why| match remembered(&object).filter(|it| !it.kinds.is_empty()) {
            Some(last) => {
                let rank = rank(&object, clock);
                Ok(Declaration::withheld(object.name().into(), rank, Arc::new(last), &why))
            }
            None => Err(format!("provider {}: {why}", object.name())),
        })
    };
    Ok(ours.map(one).collect())
}

/// What the registry needs to know of a provider that an object declares.
fn declared(
    object: &Object,
    config: &ProviderConfig,
    dial: &Dial,
    clock: &dyn Clock,
) -> Result<Declaration, String> {
    let declaration = declaration(config, rank(object, clock), dial).map_err(|error| error.to_string())?;
    Ok(Declaration { last: remembered(object).map(Arc::new), ..declaration })
}

/// Where the provider of an object stands among the others.
fn rank(object: &Object, clock: &dyn Clock) -> Rank {
    Rank::Declared(object.created_at().unwrap_or_else(|| clock.now()))
}

/// What the status of an object remembers of its provider; none if that has never answered.
fn remembered(object: &Object) -> Option<Handshake> {
    let status = object.status();
    let name = status["protocol"].as_str()?;
    let protocol = [Protocol::V1Alpha1, Protocol::V1].into_iter().find(|it| protocol(*it) == name)?;
    let kinds = status["kinds"].as_array().into_iter().flatten();
    let kinds = kinds.filter_map(|it| Some(Served::new(kind_of(it.as_str()?)?)));
    Some(Handshake {
        protocol,
        name: String::new(),
        version: status["version"].as_str().unwrap_or_default().to_owned(),
        capabilities: Capabilities::default(),
        kinds: kinds.collect(),
        refused: Vec::new(),
    })
}

/// Reads what [`written`] made.
fn kind_of(text: &str) -> Option<GroupVersionKind> {
    let (kind, rest) = text.split_once('.')?;
    let (version, group) = rest.split_once('.')?;
    Some(GroupKind::new(group, kind).at_version(version))
}

/// A kind as kubectl takes it.
fn written(kind: &GroupKind, version: &str) -> String {
    format!("{}.{version}.{}", kind.kind, kind.group)
}

/// The configuration that an object stands for.
fn read(object: &Object) -> Result<ProviderConfig, String> {
    let mut config: ProviderConfig =
        serde_path_to_error::deserialize(object.spec().clone()).map_err(|error| format!("spec.{error}"))?;
    config.name = object.name().to_owned();
    let findings = validate::provider_findings("spec", &config);
    if findings.is_empty() { Ok(config) } else { Err(findings.join("; ")) }
}

fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::V1Alpha1 => "external.proto.v1alpha1",
        Protocol::V1 => "concert.provider.v1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(status: Value) -> Object {
        let mut object = Object::new(&kind().at_version("v1alpha1"), "", "p");
        object.set("status", status);
        object
    }

    #[test]
    fn a_status_remembers_what_the_provider_was_in_charge_of() {
        let bucket = GroupKind::new("example.com", "Bucket");
        let kinds = json!([written(&bucket, "v1"), "nonsense"]);
        let told = json!({"protocol": "concert.provider.v1", "version": "1.2", "kinds": kinds});
        let found = remembered(&object(told)).unwrap();
        assert_eq!((found.protocol, &*found.version), (Protocol::V1, "1.2"));
        assert_eq!(found.kinds, [Served::new(bucket.at_version("v1"))]);
        // Of one that has never answered nothing is known, which is not the same as that it serves nothing.
        assert_eq!(remembered(&object(json!({}))), None);
        assert_eq!(remembered(&object(json!({"protocol": "another"}))), None);
    }
}
