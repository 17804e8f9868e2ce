//! A seat that is a `coordination.k8s.io` Lease: what every cluster has.
//!
//! There is no fence: every write of a controller carries the resource version it was decided on.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, time};
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

    async fn write(&self, token: &str, spec: Value) -> Result<Encoded, Error> {
        let mut lease = Object::new(&self.key.kind.at_version("v1"), &self.key.namespace, &self.key.name);
        let holder = spec["holderIdentity"].as_str().unwrap_or_default().to_owned();
        lease.set("spec", spec);
        let by = By::actor(format!("leader/{holder}")).because("leader election");
        if token.is_empty() {
            return self.store.create(lease, &by).await;
        }
        // Labels and annotations that others gave the lease stay.
        let mut stored = self.store.get(&self.key).await?.decode();
        stored.set_metadata("resourceVersion", token.into());
        stored.set("spec", lease.spec().clone());
        self.store.update(stored, &by).await
    }

    /// What others read; nobody decides by these times.
    fn spec(&self, claim: &Claim, transitions: u64, acquired: Option<String>) -> Value {
        let now = time::micros(self.clock.now());
        json!({
            "holderIdentity": &*claim.holder,
            "leaseDurationSeconds": claim.lease.as_secs().max(1),
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
        Ok(record(&self.write(token, self.spec(claim, transitions, None)).await?))
    }

    async fn renew(&self, held: &Record, claim: &Claim) -> Result<Record, Error> {
        let lease = self.store.get(&self.key).await?.decode();
        let acquired = lease.spec()["acquireTime"].as_str().map(str::to_owned);
        Ok(record(&self.write(&held.token, self.spec(claim, held.count, acquired)).await?))
    }

    async fn leave(&self, held: &Record) -> Result<(), Error> {
        // As Kubernetes' own clients do: a lease of one second that nobody holds.
        let nobody = Claim { holder: "".into(), lease: Duration::from_secs(1) };
        self.write(&held.token, self.spec(&nobody, held.count, None)).await.map(drop)
    }
}

fn record(lease: &Encoded) -> Record {
    let object = lease.decode();
    let spec = object.spec();
    Record {
        holder: spec["holderIdentity"].as_str().unwrap_or_default().into(),
        lease: Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or_default()),
        token: lease.resource_version().0.clone(),
        fence: None,
        count: spec["leaseTransitions"].as_u64().unwrap_or_default(),
    }
}
