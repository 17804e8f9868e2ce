//! Work rows over the backend.

use async_trait::async_trait;
use bytes::Bytes;

use super::driver::Job;
use super::{Inner, Local};
use crate::backend::{Backend, Check, Done, Effect, Owner, Refusal, Txn};
use crate::contract::{Fence, ItemKey, Result};
use crate::error::Error;
use crate::work::{Work, WorkRow};

#[async_trait]
impl Work for Local {
    async fn read(&self, item: &ItemKey) -> Result<Option<WorkRow>> {
        let (inner, item) = (self.inner(), item.clone());
        let row = inner.read_one(move |backend: &dyn Backend| backend.work(&item)).await?;
        row.map(|row| inner.open_row(row)).transpose()
    }

    async fn scan(&self, controller: &str) -> Result<Vec<WorkRow>> {
        let (inner, controller) = (self.inner(), controller.to_owned());
        let rows = inner.read(move |backend: &dyn Backend| backend.work_of(&controller)).await?;
        rows.into_iter().map(|row| inner.open_row(row)).collect()
    }

    async fn claim(&self, item: &ItemKey, seen: u64, body: Bytes) -> Result<Fence> {
        let sealed = self.inner().shared.seal.seal(&Owner::Item(item.clone()), &body);
        let fence = Fence { item: item.clone(), number: seen };
        let done = self.inner().fenced(&fence, Effect::Claim(item.clone(), sealed)).await?;
        let number = done.claim.ok_or_else(|| Error::unavailable("a claim was given no number"))?;
        Ok(Fence { item: item.clone(), number })
    }

    async fn save(&self, fence: &Fence, body: Bytes) -> Result<()> {
        let sealed = self.inner().shared.seal.seal(&Owner::Item(fence.item.clone()), &body);
        self.inner().fenced(fence, Effect::Work(fence.item.clone(), Some(sealed))).await.map(drop)
    }

    async fn forget(&self, fence: &Fence) -> Result<()> {
        self.inner().fenced(fence, Effect::Work(fence.item.clone(), None)).await.map(drop)
    }
}

impl Inner {
    fn open_row(&self, row: WorkRow) -> Result<WorkRow> {
        let body = self.shared.seal.open(&Owner::Item(row.item.clone()), &row.body)?;
        Ok(WorkRow { body, ..row })
    }

    async fn fenced(&self, fence: &Fence, effect: Effect) -> Result<Done> {
        let txn = Txn { checks: vec![Check::Fence(fence.clone())], effects: vec![effect] };
        match self.driver.commit(Job { txn, writes: Vec::new() }).await? {
            Ok(done) => Ok(done),
            Err(Refusal::Fenced(fence)) => Err(Error::fenced(&fence)),
            Err(Refusal::Changed { key, .. }) => Err(Error::Conflict { key }),
            Err(Refusal::Written(kind)) => Err(Error::unavailable(format!("{kind} was not asked about"))),
        }
    }
}
