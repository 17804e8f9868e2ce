//! A provider that does as it is told: a small external system, and answers that are put in its mouth.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use concert_controllers::managed::vocabulary::annotation::EXTERNAL_NAME;
use concert_model::{GroupVersionKind, Object};
use concert_provider::{
    Call, Capabilities, Change, Changes, Class, Configuration, Created, Deleted, Delta, Details, Error,
    Handshake, Lookup, Moved, Observation, Plan, PlanAction, Protocol, Provider, Served, Token, Updated,
};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

type Result<T> = std::result::Result<T, Error>;

/// Things by their external names. A thing is the `spec.forProvider` that was asked for.
pub struct Scripted {
    kinds: Vec<Served>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    things: BTreeMap<String, Value>,
    tokens: HashMap<Token, String>,
    made: usize,
    /// Those who listen for changes, if there can be any.
    listeners: Option<Vec<mpsc::Sender<Moved>>>,
    /// What it was asked, and about which object.
    asked: Vec<(&'static str, Object)>,
    tokens_seen: Vec<Token>,
    script: Script,
}

/// Answers to give in the place of true ones, first to last.
#[derive(Default)]
pub struct Script {
    pub observe: VecDeque<Result<Observation>>,
    pub create: VecDeque<Result<Created>>,
    pub update: VecDeque<Result<Updated>>,
    pub delete: VecDeque<Result<Deleted>>,
    pub lookup: VecDeque<Result<Lookup>>,
    pub validate: VecDeque<Result<()>>,
    /// What every plan is.
    pub plan: Option<PlanAction>,
    /// Fields of `spec` to late-initialise in each true observation.
    pub late: Option<Map<String, Value>>,
    /// Goes into the true answer of the next update, and stays.
    pub password: Option<String>,
    /// A create that happens and then fails so.
    pub create_then: Option<Error>,
}

impl Scripted {
    pub fn new(kinds: Vec<Served>) -> Self {
        Self { kinds, state: Mutex::default() }
    }

    /// One that pushes changes.
    pub fn pushing(kinds: Vec<Served>) -> Self {
        let state = State { listeners: Some(Vec::new()), ..State::default() };
        Self { kinds, state: Mutex::new(state) }
    }

    /// How many listen for changes.
    pub fn listeners(&self) -> usize {
        self.state().listeners.as_ref().map_or(0, Vec::len)
    }

    /// Tells all who listen that a thing has changed.
    pub fn push(&self, kind: &GroupVersionKind, name: &str) {
        let moved = Moved { kind: kind.clone(), external_name: name.to_owned(), object: String::new() };
        self.state().listeners.iter().flatten().for_each(|it| it.try_send(moved.clone()).unwrap());
    }

    /// Ends the streams of all who listen.
    pub fn hang_up(&self) {
        self.state().listeners.iter_mut().for_each(Vec::clear);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Puts words in its mouth.
    pub fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.state().script);
    }

    /// Puts a thing there.
    pub fn put(&self, name: &str, thing: Value) {
        self.state().things.insert(name.to_owned(), thing);
    }

    /// Takes a thing away.
    pub fn remove(&self, name: &str) {
        self.state().things.remove(name);
    }

    /// All things there are.
    pub fn things(&self) -> BTreeMap<String, Value> {
        self.state().things.clone()
    }

    /// What it was asked since this was last asked.
    pub fn take_asked(&self) -> Vec<(&'static str, Object)> {
        std::mem::take(&mut self.state().asked)
    }

    /// The tokens of all creates.
    pub fn tokens(&self) -> Vec<Token> {
        self.state().tokens_seen.clone()
    }
}

fn wanted(object: &Object) -> Value {
    object.spec().get("forProvider").cloned().unwrap_or_default()
}

fn name_of(object: &Object) -> String {
    object.annotation(EXTERNAL_NAME).unwrap_or_default().to_owned()
}

/// An observation as scripts have it: there, and up to date or not.
pub fn seen(name: &str, thing: &Value, diff: Vec<Change>) -> Observation {
    let ready = json!({"type": "Ready", "status": "True", "reason": "Available"});
    let status = json!({"atProvider": {"id": name, "seen": thing}, "conditions": [ready]});
    Observation {
        exists: true,
        is_up_to_date: diff.is_empty(),
        diff,
        delta: Delta {
            status: status.as_object().cloned(),
            external_name: Some(name.to_owned()),
            ..Delta::default()
        },
        connection: Details::new().with("endpoint", format!("scripted://{name}")),
    }
}

pub fn absent() -> Observation {
    Observation::default()
}

