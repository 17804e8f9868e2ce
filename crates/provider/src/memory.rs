//! An external system in memory and a provider for it: for tests, and as an example of the contract.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use futures_util::stream;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use crate::alpha::EXTERNAL_NAME;
use crate::answer::{Change, Created, Deleted, Delta, Lookup, Observation, Plan, PlanAction, Updated};
use crate::contract::{
    Call, Changes, Configuration, Enumerate, Found, Founds, Moved, Provider, Result, Token,
};
use crate::details::Details;
use crate::error::{Class, Error};
use crate::handshake::{Capabilities, Handshake, Protocol, Served};

/// Changes that a slow watcher may be behind before it is cut off.
const CHANGES_MAX: usize = 1024;

/// A provider whose external system is a map.
pub struct Memory {
    kinds: Vec<Served>,
    wants_accounts: bool,
    state: Mutex<State>,
    changes: broadcast::Sender<Moved>,
}

#[derive(Default)]
struct State {
    things: BTreeMap<String, Thing>,
    /// What became of each token: the thing it made, or none if it is burnt.
    tokens: HashMap<Token, Option<String>>,
    made: u64,
}

#[derive(Clone)]
struct Thing {
    kind: GroupVersionKind,
    /// The uid of the object that made it; empty for what nobody manages.
    owner: String,
    wanted: Value,
}

impl Memory {
    /// Serves these kinds and wants no accounts.
    pub fn new(kinds: impl IntoIterator<Item = GroupVersionKind>) -> Self {
        let kinds = kinds.into_iter().map(Served::new).collect();
        let changes = broadcast::Sender::new(CHANGES_MAX);
        Self { kinds, wants_accounts: false, state: Mutex::default(), changes }
    }

    /// The same, but only for accounts that have a credential.
    #[must_use]
    pub fn with_accounts(mut self) -> Self {
        self.wants_accounts = true;
        self
    }

    /// The external names of all things there are.
    pub fn names(&self) -> Vec<String> {
        self.state().things.keys().cloned().collect()
    }

    /// Puts a thing there that nobody manages.
    pub fn put(&self, kind: &GroupVersionKind, name: &str, wanted: Value) {
        let thing = Thing { kind: kind.clone(), owner: String::new(), wanted };
        self.state().things.insert(name.to_owned(), thing);
        self.tell(kind, name);
    }

    /// Removes a thing behind everybody's back.
    pub fn remove(&self, name: &str) {
        let gone = self.state().things.remove(name);
        if let Some(thing) = gone {
            self.tell(&thing.kind, name);
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the state in hand")
    }

    fn tell(&self, kind: &GroupVersionKind, name: &str) {
        let moved = Moved { kind: kind.clone(), external_name: name.to_owned(), object: String::new() };
        // Nobody may be watching.
        drop(self.changes.send(moved));
    }

    fn check(&self, account: Option<&Configuration>) -> Result<()> {
        if self.wants_accounts && account.is_none_or(|it| it.credentials.is_empty()) {
            return Err(Error::new(Class::Denied, "this provider needs an account with a credential"));
        }
        Ok(())
    }
}

fn wanted(object: &Object) -> Value {
    object.spec().get("forProvider").cloned().unwrap_or_else(|| object.spec().clone())
}

fn owner(object: &Object) -> String {
    object.uid().map(|it| it.to_string()).unwrap_or_default()
}

fn learnt(name: &str, thing: &Thing) -> Delta {
    let status = json!({"atProvider": {"id": name, "seen": thing.wanted}});
    let Value::Object(status) = status else { unreachable!("built as an object") };
    Delta { status: Some(status), external_name: Some(name.to_owned()), ..Delta::default() }
}

fn created(name: &str, thing: &Thing) -> Created {
    Created {
        delta: learnt(name, thing),
        connection: Details::new().with("endpoint", format!("memory://{name}")),
        ..Created::default()
    }
}

/// The fields that are not as wanted.
fn differences(is: &Value, wanted: &Value) -> Vec<Change> {
    let nothing = Map::new();
    let (is, wanted) = (is.as_object().unwrap_or(&nothing), wanted.as_object().unwrap_or(&nothing));
    let names: std::collections::BTreeSet<&String> = is.keys().chain(wanted.keys()).collect();
    let differing = names.into_iter().filter(|name| is.get(*name) != wanted.get(*name));
    differing
        .map(|name| Change {
            path: format!("spec.forProvider.{name}"),
            from: is.get(name).cloned(),
            to: wanted.get(name).cloned(),
            replaces: false,
            is_sensitive: false,
        })
        .collect()
}

#[async_trait]
impl Provider for Memory {
    fn handshake(&self) -> Handshake {
        Handshake {
            protocol: Protocol::V1,
            name: "memory".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: Capabilities {
                plan: true,
                lookup: true,
                watch: true,
                enumerate: true,
                configure: self.wants_accounts,
            },
            kinds: self.kinds.clone(),
            refused: Vec::new(),
        }
    }

