//! What the providers would do about objects, without doing it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_controllers::claims::registry::{self, decide::Cast};
use concert_controllers::managed::config::Configurations;
use concert_controllers::managed::plan::Planner;
use concert_controllers::managed::registry::claims::{Charge, Claims, Known, State, claims};
use concert_controllers::managed::registry::{Declaration, Rank, Registry, Settings, rules};
use concert_engine::{Failure, Tasks, TokioSpawn};
use concert_model::{Object, Timestamp};
use concert_provider::{Call, Change, Connector, PlanAction};
use concert_store::{Clock, Store};
use serde::Serialize;
use serde_json::Value;

use super::claimed::{self, Asking};
use super::config::ControllerConfig;
use super::error::Error;
use super::options::Options;
use super::{objects, provider};

/// How long a provider may take to introduce itself, and to answer for one object.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What would happen to one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// The verb.
    pub action: Action,
    /// Of the object.
    pub api_version: String,
    /// Of the object.
    pub kind: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// Of the object.
    pub name: String,
    /// Field by field.
    pub changes: Vec<FieldChange>,
    /// Fields whose values are not to be shown, whether the provider could be asked or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    /// A sentence, where there is more to say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The external thing is made.
    Create,
    /// It is changed in place.
    Update,
    /// It would have to be made anew, which is not done: the change would be refused.
    Replace,
    /// It is removed.
    Delete,
    /// It is as declared.
    None,
    /// Nobody can tell; the reason says why.
    Unknown,
}

/// One field that would change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Where, as in `spec.forProvider.size`.
    pub path: String,
    /// What is; none if absent, not told or not to be shown.
    pub from: Option<Value>,
    /// What is wanted; none if it is to go or not to be shown.
    pub to: Option<Value>,
    /// Whether the external thing must be made anew for it.
    pub replaces: bool,
    /// Whether the values are not to be shown.
    pub is_sensitive: bool,
}

/// Asks the providers about `objects`, by the options under which they would be reconciled. Writes nothing and
/// has nothing done.
///
/// # Errors
/// As [`Controller::start`](super::Controller::start). What goes wrong with one object is in its plan.
pub async fn plan(
    config: &ControllerConfig,
    options: &Options,
    objects: Vec<Object>,
) -> Result<Vec<Planned>, Error> {
    config.check()?;
    options.check_certificates()?;
    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), options.clock.clone());
    let store = options.storage.open(&options.clock, &options.chance, &tasks).await?.store;
    let configurations = Configurations::new(store.clone(), options.clock.clone(), crate::config::variable);
    let mut desk = Desk {
        store,
        clock: options.clock.clone(),
        configurations: Arc::new(configurations),
        settings: options.settings(),
        connectors: BTreeMap::new(),
        claims: Claims::default(),
        concert: Cast::default(),
        down: Vec::new(),
    };
    desk.read_definitions().await;
    let mut known = Vec::new();
    for declaration in desk.declarations(config, options).await? {
        let last = declaration.last.filter(|_| declaration.kinds.is_empty());
        let state = match declaration.connector.handshake(&Call::within(TIMEOUT)).await {
            Ok(handshake) => State::Up { handshake: Arc::new(handshake), epoch: 1 },
            Err(error) => {
                desk.down.push(format!("provider {}: {}", declaration.name, error.message));
                State::Down { why: error.message, is_long: true, last }
            }
        };
        known.push((declaration.name.clone(), Known { wanted: declaration.kinds, state }));
        desk.connectors.insert(declaration.name, declaration.connector);
    }
    desk.claims = claims(known.iter().map(|(name, it)| (name, it)));
    let mut all = Vec::with_capacity(objects.len());
    for object in objects {
        all.push(desk.plan(&object).await);
    }
    tasks.stop(Duration::from_secs(1)).await;
    Ok(all)
}

/// Who is asked about what.
struct Desk {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    configurations: Arc<Configurations>,
    settings: Settings,
    connectors: BTreeMap<Arc<str>, Arc<dyn Connector>>,
    claims: Claims,
    /// Who plays for claims.
    concert: Cast,
    /// Who does not answer, and why.
    down: Vec<String>,
}

#[async_trait]
impl Asking for Desk {
    async fn one(&self, object: &Object) -> Option<Planned> {
        Some(self.managed(object).await)
    }
}

impl Desk {
    /// Who is declared, by the configuration and by objects; who comes first keeps what two claim.
    async fn declarations(
        &mut self,
        config: &ControllerConfig,
        options: &Options,
    ) -> Result<Vec<Declaration>, Error> {
        let (dial, providers) = (options.dial(), config.providers.iter().enumerate());
        let configured =
            providers.map(|(place, it)| provider::declaration(it, Rank::Configured(place), &dial));
        let mut all = configured.collect::<Result<Vec<_>, _>>()?;
        if options.has_objects {
            let taken = all.iter().map(|it| it.name.clone()).collect();
            // They only add kinds to what the configuration has, so the rest can be planned without them.
            match objects::all(&*self.store, &*self.clock, &dial, &taken).await {
                Ok(found) => found.into_iter().for_each(|declared| match declared {
                    Ok(declaration) => all.push(declaration),
                    Err(why) => self.down.push(why),
                }),
                Err(error) => self.down.push(format!("Provider objects: {error}")),
            }
        }
        all.sort_by(|one, other| (&one.rank, &one.name).cmp(&(&other.rank, &other.name)));
        Ok(all)
    }

