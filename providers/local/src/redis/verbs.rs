//! The calls.

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use concert_provider::{
    Call, Changes, Class, Configuration, Created, Deleted, Enumerate, Error, Founds, Handshake, Lookup,
    Observation, Plan, Provider, Token, Updated,
};
use futures_util::stream;
use serde_json::{Value, json};

use super::Redis;
use super::look::{self, State};
use super::record::{Name, Record};
use super::resp::Client;
use super::settings::{NAMES, Wanted};
use crate::found::found;
use crate::owner::{Owner, external_name};
use crate::{Result, kinds, plan};

impl Redis {
    /// The server that an object says is its own.
    fn record(&self, object: &Object) -> Result<Option<Record>> {
        match external_name(object).and_then(Name::new) {
            Some(name) => self.records.get(&name),
            None => Ok(None),
        }
    }

    async fn done(&self, object: &Object, record: &Record) -> Created {
        let state = self.look(record).await;
        Created {
            delta: look::delta(object, record, &state),
            connection: look::connection(object, record),
            ..Created::default()
        }
    }

    /// Starts a server that was written down, or forgets it again.
    async fn settle(&self, record: &mut Record, is_new: bool) -> Result<()> {
        match self.ensure_running(record).await {
            Ok(()) => Ok(()),
            Err(error) if !is_new => Err(error.in_doubt()),
            Err(error) => match self.records.remove(&record.name) {
                Ok(()) => {
                    self.forget(&record.name);
                    Err(error)
                }
                Err(_) => Err(error.in_doubt()),
            },
        }
    }

    /// Makes a server as it is wanted.
    async fn converge(&self, object: &Object, record: &mut Record) -> Result<()> {
        let wanted = Wanted::of(object)?;
        if matches!(self.look(record).await, State::Locked) {
            self.stop(record).await?;
        }
        // It starts as it was and is changed then: told to append while it is down, it would begin with an
        // empty log and ignore its snapshot.
        self.ensure_running(record).await?;
        apply(record, &wanted).await.map_err(|fault| {
            let message = format!("redis {} cannot be changed: {fault}", record.name);
            Error::new(Class::Transient, message)
        })?;
        record.settings = wanted;
        record.owner = Owner::of(object);
        self.records.save(record)
    }
}

async fn apply(record: &Record, wanted: &Wanted) -> Result<(), super::resp::Fault> {
    let mut client = Client::open(record.port, &record.password).await?;
    for (name, value) in NAMES.iter().zip(wanted.pairs()) {
        if client.setting(name).await? != value {
            client.set(name, &value).await?;
        }
    }
    Ok(())
}

// Claims are the server's business: it refuses a writer that was replaced before it gets here.
#[async_trait]
impl Provider for Redis {
    fn handshake(&self) -> Handshake {
        kinds::handshake(vec![kinds::redis_served()])
    }

    async fn validate(&self, object: &Object) -> Result<()> {
        Wanted::of(object)?;
        look::asked_port(object).map(drop)
    }

    async fn observe(&self, object: &Object, _: Option<&Configuration>) -> Result<Observation> {
        let Some(record) = self.record(object)? else { return Ok(Observation::default()) };
        let state = self.look(&record).await;
        Ok(look::observation(object, &record, &state))
    }

    async fn plan(&self, object: &Object, account: Option<&Configuration>) -> Result<Plan> {
        let mut fresh = Wanted::of(object)?.fresh();
        if let Some(port) = look::asked_port(object)? {
            fresh.push(plan::change("port", Value::Null, json!(port)));
        }
        Ok(plan::plan(object, self.observe(object, account).await?, fresh))
    }

    async fn create(
        &self,
        object: &Object,
        _: Option<&Configuration>,
        token: &Token,
        _: &Call,
    ) -> Result<Created> {
        let (reserved, is_new) =
            self.reserve(object, token, look::asked_port(object)?, Wanted::of(object)?)?;
        let _turn = self.turn(&reserved.name).await;
        // Somebody who was in line before may have given it up or removed it.
        let Some(mut record) = self.records.get(&reserved.name)? else {
            let message = format!("redis {} was given up meanwhile", reserved.name);
            return Err(Error::new(Class::Transient, message));
        };
        self.settle(&mut record, is_new).await?;
        Ok(self.done(object, &record).await)
    }

    async fn update(&self, object: &Object, _: Option<&Configuration>, _: &Call) -> Result<Updated> {
        let Some(found) = self.record(object)? else { return Err(missing(object)) };
        let _turn = self.turn(&found.name).await;
        let Some(mut record) = self.records.get(&found.name)? else { return Err(missing(object)) };
        record.owner.check(object, &format!("redis {}", record.name))?;
        let state = self.look(&record).await;
        plan::check_in_place(&look::differences(object, &record, &state)?)?;
        self.converge(object, &mut record).await.map_err(Error::in_doubt)?;
        Ok(self.done(object, &record).await)
    }

    async fn delete(&self, object: &Object, _: Option<&Configuration>, _: &Call) -> Result<Deleted> {
        let Some(found) = self.record(object)? else { return Ok(Deleted::default()) };
        let _turn = self.turn(&found.name).await;
        let Some(mut record) = self.records.get(&found.name)? else { return Ok(Deleted::default()) };
        record.owner.check(object, &format!("redis {}", record.name))?;
        self.tokens.burn(&record.token)?;
        let gone = async {
            self.stop(&mut record).await?;
            self.records.remove(&record.name)
        };
        gone.await.map_err(Error::in_doubt)?;
        self.forget(&found.name);
        Ok(Deleted::default())
    }

    async fn lookup(&self, object: &Object, _: Option<&Configuration>, token: &Token) -> Result<Lookup> {
        match self.made_by_or_never(token)? {
            Some(record) => Ok(Lookup::Found(self.done(object, &record).await.delta)),
            None => Ok(Lookup::CertainlyNone),
        }
    }

    async fn watch(&self, _: &GroupVersionKind) -> Result<Changes> {
        Ok(self.vigil.watch())
    }

    /// All of ours, since there are no others: a server remembers the object that it was made for, and not
    /// whether that is still there.
    async fn enumerate(&self, what: &Enumerate) -> Result<Founds> {
        let records = self.records.list()?;
        let wanted = records.into_iter().filter(|it| it.name.as_str().starts_with(&what.prefix));
        let founds: Vec<_> = wanted.map(|it| Ok(found(&what.kind, it.name.as_str()))).collect();
        Ok(Box::pin(stream::iter(founds)))
    }
}

fn missing(object: &Object) -> Error {
    let name = external_name(object).unwrap_or_default();
    Error::new(Class::Transient, format!("there is no redis {name:?} to update"))
}