fn differences(is: &Value, wanted: &Value) -> Vec<Change> {
    let nothing = Map::new();
    let (is, wanted) = (is.as_object().unwrap_or(&nothing), wanted.as_object().unwrap_or(&nothing));
    let differs = |(name, value): &(&String, &Value)| is.get(*name) != Some(value);
    let change = |(name, value): (&String, &Value)| Change {
        path: format!("spec.forProvider.{name}"),
        from: is.get(name).cloned(),
        to: Some(value.clone()),
        replaces: false,
        is_sensitive: false,
    };
    wanted.iter().filter(differs).map(change).collect()
}

#[async_trait]
impl Provider for Scripted {
    fn handshake(&self) -> Handshake {
        Handshake {
            protocol: Protocol::V1,
            name: "scripted".into(),
            version: "1".into(),
            capabilities: Capabilities {
                lookup: true,
                watch: self.state().listeners.is_some(),
                ..Capabilities::default()
            },
            kinds: self.kinds.clone(),
            refused: Vec::new(),
        }
    }

    async fn validate(&self, _: &Object) -> Result<()> {
        self.state().script.validate.pop_front().unwrap_or(Ok(()))
    }

    async fn observe(&self, object: &Object, _: Option<&Configuration>) -> Result<Observation> {
        let mut state = self.state();
        state.asked.push(("observe", object.clone()));
        if let Some(answer) = state.script.observe.pop_front() {
            return answer;
        }
        let name = name_of(object);
        let Some(thing) = state.things.get(&name) else { return Ok(absent()) };
        // What is late-initialised is what the thing has anyway.
        let mut thing = thing.clone();
        let late = state.script.late.as_ref().and_then(|it| it.get("forProvider")?.as_object());
        for (field, value) in late.into_iter().flatten() {
            thing[field] = value.clone();
        }
        let mut observation = seen(&name, &thing, differences(&thing, &wanted(object)));
        observation.delta.spec = state.script.late.clone();
        Ok(observation)
    }

    async fn plan(&self, _: &Object, _: Option<&Configuration>) -> Result<Plan> {
        let action = self.state().script.plan.unwrap_or(PlanAction::Unknown);
        Ok(Plan { action, changes: Vec::new(), reason: String::new() })
    }

    async fn create(
        &self,
        object: &Object,
        _: Option<&Configuration>,
        token: &Token,
        _: &Call,
    ) -> Result<Created> {
        let mut state = self.state();
        state.asked.push(("create", object.clone()));
        state.tokens_seen.push(token.clone());
        if let Some(answer) = state.script.create.pop_front() {
            return answer;
        }
        state.made += 1;
        let name = Some(name_of(object)).filter(|it| !it.is_empty());
        let name = name.unwrap_or_else(|| format!("thing-{}", state.made));
        let thing = wanted(object);
        state.things.insert(name.clone(), thing.clone());
        state.tokens.insert(token.clone(), name.clone());
        if let Some(error) = state.script.create_then.take() {
            return Err(error);
        }
        let Observation { mut delta, connection, .. } = seen(&name, &thing, Vec::new());
        delta.status = None;
        Ok(Created { delta, connection, ..Created::default() })
    }

    async fn update(&self, object: &Object, _: Option<&Configuration>, _: &Call) -> Result<Updated> {
        let mut state = self.state();
        state.asked.push(("update", object.clone()));
        if let Some(answer) = state.script.update.pop_front() {
            return answer;
        }
        state.things.insert(name_of(object), wanted(object));
        let mut updated = Updated::default();
        if let Some(password) = &state.script.password {
            updated.connection.set("password", password.as_bytes());
        }
        Ok(updated)
    }

    async fn delete(&self, object: &Object, _: Option<&Configuration>, _: &Call) -> Result<Deleted> {
        let mut state = self.state();
        state.asked.push(("delete", object.clone()));
        if let Some(answer) = state.script.delete.pop_front() {
            return answer;
        }
        state.things.remove(&name_of(object));
        Ok(Deleted::default())
    }

    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        // One change at a time: nobody sends more here.
        let (sender, receiver) = mpsc::channel(1);
        match &mut self.state().listeners {
            Some(listeners) => listeners.push(sender),
            None => return Err(Error::new(Class::NotServed, format!("changes of {kind} are not pushed"))),
        }
        Ok(Box::pin(futures_util::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|moved| (Ok(moved), receiver))
        })))
    }

    async fn lookup(&self, object: &Object, _: Option<&Configuration>, token: &Token) -> Result<Lookup> {
        let mut state = self.state();
        state.asked.push(("lookup", object.clone()));
        if let Some(answer) = state.script.lookup.pop_front() {
            return answer;
        }
        Ok(match state.tokens.get(token) {
            Some(name) => Lookup::Found(Delta { external_name: Some(name.clone()), ..Delta::default() }),
            None => Lookup::CertainlyNone,
        })
    }
}