    /// Finds out who plays for claims. Without leave to read that, managed resources can be planned all the
    /// same.
    async fn read_definitions(&mut self) {
        match registry::read(&*self.store).await {
            Ok(cast) => self.concert = cast,
            Err(error) => self.down.push(format!("claim definitions: {}", Failure::from_error(&error))),
        }
    }

    /// What would become of a claim, or of a managed resource.
    async fn plan(&self, object: &Object) -> Planned {
        let ensemble = object.gvk().ok().and_then(|it| self.concert.ensemble_of(&it.group_kind));
        match ensemble {
            Some(ensemble) => claimed::plan(self, &*self.store, &ensemble, object).await,
            None => self.managed(object).await,
        }
    }

    /// Also says of a kind that nobody serves it, and who does not answer.
    async fn managed(&self, object: &Object) -> Planned {
        let answer = match self.find(object) {
            Ok(asked) => asked.ask(object, self.clock.now()).await,
            Err(why) => Err(why),
        };
        let kind = object.gvk().map(|it| it.group_kind);
        let charge = kind.ok().and_then(|kind| self.claims.kinds.get(&kind));
        planned(object, answer, charge)
    }

    fn find(&self, object: &Object) -> Result<Asked, String> {
        let kind = object.gvk().map_err(|error| error.to_string())?.group_kind;
        let Some(charge @ Charge::Managed { provider, .. }) = self.claims.kinds.get(&kind) else {
            // One that does not answer may be the one.
            let down =
                if self.down.is_empty() { String::new() } else { format!("; {}", self.down.join("; ")) };
            return Err(format!("no provider serves {kind}{down}"));
        };
        let asked = self
            .connectors
            .get(provider)
            .and_then(|it| Asked::new(charge, it, &self.settings, &self.store, &self.configurations));
        asked.ok_or_else(|| format!("provider {provider} has not answered: {}", self.down.join("; ")))
    }
}

/// Plans with the providers of a registry that runs.
pub(crate) struct Live {
    pub registry: Registry,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub configurations: Arc<Configurations>,
}

#[async_trait]
impl Asking for Live {
    async fn one(&self, object: &Object) -> Option<Planned> {
        let kind = object.gvk().ok()?.group_kind;
        let (connector, charge) = self.registry.in_charge_of(&kind)?;
        let settings = self.registry.settings();
        let answer = match Asked::new(&charge, &connector, settings, &self.store, &self.configurations) {
            Some(asked) => asked.ask(object, self.clock.now()).await,
            None => Err("its provider has not answered yet".to_owned()),
        };
        Some(planned(object, answer, Some(&charge)))
    }
}

type Answer = Result<(Action, Vec<FieldChange>, String), String>;

/// A provider that can be asked about a kind.
struct Asked(Planner);

impl Asked {
    /// None if the provider has not introduced itself yet.
    fn new(
        charge: &Charge,
        connector: &Arc<dyn Connector>,
        settings: &Settings,
        store: &Arc<dyn Store>,
        configurations: &Arc<Configurations>,
    ) -> Option<Self> {
        let Charge::Managed { served, handshake: Some(handshake), .. } = charge else { return None };
        Some(Self(Planner {
            rules: rules(settings, served, handshake),
            store: store.clone(),
            connector: connector.clone(),
            configurations: configurations.clone(),
        }))
    }

    async fn ask(&self, object: &Object, now: Timestamp) -> Answer {
        let plan = self.0.plan(object, now).await;
        Ok((plan.action.into(), plan.changes.into_iter().map(FieldChange::from).collect(), plan.reason))
    }
}

fn planned(object: &Object, answer: Answer, charge: Option<&Charge>) -> Planned {
    let sensitive = match charge {
        Some(Charge::Managed { served, .. }) => served.sensitive.clone(),
        _ => Vec::new(),
    };
    let (action, changes, reason) = answer.unwrap_or_else(|why| (Action::Unknown, Vec::new(), why));
    Planned {
        action,
        api_version: object.api_version().to_owned(),
        kind: object.kind().to_owned(),
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        changes,
        sensitive,
        reason,
    }
}

impl From<PlanAction> for Action {
    fn from(action: PlanAction) -> Self {
        match action {
            PlanAction::Create => Self::Create,
            PlanAction::Update => Self::Update,
            PlanAction::Replace => Self::Replace,
            PlanAction::Delete => Self::Delete,
            PlanAction::None => Self::None,
            PlanAction::Unknown => Self::Unknown,
        }
    }
}

impl From<Change> for FieldChange {
    fn from(change: Change) -> Self {
        let Change { path, from, to, replaces, is_sensitive } = change;
        let shown = |value: Option<Value>| value.filter(|_| !is_sensitive);
        Self { path, from: shown(from), to: shown(to), replaces, is_sensitive }
    }
}
