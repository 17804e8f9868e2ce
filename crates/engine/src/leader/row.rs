//! A seat that is a row of work state: taking it gives a fence.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_store::{Error, Fence, ItemKey, Work};
use serde::{Deserialize, Serialize};

use super::{Claim, Record, Seat};

/// The row `election` of `leader/<name>`.
pub struct RowSeat {
    work: Arc<dyn Work>,
    item: ItemKey,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Body {
    holder: Arc<str>,
    lease_millis: u64,
    renewals: u64,
}

impl RowSeat {
    /// The seat called `name`.
    pub fn new(work: Arc<dyn Work>, name: &str) -> Self {
        let item = ItemKey { controller: format!("leader/{name}").into(), item: "election".into() };
        Self { work, item }
    }
}

#[async_trait]
impl Seat for RowSeat {
    async fn look(&self) -> Result<Option<Record>, Error> {
        let Some(row) = self.work.read(&self.item).await? else { return Ok(None) };
        // A body of nobody's making is a seat that nobody holds.
        let body: Body = serde_json::from_slice(&row.body).unwrap_or_default();
        Ok(Some(body.record(Fence { item: row.item, number: row.fence })))
    }

    async fn take(&self, seen: Option<&Record>, claim: &Claim) -> Result<Record, Error> {
        let body = Body::new(claim, 0);
        let number = seen.and_then(|it| it.fence.as_ref()).map_or(0, |it| it.number);
        let fence = self.work.claim(&self.item, number, body.bytes().into()).await?;
        Ok(body.record(fence))
    }

    async fn renew(&self, held: &Record, claim: &Claim) -> Result<Record, Error> {
        let body = Body::new(claim, held.count + 1);
        let fence = held.fence.clone().ok_or_else(|| Error::unavailable("the seat was never taken"))?;
        self.work.save(&fence, body.bytes().into()).await?;
        Ok(body.record(fence))
    }

    async fn leave(&self, held: &Record) -> Result<(), Error> {
        let Some(fence) = &held.fence else { return Ok(()) };
        self.work.save(fence, Body::default().bytes().into()).await
    }
}

impl Body {
    fn new(claim: &Claim, renewals: u64) -> Self {
        let lease_millis = u64::try_from(claim.lease.as_millis()).unwrap_or(u64::MAX);
        Self { holder: claim.holder.clone(), lease_millis, renewals }
    }

    fn bytes(&self) -> Vec<u8> {
        // Strings and numbers can always be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn record(self, fence: Fence) -> Record {
        Record {
            token: format!("{}.{}", fence.number, self.renewals).into(),
            lease: Duration::from_millis(self.lease_millis),
            holder: self.holder,
            count: self.renewals,
            fence: Some(fence),
            term: None,
        }
    }
}
