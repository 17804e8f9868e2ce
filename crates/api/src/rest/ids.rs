//! Numbers by which REST knows things.
//!
//! One counter for each sort of thing. A number is given out once, whatever becomes of the thing: a
//! counter is written down ahead of what it gives out, and what was not given out is taken back only by
//! who stops in an orderly way. Replicas take turns: each draws from numbers that were written down for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use concert_store::{Error, Fence, ItemKey, Local, Result, Work};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

/// Numbers written down at once: a thousand creations cost sixteen writes, a crash leaves a gap of sixty
/// at most.
const AHEAD: u64 = 64;

/// Tries at a turn that other replicas keep taking.
const TRIES_MAX: usize = 16;

/// Whose the rows are.
const CONTROLLER: &str = "no8s/ids";

/// The counter of resources.
pub const RESOURCES: &str = "resources";
/// The counter of resource types.
pub const TYPES: &str = "resource-types";

/// Gives out numbers. Cheap to clone.
#[derive(Clone)]
pub struct Ids(Arc<Inner>);

struct Inner {
    store: Local,
    /// Held while a row is written: who waits finds numbers.
    counters: Mutex<BTreeMap<String, Counter>>,
}

struct Counter {
    fence: Fence,
    /// The next one to give out.
    next: u64,
    /// None from here on may be given out before it is written down.
    end: u64,
}

#[derive(Serialize, Deserialize)]
struct Row {
    next: u64,
}

impl Row {
    fn bytes(&self) -> bytes::Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}

impl Ids {
    /// Counters of `store`. Nothing is read yet.
    pub fn new(store: Local) -> Self {
        Self(Arc::new(Inner { store, counters: Mutex::default() }))
    }

    /// A number that no thing of this sort ever had.
    ///
    /// # Errors
    /// [`concert_store::Error::Unavailable`], [`concert_store::Error::Full`];
    /// [`concert_store::Error::Fenced`] if somebody else counts on a store that is not to be shared.
    pub async fn draw(&self, sort: &str) -> Result<u64> {
        let mut counters = self.0.counters.lock().await;
        let mut tries = TRIES_MAX;
        loop {
            match self.next(&mut counters, sort).await {
                // Another replica has counted on since: these numbers are at an end, and we take others.
                Err(Error::Fenced { .. }) if self.0.store.is_shared() && tries > 0 => {
                    tries -= 1;
                    counters.remove(sort);
                }
                drawn => return drawn,
            }
        }
    }

    async fn next(&self, counters: &mut BTreeMap<String, Counter>, sort: &str) -> Result<u64> {
        let counter = self.counter(counters, sort).await?;
        if counter.next == counter.end {
            let end = counter.end + AHEAD;
            self.0.store.save(&counter.fence, Row { next: end }.bytes()).await?;
            counter.end = end;
        }
        counter.next += 1;
        Ok(counter.next - 1)
    }

    /// True if this number may have been given out.
    ///
    /// # Errors
    /// As [`Ids::draw`].
    pub async fn is_given(&self, sort: &str, id: u64) -> Result<bool> {
        if self.0.store.is_shared() {
            let row = self.0.store.read(&item_of(sort)).await?;
            return Ok(id > 0 && id < next_of(row.map(|row| row.body))?);
        }
        let mut counters = self.0.counters.lock().await;
        Ok(id > 0 && id < self.counter(&mut counters, sort).await?.next)
    }

    /// Writes down how far the counters came, so that the next start goes on without a gap.
    pub async fn close(&self) {
        let counters = std::mem::take(&mut *self.0.counters.lock().await);
        for (sort, counter) in counters {
            let saved = self.0.store.save(&counter.fence, Row { next: counter.next }.bytes()).await;
            if let Err(error) = saved
                && !self.0.store.is_shared()
            {
                tracing::warn!(sort, %error, "numbers that were not given out are lost");
            }
        }
    }

    async fn counter<'a>(
        &self,
        counters: &'a mut BTreeMap<String, Counter>,
        sort: &str,
    ) -> Result<&'a mut Counter> {
        if !counters.contains_key(sort) {
            let item = item_of(sort);
            let row = self.0.store.read(&item).await?;
            let (seen, body) = row.map_or((0, None), |row| (row.fence, Some(row.body)));
            let next = next_of(body)?;
            let end = next + AHEAD;
            let fence = self.0.store.claim(&item, seen, Row { next: end }.bytes()).await?;
            counters.insert(sort.to_owned(), Counter { fence, next, end });
        }
        Ok(counters.get_mut(sort).expect("it was there or put there"))
    }
}

fn item_of(sort: &str) -> ItemKey {
    ItemKey { controller: CONTROLLER.into(), item: sort.into() }
}

/// What a row says; the first number where there is none.
fn next_of(body: Option<bytes::Bytes>) -> Result<u64> {
    let Some(body) = body else { return Ok(1) };
    let row: Row = serde_json::from_slice(&body).map_err(|error| Error::Unavailable(error.into()))?;
    Ok(row.next)
}

#[cfg(test)]
mod tests {
    use concert_store::backend::memory::Memory;
    use concert_store::{Chance, Config, SystemClock};

    use super::*;

    fn store() -> Local {
        let config = Config::new(Arc::new(SystemClock::new()), Chance::seeded(1)).inline();
        Local::open(Arc::new(Memory::new()), config).unwrap()
    }

    #[tokio::test]
    async fn numbers_start_at_one_and_each_sort_has_its_own() {
        let ids = Ids::new(store());
        for expected in 1..=200 {
            assert_eq!(ids.draw(RESOURCES).await.unwrap(), expected);
        }
        assert_eq!(ids.draw(TYPES).await.unwrap(), 1);
        assert!(ids.is_given(RESOURCES, 200).await.unwrap());
        assert!(!ids.is_given(RESOURCES, 201).await.unwrap());
        assert!(!ids.is_given(RESOURCES, 0).await.unwrap());
    }

    #[tokio::test]
    async fn no_number_is_given_twice_whatever_the_end_was() {
        let store = store();
        let crashed = Ids::new(store.clone());
        crashed.draw(RESOURCES).await.unwrap();
        let orderly = Ids::new(store.clone());
        assert_eq!(orderly.draw(RESOURCES).await.unwrap(), 1 + AHEAD);
        orderly.close().await;
        assert_eq!(Ids::new(store).draw(RESOURCES).await.unwrap(), 2 + AHEAD);
    }

    #[tokio::test]
    async fn who_was_overtaken_gives_out_no_more_than_it_had_written_down() {
        let store = store();
        let (old, new) = (Ids::new(store.clone()), Ids::new(store));
        let mut given = vec![old.draw(RESOURCES).await.unwrap(), new.draw(RESOURCES).await.unwrap()];
        while let Ok(id) = old.draw(RESOURCES).await {
            given.push(id);
        }
        given.push(new.draw(RESOURCES).await.unwrap());
        let count = given.len();
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len(), count);
    }
}