    async fn observe(&self, object: &Object, account: Option<&Configuration>) -> Result<Observation> {
        self.check(account)?;
        let name = object.annotation(EXTERNAL_NAME).unwrap_or_default();
        let Some(thing) = self.state().things.get(name).cloned() else { return Ok(Observation::default()) };
        let diff = differences(&thing.wanted, &wanted(object));
        Ok(Observation {
            exists: true,
            is_up_to_date: diff.is_empty(),
            diff,
            delta: learnt(name, &thing),
            connection: Details::new().with("endpoint", format!("memory://{name}")),
        })
    }

    async fn plan(&self, object: &Object, account: Option<&Configuration>) -> Result<Plan> {
        let seen = self.observe(object, account).await?;
        let (action, changes) = match (seen.exists, seen.is_up_to_date) {
            (false, _) => (PlanAction::Create, differences(&Value::Null, &wanted(object))),
            (true, true) => (PlanAction::None, Vec::new()),
            (true, false) => (PlanAction::Update, seen.diff),
        };
        Ok(Plan { action, changes, reason: String::new() })
    }

    async fn create(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
        _: &Call,
    ) -> Result<Created> {
        self.check(account)?;
        let kind = object.gvk().map_err(|e| Error::new(Class::Terminal, e.to_string()))?;
        let mut state = self.state();
        match state.tokens.get(token) {
            Some(None) => return Err(Error::new(Class::Conflict, format!("token {token} is burnt"))),
            Some(Some(name)) => {
                if let Some(thing) = state.things.get(name) {
                    return Ok(created(name, thing));
                }
            }
            None => {}
        }
        state.made += 1;
        let name = format!("{}-{}", kind.group_kind.kind.to_lowercase(), state.made);
        let thing = Thing { kind: kind.clone(), owner: owner(object), wanted: wanted(object) };
        state.tokens.insert(token.clone(), Some(name.clone()));
        state.things.insert(name.clone(), thing.clone());
        drop(state);
        self.tell(&kind, &name);
        Ok(created(&name, &thing))
    }

    async fn update(&self, object: &Object, account: Option<&Configuration>, _: &Call) -> Result<Updated> {
        self.check(account)?;
        let name = object.annotation(EXTERNAL_NAME).unwrap_or_default().to_owned();
        let thing = {
            let mut state = self.state();
            let missing = || Error::new(Class::Transient, format!("{name:?} does not exist"));
            let thing = state.things.get_mut(&name).ok_or_else(missing)?;
            thing.wanted = wanted(object);
            thing.clone()
        };
        self.tell(&thing.kind, &name);
        Ok(created(&name, &thing))
    }

    async fn delete(&self, object: &Object, account: Option<&Configuration>, _: &Call) -> Result<Deleted> {
        self.check(account)?;
        let name = object.annotation(EXTERNAL_NAME).unwrap_or_default().to_owned();
        {
            let state = self.state();
            let Some(thing) = state.things.get(&name) else { return Ok(Deleted::default()) };
            if !thing.owner.is_empty() && thing.owner != owner(object) {
                return Err(Error::new(Class::Conflict, format!("{name} belongs to another object")));
            }
        }
        self.remove(&name);
        Ok(Deleted::default())
    }

    async fn lookup(&self, _: &Object, account: Option<&Configuration>, token: &Token) -> Result<Lookup> {
        self.check(account)?;
        let mut state = self.state();
        match state.tokens.get(token).cloned() {
            Some(Some(name)) => match state.things.get(&name) {
                Some(thing) => Ok(Lookup::Found(learnt(&name, thing))),
                None => Ok(Lookup::Found(Delta { external_name: Some(name), ..Delta::default() })),
            },
            Some(None) => Ok(Lookup::CertainlyNone),
            None => {
                state.tokens.insert(token.clone(), None);
                Ok(Lookup::CertainlyNone)
            }
        }
    }

    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        let (changes, kind) = (self.changes.subscribe(), kind.clone());
        Ok(Box::pin(stream::unfold((changes, kind), |(mut changes, kind)| async move {
            loop {
                match changes.recv().await {
                    Ok(moved) if moved.kind == kind => return Some((Ok(moved), (changes, kind))),
                    Ok(_) => {}
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        let error = Error::new(
                            Class::Transient,
                            "the watcher was too slow: look at everything again",
                        );
                        return Some((Err(error), (changes, kind)));
                    }
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })))
    }

    async fn enumerate(&self, what: &Enumerate) -> Result<Founds> {
        self.check(what.configuration.as_deref())?;
        let things = self.state().things.clone();
        let free = things.into_iter().filter(|(name, thing)| {
            thing.kind == what.kind && thing.owner.is_empty() && name.starts_with(&what.prefix)
        });
        let founds: Vec<_> = free
            .map(|(name, thing)| {
                let mut object = Object::new(&thing.kind, "", &name);
                object.set("spec", json!({"forProvider": thing.wanted}));
                object.set_annotation(EXTERNAL_NAME, &name);
                Ok(Found { external_name: name, object })
            })
            .collect();
        Ok(Box::pin(stream::iter(founds)))
    }
}
