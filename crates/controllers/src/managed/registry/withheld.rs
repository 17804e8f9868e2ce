//! A provider whose declaration made no sense from the start. Nobody knows the way to it, but what it was in
//! charge of is remembered, and another would make that again.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use concert_provider::{
    Call, Changes, Class, Configuration, Connector, Enumerate, Error, External, Founds, Handshake,
};

use super::{Declaration, Rank};

impl Declaration {
    /// Of a provider that nobody knows the way to, for this reason, and that said this when it was last heard
    /// of.
    pub fn withheld(name: Arc<str>, rank: Rank, last: Arc<Handshake>, why: &str) -> Self {
        let (kinds, allowance) = (Vec::new(), Default::default());
        let connector = Arc::new(NoWay { why: why.to_owned() });
        Self { name, connector, kinds, allowance, rank, last: Some(last) }
    }
}

/// The way to where there is none.
struct NoWay {
    why: String,
}

impl NoWay {
    fn refuse<T>(&self) -> Result<T, Error> {
        Err(Error::new(Class::Unreachable, self.why.as_str()))
    }
}

#[async_trait]
impl Connector for NoWay {
    async fn handshake(&self, _: &Call) -> Result<Handshake, Error> {
        self.refuse()
    }

    async fn connect(
        &self,
        _: &Object,
        _: Option<&Arc<Configuration>>,
        _: &Call,
    ) -> Result<Box<dyn External>, Error> {
        self.refuse()
    }

    async fn watch(&self, _: &GroupVersionKind) -> Result<Changes, Error> {
        self.refuse()
    }

    async fn enumerate(&self, _: &Enumerate, _: &Call) -> Result<Founds, Error> {
        self.refuse()
    }
}
