//! A seat that is a `coordination.k8s.io` Lease: what every cluster has.
//!
//! There is no fence, which the server would have to know of: every write of a controller carries the resource
//! version it was decided on. Providers, who see no such version, are told a term.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Timestamp, time};
use concert_store::{By, Clock, Error, Store};
use serde_json::{Value, json};

use super::{Claim, Record, Seat};

/// A Lease object.
pub struct LeaseSeat {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    key: ObjectKey,
}

impl LeaseSeat {
    /// The Lease called `name` in `namespace`.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, namespace: &str, name: &str) -> Self {
        let kind = GroupKind::new("coordination.k8s.io", "Lease");
        Self { store, clock, key: ObjectKey::namespaced(kind, namespace, name) }
    }

    /// Writes on the ground of what stands there, if whoever held it still does. Not on that of what was
    /// last seen: a renewal whose answer was lost has changed it too.
    async fn rewrite(&self, held: &Record, claim: &Claim) -> Result<Record, Error> {
        let stored = self.store.get(&self.key).await?;
        let stands = record(&stored);
        if stands.holder != held.holder {
            return Err(Error::Conflict { key: self.key.clone() });
        }
        let lease = stored.decode();
        let acquired = lease.spec()["acquireTime"].as_str().map(str::to_owned);
        Ok(record(&self.update(lease, self.spec(claim, stands.count, acquired)).await?))
    }

    /// Writes on the ground of `lease`. Labels and annotations that others gave it stay.
    async fn update(&self, mut lease: Object, spec: Value) -> Result<Encoded, Error> {
        let by = by(&spec);
        lease.set("spec", spec);
        self.store.update(lease, &by).await
    }

    /// What others read; nobody decides by these times.
    fn spec(&self, claim: &Claim, transitions: u64, acquired: Option<String>) -> Value {
        let now = time::micros(self.clock.now());
        json!({
            "holderIdentity": &*claim.holder,
            // Never less than the holder counts on.
            "leaseDurationSeconds": whole_seconds(claim.lease),
            "acquireTime": acquired.unwrap_or_else(|| now.clone()),
            "renewTime": now,
            "leaseTransitions": transitions,
        })
    }
}

#[async_trait]
impl Seat for LeaseSeat {
    async fn look(&self) -> Result<Option<Record>, Error> {
        match self.store.get(&self.key).await {
            Ok(lease) => Ok(Some(record(&lease))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn take(&self, seen: Option<&Record>, claim: &Claim) -> Result<Record, Error> {
        let (token, transitions) = seen.map_or(("", 0), |it| (&*it.token, it.count + 1));
        let acquired = acquired(self.clock.now(), seen.and_then(|it| it.term));
        let spec = self.spec(claim, transitions, Some(time::micros(acquired)));
        let written = if token.is_empty() {
            let kind = self.key.kind.at_version("v1");
            let mut lease = Object::new(&kind, &self.key.namespace, &self.key.name);
            let by = by(&spec);
            lease.set("spec", spec);
            self.store.create(lease, &by).await?
        } else {
            let mut lease = self.store.get(&self.key).await?.decode();
            lease.set_metadata("resourceVersion", token.into());
            self.update(lease, spec).await?
        };
        Ok(record(&written))
    }

    async fn renew(&self, held: &Record, claim: &Claim) -> Result<Record, Error> {
        match self.rewrite(held, claim).await {
            // A renewal of our own that was given up may have come in between; one look more tells.
            Err(Error::Conflict { .. }) => self.rewrite(held, claim).await,
            answer => answer,
        }
    }

    async fn leave(&self, held: &Record) -> Result<(), Error> {
        // As Kubernetes' own clients do: a lease of one second that nobody holds.
        let nobody = Claim { holder: "".into(), lease: Duration::from_secs(1) };
        match self.rewrite(held, &nobody).await {
            Err(Error::Conflict { .. }) => self.rewrite(held, &nobody).await.map(drop),
            answer => answer.map(drop),
        }
    }
}

fn whole_seconds(lease: Duration) -> u64 {
    lease.as_secs().saturating_add(u64::from(lease.subsec_nanos() > 0)).max(1)
}

fn by(spec: &Value) -> By {
    let holder = spec["holderIdentity"].as_str().unwrap_or_default();
    By::actor(format!("leader/{holder}")).because("leader election")
}

fn record(lease: &Encoded) -> Record {
    let object = lease.decode();
    let spec = object.spec();
    Record {
        holder: spec["holderIdentity"].as_str().unwrap_or_default().into(),
        lease: Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or_default()),
        token: lease.resource_version().0.clone(),
        fence: None,
        term: term(&spec["acquireTime"]),
        count: spec["leaseTransitions"].as_u64().unwrap_or_default(),
    }
}

/// When a seat is taken, in microseconds: later than it was taken before, whatever the clocks of the two
/// holders say. So it counts holders, over a Lease that was deleted, put back or called otherwise, too.
fn acquired(now: Timestamp, before: Option<u64>) -> Timestamp {
    let after = before.and_then(|it| i64::try_from(it).ok()?.checked_add(1));
    after.and_then(|it| Timestamp::from_microsecond(it).ok()).map_or(now, |it| it.max(now))
}

/// The term of whoever took a seat then.
fn term(acquired: &Value) -> Option<u64> {
    u64::try_from(time::parse(acquired.as_str()?)?.as_microsecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_taken_later_than_before_by_any_clock() {
        let at = |micros| Timestamp::from_microsecond(micros).unwrap();
        assert_eq!(acquired(at(5), None), at(5));
        assert_eq!(acquired(at(5), Some(3)), at(5));
        assert_eq!(acquired(at(5), Some(5)), at(6));
        assert_eq!(acquired(at(5), Some(9)), at(10));
        assert_eq!(acquired(at(5), Some(u64::MAX)), at(5));
        assert_eq!(term(&time::micros(at(1_700_000_000_000_001)).into()), Some(1_700_000_000_000_001));
        assert_eq!(term(&Value::Null), None);
    }
}
