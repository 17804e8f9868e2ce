//! The calls.

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use concert_provider::{
    Call, Capabilities, Change, Changes, Class, Configuration, Created, Deleted, Delta, Enumerate, Error,
    Found, Founds, Handshake, Lookup, Observation, Plan, PlanAction, Protocol, Provider, Token, Updated,
};
use serde_json::{Value, json};

use super::{EXTERNAL_NAME, Example, Result, Subject, account, compare, error, status, watch};
use crate::cloud::{self, Create, Thing};
use crate::kinds::{self, Kind};

impl Example {
    async fn thing(&self, subject: &Subject<'_>) -> Result<Option<Thing>> {
        match subject.key() {
            Some(key) => self.api.read(&key, &subject.account).await.map_err(|fault| error(&fault)),
            None => Ok(None),
        }
    }

    fn done(&self, thing: &Thing, object: &Object) -> Created {
        let now = self.api.now();
        let settled = thing.ready_at.max(thing.visible_at);
        let again_after =
            settled.duration_since(now).try_into().ok().filter(|wait: &std::time::Duration| !wait.is_zero());
        Created {
            delta: Delta { spec: None, ..status::delta(thing, object.spec(), now) },
            connection: status::connection(thing),
            progress: again_after.map(|_| format!("{} is {}", thing.key, thing.state(now).as_str())),
            again_after,
            ..Created::default()
        }
    }
}

// Claims are the server's business: it refuses a writer that was replaced before it gets here.
#[async_trait]
impl Provider for Example {
    fn handshake(&self) -> Handshake {
        let mut kinds = kinds::served(self.creation_grace);
        if self.serves_claims {
            kinds.extend(kinds::claimed(self.creation_grace));
        }
        Handshake {
            protocol: Protocol::V1,
            name: "example".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: Capabilities {
                plan: true,
                lookup: true,
                watch: true,
                enumerate: true,
                configure: true,
            },
            kinds,
            refused: Vec::new(),
        }
    }

    async fn validate(&self, object: &Object) -> Result<()> {
        Subject::new(object, None)?;
        let refuse = |field: &str, rule: &str| {
            Err(Error::new(Class::Terminal, format!("spec.forProvider.{field}: {rule}")))
        };
        let fields = object.spec().get("forProvider").unwrap_or(&Value::Null);
        match &fields["size"] {
            Value::Null => {}
            size if size.as_i64().is_some_and(|size| size >= 0) => {}
            // The older protocol has only doubles.
            size if size.as_f64().is_some_and(|size| size >= 0.0 && size.fract() == 0.0) => {}
            _ => return refuse("size", "must be a whole number from 0 on"),
        }
        match &fields["region"] {
            Value::Null => Ok(()),
            Value::String(region) if !region.is_empty() => Ok(()),
            _ => refuse("region", "must be a text that is not empty"),
        }
    }

    async fn configure(&self, configuration: &Configuration) -> Result<()> {
        // The one thing this cloud knows about credentials, so that tests can have wrong ones.
        let is_wrong = configuration.credentials.iter().any(|(_, bytes)| bytes.trim_ascii() == b"wrong");
        if is_wrong {
            let message = format!("the cloud does not accept the credentials of {}", configuration.name);
            return Err(Error::new(Class::Denied, message));
        }
        Ok(())
    }

    async fn observe(&self, object: &Object, configuration: Option<&Configuration>) -> Result<Observation> {
        let subject = Subject::new(object, configuration)?;
        let Some(thing) = self.thing(&subject).await? else { return Ok(Observation::default()) };
        let diff = compare::differences(&compare::wanted(object.spec()), &thing.properties);
        Ok(Observation {
            exists: true,
            is_up_to_date: diff.is_empty(),
            diff,
            delta: status::delta(&thing, object.spec(), self.api.now()),
            connection: status::connection(&thing),
        })
    }

    async fn plan(&self, object: &Object, configuration: Option<&Configuration>) -> Result<Plan> {
        let subject = Subject::new(object, configuration)?;
        self.validate(object).await?;
        let thing = self.thing(&subject).await?;
        let wanted = compare::wanted(object.spec());
        let is_deleted = object.deleted_at().is_some();
        let (action, changes) = match (thing, is_deleted) {
            (None, true) => (PlanAction::None, Vec::new()),
            (None, false) => (PlanAction::Create, compare::differences(&wanted, &serde_json::Map::new())),
            (Some(_), true) => (PlanAction::Delete, Vec::new()),
            (Some(thing), false) => {
                let changes = compare::differences(&wanted, &thing.properties);
                (verb(&changes), changes)
            }
        };
        let replaced = changes.iter().find(|change| change.replaces);
        let reason = replaced.map(|it| format!("{} cannot change in place", it.path)).unwrap_or_default();
        Ok(Plan { action, changes, reason })
    }

