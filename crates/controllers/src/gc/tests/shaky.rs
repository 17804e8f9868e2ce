//! A store that counts what it is asked, and that can be made to fail.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::Watched;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Patch, ResourceVersion};
use concert_store::{
    By, Delete, Deleted, Error, Events, Kind, Local, Page, PageRequest, Part, Query, Result, Store,
};
use futures_util::stream;

pub struct Shaky {
    pub local: Local,
    /// Lists, reads and watches so far.
    pub reads: Watched<u64>,
    /// Writes that are still let through; none for any number.
    fuse: Watched<Option<u64>>,
    /// Whether the write that blows the fuse is done, and only its answer lost.
    loses_answers: Watched<bool>,
    /// How often all watches were broken.
    breaks: Arc<Watched<u32>>,
    is_down: Watched<bool>,
}

impl Shaky {
    pub fn new(local: Local) -> Self {
        Self {
            local,
            reads: Watched::default(),
            fuse: Watched::default(),
            loses_answers: Watched::default(),
            breaks: Arc::default(),
            is_down: Watched::default(),
        }
    }

    /// Lets so many writes through, then none. The last of them may happen without an answer.
    pub fn light_fuse(&self, writes: u64, loses_answers: bool) {
        self.fuse.set(Some(writes));
        self.loses_answers.set(loses_answers);
    }

    /// Lets all writes through again; says whether any was refused.
    pub fn mend(&self) -> bool {
        self.fuse.change(Option::take) == Some(0)
    }

    /// Ends all watches as too old, and refuses reads until [`Shaky::connect`].
    pub fn cut(&self) {
        self.is_down.set(true);
        self.breaks.change(|count| *count += 1);
    }

    pub fn connect(&self) {
        self.is_down.set(false);
    }

    async fn write<T>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let left = self.fuse.change(|fuse| {
            let left = *fuse;
            *fuse = fuse.map(|left| left.saturating_sub(1));
            left
        });
        match left {
            Some(0) => Err(Error::unavailable("crashed")),
            Some(1) if self.loses_answers.get() => {
                work.await.ok();
                Err(Error::unavailable("crashed after the write"))
            }
            _ => work.await,
        }
    }

    fn read(&self) -> Result<()> {
        self.reads.change(|count| *count += 1);
        if self.is_down.get() { Err(Error::unavailable("cut off")) } else { Ok(()) }
    }
}

#[async_trait]
impl Store for Shaky {
    async fn get(&self, key: &ObjectKey) -> Result<Encoded> {
        self.read()?;
        self.local.get(key).await
    }

    async fn list(&self, query: &Query, page: &PageRequest) -> Result<Page> {
        self.read()?;
        self.local.list(query, page).await
    }

    async fn watch(&self, query: &Query, from: Option<&ResourceVersion>) -> Result<Events> {
        self.read()?;
        let (breaks, count) = (self.breaks.clone(), self.breaks.get());
        let broken = stream::once(async move {
            breaks.wait_for(|it| *it > count).await;
            Err(Error::Expired)
        });
        let events = self.local.watch(query, from).await?;
        Ok(Events::new(stream::select(Box::pin(broken), events)))
    }

    async fn create(&self, object: Object, by: &By) -> Result<Encoded> {
        self.write(self.local.create(object, by)).await
    }

    async fn update(&self, object: Object, by: &By) -> Result<Encoded> {
        self.write(self.local.update(object, by)).await
    }

    async fn update_status(&self, object: Object, by: &By) -> Result<Encoded> {
        self.write(self.local.update_status(object, by)).await
    }

    async fn patch(&self, key: &ObjectKey, part: Part, patch: &Patch, by: &By) -> Result<Encoded> {
        self.write(self.local.patch(key, part, patch, by)).await
    }

    async fn delete(&self, key: &ObjectKey, options: &Delete, by: &By) -> Result<Deleted> {
        self.write(self.local.delete(key, options, by)).await
    }

    async fn kind(&self, kind: &GroupKind) -> Result<Arc<Kind>> {
        self.read()?;
        self.local.kind(kind).await
    }
}
