//! A store with faults: what it is told to get wrong it gets wrong, all else is the store behind it.

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch, ResourceVersion};
use concert_store::{
    By, Delete, Deleted, Error, Events, Kind, Page, PageRequest, Part, Query, Result, Store,
};
use serde_json::Value;

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Create,
    Update,
    Status,
    Patch,
}

/// What goes wrong in a call.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// It fails and nothing happens.
    Fails(fn(&ObjectKey) -> Error),
    /// It happens, and the answer is lost.
    LosesAnswer,
    /// Somebody lays this over the object right before.
    Meanwhile(Value),
    /// Somebody tears the object away right before, finalizers or not.
    Vanishes,
    /// The same, and puts another one in its place.
    IsReborn,
}

pub fn unavailable(_: &ObjectKey) -> Error {
    Error::unavailable("connection refused")
}

pub fn forbidden(key: &ObjectKey) -> Error {
    Error::Forbidden { key: key.clone(), why: "no".into() }
}

/// A write that was asked for, and what was stored if it succeeded.
#[derive(Clone, Debug)]
pub struct Write {
    pub verb: Verb,
    pub kind: GroupKind,
    pub stored: Option<Object>,
}

struct Plan {
    verb: Verb,
    kind: GroupKind,
    /// Calls that go well before it happens.
    skips: usize,
    /// How often it happens.
    times: usize,
    trouble: Trouble,
}

pub struct Faulty {
    inner: Arc<dyn Store>,
    plans: Mutex<Vec<Plan>>,
    writes: Mutex<Vec<Write>>,
}

impl Faulty {
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, plans: Mutex::default(), writes: Mutex::default() }
    }

    /// The n-th call from now on, counted from one, of this verb and kind is in trouble.
    pub fn trouble(&self, verb: Verb, kind: &GroupKind, nth: usize, trouble: Trouble) {
        let plan = Plan { verb, kind: kind.clone(), skips: nth - 1, times: 1, trouble };
        self.plans().push(plan);
    }

    /// The next so many calls of this verb and kind fail.
    pub fn fail(&self, verb: Verb, kind: &GroupKind, times: usize, error: fn(&ObjectKey) -> Error) {
        let trouble = Trouble::Fails(error);
        self.plans().push(Plan { verb, kind: kind.clone(), skips: 0, times, trouble });
    }

    /// Nothing more goes wrong.
    pub fn heal(&self) {
        self.plans().clear();
    }

    /// All writes since this was last asked.
    pub fn take_writes(&self) -> Vec<Write> {
        std::mem::take(&mut *self.writes.lock().unwrap())
    }

    fn plans(&self) -> MutexGuard<'_, Vec<Plan>> {
        self.plans.lock().unwrap()
    }

    fn due(&self, verb: Verb, kind: &GroupKind) -> Option<Trouble> {
        let mut plans = self.plans();
        let plan = plans.iter_mut().find(|it| it.verb == verb && it.kind == *kind && it.times > 0)?;
        if plan.skips > 0 {
            plan.skips -= 1;
            return None;
        }
        plan.times -= 1;
        Some(plan.trouble.clone())
    }

    /// Makes a call as planned.
    async fn call(
        &self,
        verb: Verb,
        key: &ObjectKey,
        call: impl Future<Output = Result<Encoded>> + Send,
    ) -> Result<Encoded> {
        let result = match self.due(verb, &key.kind) {
            None => call.await,
            Some(Trouble::Fails(error)) => Err(error(key)),
            Some(Trouble::LosesAnswer) => match call.await {
                Ok(_) => Err(unavailable(key)),
                Err(error) => Err(error),
            },
            Some(Trouble::Meanwhile(patch)) => {
                self.somebody(key, patch).await;
                call.await
            }
            Some(Trouble::Vanishes) => {
                self.tear_away(key).await;
                call.await
            }
            Some(Trouble::IsReborn) => {
                let old = self.tear_away(key).await;
                let mut new = Object::new(&old.gvk().unwrap(), old.namespace(), old.name());
                new.set("spec", old.spec().clone());
                self.inner.create(new, &By::actor("somebody")).await.unwrap();
                call.await
            }
        };
        if verb != Verb::Get {
            let stored = result.as_ref().ok().map(Encoded::decode);
            self.writes.lock().unwrap().push(Write { verb, kind: key.kind.clone(), stored });
        }
        result
    }

    async fn tear_away(&self, key: &ObjectKey) -> Object {
        self.somebody(key, serde_json::json!({"metadata": {"finalizers": null}})).await;
        let by = By::actor("somebody");
        self.inner.delete(key, &Delete::default(), &by).await.unwrap().into_object().decode()
    }

    async fn somebody(&self, key: &ObjectKey, patch: Value) {
        let patch = Patch::merge(patch).unwrap();
        self.inner.patch(key, Part::Main, &patch, &By::actor("somebody")).await.unwrap();
    }
}

#[async_trait]
impl Store for Faulty {
    async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        self.call(Verb::Get, key, self.inner.get(key)).await
    }

    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        match self.due(Verb::List, &query.kind) {
            Some(Trouble::Fails(error)) => Err(error(&ObjectKey::cluster(query.kind.clone(), ""))),
            _ => self.inner.list(query, page).await,
        }
    }

    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        self.inner.watch(query, from).await
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        let key = object.key().unwrap();
        self.call(Verb::Create, &key, self.inner.create(object, by)).await
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        let key = object.key().unwrap();
        self.call(Verb::Update, &key, self.inner.update(object, by)).await
    }

    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded> {
        let key = object.key().unwrap();
        self.call(Verb::Status, &key, self.inner.update_status(object, by)).await
    }

    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        self.call(Verb::Patch, key, self.inner.patch(key, part, patch, by)).await
    }

    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        self.inner.delete(key, options, by).await
    }

    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>> {
        self.inner.kind(kind).await
    }
}