    async fn create(
        &self,
        object: &Object,
        configuration: Option<&Configuration>,
        token: &Token,
        call: &Call,
    ) -> Result<Created> {
        let subject = Subject::new(object, configuration)?;
        self.validate(object).await?;
        let name = subject.key().map(|key| key.id).filter(|_| subject.kind.has_deterministic_names);
        let create = Create {
            kind: subject.kind.thing.to_owned(),
            name,
            token: Some(token.to_string()),
            account: subject.account.clone(),
            owner: subject.owner(),
            properties: compare::wanted(object.spec()),
            fence: call.fence,
        };
        let thing = self.api.create(create).await.map_err(|fault| error(&fault))?;
        Ok(self.done(&thing, object))
    }

    async fn update(
        &self,
        object: &Object,
        configuration: Option<&Configuration>,
        call: &Call,
    ) -> Result<Updated> {
        let subject = Subject::new(object, configuration)?;
        self.validate(object).await?;
        let Some(key) = subject.key() else {
            return Err(Error::new(
                Class::Transient,
                "there is nothing to update: the external name is not set",
            ));
        };
        let wanted = compare::wanted(object.spec());
        let updated = self.api.update(&key, wanted, &subject.account, call.fence).await;
        let thing = updated.map_err(|fault| match fault {
            cloud::Fault::Immutable { field } => {
                let message = format!("spec.forProvider.{field}: cannot change in place");
                Error::new(Class::Terminal, message)
            }
            fault => error(&fault),
        })?;
        Ok(self.done(&thing, object))
    }

    async fn delete(
        &self,
        object: &Object,
        configuration: Option<&Configuration>,
        call: &Call,
    ) -> Result<Deleted> {
        let subject = Subject::new(object, configuration)?;
        if let Some(key) = subject.key() {
            self.api.delete(&key, &subject.account, call.fence).await.map_err(|fault| error(&fault))?;
        }
        Ok(Deleted::default())
    }

    async fn lookup(
        &self,
        object: &Object,
        configuration: Option<&Configuration>,
        token: &Token,
    ) -> Result<Lookup> {
        let subject = Subject::new(object, configuration)?;
        let found = self.api.lookup(&token.0, &subject.account).await.map_err(|fault| error(&fault))?;
        Ok(match found {
            cloud::Lookup::Found(thing) => Lookup::Found(self.done(&thing, object).delta),
            cloud::Lookup::CertainlyNone => Lookup::CertainlyNone,
        })
    }

    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        let kind = served(kind)?;
        Ok(watch::changes(self.api.clone(), kind))
    }

    async fn enumerate(&self, what: &Enumerate) -> Result<Founds> {
        let kind = served(&what.kind)?;
        let account = account(what.configuration.as_deref());
        let listed = self.api.list(kind.thing, &what.prefix, &account).await;
        let things = listed.map_err(|fault| error(&fault))?;
        let unmanaged = things.into_iter().filter(|thing| thing.owner.uid.is_empty());
        let founds: Vec<_> = unmanaged.map(|thing| Ok(found(kind, &thing))).collect();
        Ok(Box::pin(futures_util::stream::iter(founds)))
    }
}

fn verb(changes: &[Change]) -> PlanAction {
    match changes {
        [] => PlanAction::None,
        _ if changes.iter().any(|change| change.replaces) => PlanAction::Replace,
        _ => PlanAction::Update,
    }
}

fn served(kind: &GroupVersionKind) -> Result<&'static Kind> {
    Kind::of(kind)
        .ok_or_else(|| Error::new(Class::NotServed, format!("{kind} is not served by this provider")))
}

/// An object that imports a thing without touching it.
fn found(kind: &Kind, thing: &Thing) -> Found {
    let mut object = Object::new(&kind.gvk(), "", &thing.key.id);
    object.set_annotation(EXTERNAL_NAME, &thing.key.id);
    let mut properties = thing.properties.clone();
    // Whoever lists things is not therefore entitled to their passwords.
    properties.remove("password");
    object.set("spec", json!({"managementPolicies": ["Observe"], "forProvider": properties}));
    Found { external_name: thing.key.id.clone(), object }
}
