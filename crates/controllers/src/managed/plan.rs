//! What would be done about an object, without doing it.

use std::sync::Arc;

use concert_model::{Object, Timestamp};
use concert_provider::{Action, Call, Class, Configuration, Connector, Plan, PlanAction};
use concert_store::{By, Error, Store};

use super::binding::policy_of;
use super::config::{ConfigError, Configurations};
use super::decide::Rules;
use super::journal::{self, Intent};
use super::reference::{self, ReferenceError};
use super::vocabulary::{annotation, message};

/// What is needed to ask about one kind.
pub struct Planner {
    /// What is known of the kind.
    pub rules: Rules,
    /// Where objects live. Nothing is written to it.
    pub store: Arc<dyn Store>,
    /// The way to the provider.
    pub connector: Arc<dyn Connector>,
    /// Reads accounts; used without tracking who uses them.
    pub configurations: Arc<Configurations>,
}

impl Planner {
    /// What would be done if `wished` were applied now.
    pub async fn plan(&self, wished: &Object, now: Timestamp) -> Plan {
        self.ask(wished, now).await.unwrap_or_else(|why| answer(PlanAction::Unknown, why))
    }

    async fn ask(&self, wished: &Object, now: Timestamp) -> Result<Plan, String> {
        let object = self.applied(wished).await?;
        if let Some(plan) = foreseen(&object, &self.rules) {
            return Ok(plan);
        }
        let references = &self.rules.served.references;
        let object = match reference::resolve(&*self.store, &object, references).await {
            Ok(resolved) => resolved.unwrap_or(object),
            Err(ReferenceError::NotReady { message, .. } | ReferenceError::Invalid(message)) => {
                return Err(format!("it would wait: {message}"));
            }
            Err(ReferenceError::Store(error)) => return Err(error.to_string()),
        };
        let account = self.account(&object).await?;
        let call = Call::within(self.rules.timeout);
        let connected = self.connector.connect(&object, account.as_ref(), &call).await;
        let mut external = connected.map_err(|error| error.message)?;
        let valid = external.validate(&object, &call).await;
        let plan = external.plan(&object, &call).await.map_err(|error| error.message);
        if let Err(error) = external.disconnect(&call).await {
            tracing::debug!(%error, "cannot disconnect from the provider");
        }
        match (valid, plan) {
            (Err(error), plan) if plan.as_ref().is_ok_and(|it| !is_change(it)) => {
                tracing::debug!(%error, "nothing is to be done, so nobody has to take it");
                Ok(restrained(plan?, &object, &self.rules, now))
            }
            (Err(error), _) if error.class == Class::Terminal => {
                Ok(answer(PlanAction::None, format!("it would be refused: {}", error.message)))
            }
            (Err(error), _) => Err(error.message),
            (Ok(()), plan) => Ok(restrained(plan?, &object, &self.rules, now)),
        }
    }

    /// The object as it would be stored: defaulted, validated, and not written.
    async fn applied(&self, wished: &Object) -> Result<Object, String> {
        let key = wished.key().map_err(|error| error.to_string())?;
        let by = By::actor("plan").dry_run();
        let stored = match self.store.get(&key).await {
            Ok(stored) => {
                let mut object = stored.decode();
                object.set("spec", wished.spec().clone());
                wished.annotations().iter().for_each(|(name, value)| object.set_annotation(name, value));
                wished.labels().iter().for_each(|(name, value)| object.set_label(name, value));
                self.store.update(object, &by).await
            }
            Err(Error::NotFound { .. }) => self.store.create(wished.clone(), &by).await,
            Err(error) => Err(error),
        };
        let mut object = stored.map_err(|error| error.to_string())?.decode();
        object.set("apiVersion", self.rules.served.kind.api_version().into());
        let has_name = object.annotation(annotation::EXTERNAL_NAME).is_some_and(|it| !it.is_empty());
        if self.rules.names_by_object && !has_name {
            let name = object.name().to_owned();
            object.set_annotation(annotation::EXTERNAL_NAME, &name);
        }
        Ok(object)
    }

    async fn account(&self, object: &Object) -> Result<Option<Arc<Configuration>>, String> {
        let mut served = self.rules.served.clone();
        // To count a user is a write.
        served.configs.iter_mut().for_each(|it| it.usage = None);
        let by = By::actor("plan").dry_run();
        self.configurations.of(object, &served, &by).await.map_err(|error| match error {
            ConfigError::Invalid(message) | ConfigError::NotReady { message, .. } => message,
            ConfigError::Store(error) => error.to_string(),
        })
    }
}

/// Whether the provider would be asked to take the object as it is declared.
fn is_change(plan: &Plan) -> bool {
    matches!(plan.action, PlanAction::Create | PlanAction::Update | PlanAction::Replace)
}

fn answer(action: PlanAction, reason: impl Into<String>) -> Plan {
    Plan { action, changes: Vec::new(), reason: reason.into() }
}

/// What can be said without asking the provider.
fn foreseen(object: &Object, rules: &Rules) -> Option<Plan> {
    let policy = policy_of(object, rules);
    let is_paused = object.annotation(annotation::PAUSED) == Some("true");
    match policy {
        Err(error) => Some(answer(PlanAction::None, error.0)),
        Ok(policy) if is_paused || policy.is_paused() => Some(answer(PlanAction::None, "it is paused")),
        Ok(policy) if object.deleted_at().is_some() => Some(if policy.deletes() {
            answer(PlanAction::Delete, "it is being deleted")
        } else {
            answer(
                PlanAction::None,
                "it is being deleted, and its policies leave the external resource alone",
            )
        }),
        // Where it can be looked up it may turn out to be there.
        Ok(_) if !rules.can_look_up => doubt(object, rules).map(|why| answer(PlanAction::Unknown, why)),
        Ok(_) => None,
    }
}

/// What is left of a plan once the policies have had their say.
fn restrained(plan: Plan, object: &Object, rules: &Rules, now: Timestamp) -> Plan {
    let Ok(policy) = policy_of(object, rules) else {
        return plan;
    };
    let forbidden = |action: &str| {
        let reason = format!("`spec.managementPolicies` does not allow {action}");
        Plan { action: PlanAction::None, reason, ..plan.clone() }
    };
    let doubt = doubt(object, rules);
    match plan.action {
        PlanAction::Create if journal::is_within_grace(object, rules.creation_grace, now) => {
            answer(PlanAction::None, message::PENDING)
        }
        PlanAction::Create if !policy.allows(Action::Create) => forbidden("Create"),
        PlanAction::Create if doubt.is_some() => answer(PlanAction::Unknown, doubt.unwrap_or_default()),
        PlanAction::Update | PlanAction::Replace if !policy.allows(Action::Update) => forbidden("Update"),
        // An external resource is never removed to be made anew: the update is tried, and refused.
        PlanAction::Replace => {
            let before = if plan.reason.is_empty() { String::new() } else { format!("{}; ", plan.reason) };
            Plan { reason: format!("{before}nothing is replaced, so it would be refused"), ..plan }
        }
        _ => plan,
    }
}

/// Why nobody can tell yet whether an object that has nothing to show for it will be made, or has been.
fn doubt(object: &Object, rules: &Rules) -> Option<&'static str> {
    match journal::intent(object) {
        // A second create of one name cannot make two.
        _ if rules.served.has_deterministic_names => None,
        Intent::Open { token: Some(_), .. } if rules.can_look_up => Some(message::CREATE_OPEN),
        Intent::Open { .. } => Some(message::CREATE_IN_DOUBT),
        Intent::Closed => None,
    }
}
