//! Both kinds behind one door.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use concert_provider::{
    Call, Changes, Class, Configuration, Created, Deleted, Enumerate, Error, Founds, Handshake, Lookup,
    Observation, Plan, Provider, Token, Updated,
};

use crate::{Postgres, Redis, Result, kinds};

/// Serves what this machine has.
pub struct Local {
    redis: Arc<Redis>,
    postgres: Postgres,
}

impl Local {
    /// A provider of both.
    pub fn new(redis: Arc<Redis>, postgres: Postgres) -> Self {
        Self { redis, postgres }
    }

    fn of_kind(&self, kind: &GroupVersionKind) -> Result<&dyn Provider> {
        match kind {
            kind if *kind == kinds::redis_instance() => Ok(&*self.redis),
            kind if *kind == kinds::postgresql_database() => Ok(&self.postgres),
            _ => Err(Error::new(Class::NotServed, format!("{kind} is not served by this provider"))),
        }
    }

    fn of(&self, object: &Object) -> Result<&dyn Provider> {
        let kind = object.gvk().map_err(|e| Error::new(Class::Terminal, e.to_string()))?;
        self.of_kind(&kind)
    }
}

#[async_trait]
impl Provider for Local {
    fn handshake(&self) -> Handshake {
        kinds::handshake(vec![kinds::redis_served(), kinds::postgresql_served()])
    }

    async fn validate(&self, object: &Object) -> Result<()> {
        self.of(object)?.validate(object).await
    }

    async fn configure(&self, configuration: &Configuration) -> Result<()> {
        // Only databases have accounts.
        self.postgres.configure(configuration).await
    }

    async fn observe(&self, object: &Object, account: Option<&Configuration>) -> Result<Observation> {
        self.of(object)?.observe(object, account).await
    }

    async fn plan(&self, object: &Object, account: Option<&Configuration>) -> Result<Plan> {
        self.of(object)?.plan(object, account).await
    }

    async fn create(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
        call: &Call,
    ) -> Result<Created> {
        self.of(object)?.create(object, account, token, call).await
    }

    async fn update(&self, object: &Object, account: Option<&Configuration>, call: &Call) -> Result<Updated> {
        self.of(object)?.update(object, account, call).await
    }

    async fn delete(&self, object: &Object, account: Option<&Configuration>, call: &Call) -> Result<Deleted> {
        self.of(object)?.delete(object, account, call).await
    }

    async fn lookup(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
    ) -> Result<Lookup> {
        self.of(object)?.lookup(object, account, token).await
    }

    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        self.of_kind(kind)?.watch(kind).await
    }

    async fn enumerate(&self, what: &Enumerate) -> Result<Founds> {
        self.of_kind(&what.kind)?.enumerate(what).await
    }
}
