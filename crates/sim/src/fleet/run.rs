//! The hosts: they claim, work, and report, whatever happens to them on the way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_engine::workers::{Ask, Board, Claimed, Report};
use concert_model::inventory::{Entry, Lease, Ledger, Section, names};
use concert_model::{Encoded, Object, Uid};
use concert_store::{By, Chance, Clock, Error, PageRequest, Query, Store};
use serde_json::{Map, Value, json};

use super::Bug;
use super::world::World;
use crate::executor::Executor;
use crate::faults::{Remote, Weather};

/// Who works on entries. Each needs what the one before it writes.
pub const RECONCILERS: [&str; 3] = ["network", "shoot", "component"];
/// How long a lease is. Shorter than many a nap of a host.
pub const LEASE_SECONDS: u64 = 10;
/// Longer than a life takes to settle: who waits is woken by what it waits for or not at all.
const LOOK_AGAIN: f64 = 600.0;

/// What all hosts and processes share.
pub struct Shared {
    pub executor: Executor,
    pub chance: Chance,
    pub weather: Weather,
    pub bug: Option<Bug>,
    pub world: Mutex<World>,
    /// Where work is to be had, and the way to the store from there.
    pub office: Mutex<Option<(Board, Arc<Remote>)>>,
    /// What came of claims.
    pub claims: Mutex<Claims>,
}

/// What is remembered of claims.
#[derive(Default)]
pub struct Claims {
    /// Items whose last report was a success that was taken: its fence, and the failures before it.
    succeeded: BTreeMap<Arc<str>, (u64, u64)>,
}

/// What a host makes of its item.
struct Done {
    outcome: &'static str,
    class: &'static str,
    revision: Option<u64>,
    waits_for: Vec<Value>,
}

impl Done {
    fn ready(revision: u64) -> Self {
        Self { outcome: "ready", class: "", revision: Some(revision), waits_for: Vec::new() }
    }

    fn failed(class: &'static str) -> Self {
        Self { outcome: "failed", class, revision: None, waits_for: Vec::new() }
    }
}

impl Shared {
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn office(&self) -> Option<(Board, Arc<Remote>)> {
        self.office.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_hit(&self, probability: f64) -> bool {
        self.weather.is_bad() && self.chance.is_hit(probability)
    }

    async fn nap(&self, millis: u64) {
        self.executor.sleep(Duration::from_millis(self.chance.below(millis.max(1)))).await;
    }

    /// One host of one reconciler, for ever.
    pub async fn host(self: Arc<Self>, reconciler: &'static str, host: String) {
        loop {
            let Some((board, remote)) = self.office() else {
                self.nap(1_000).await;
                continue;
            };
            let wait = Duration::from_secs(5);
            let ask = Ask { host: host.as_str().into(), limit: 3, wait, ..Ask::default() };
            for item in board.claim(reconciler, ask).await {
                // It dies, and another one comes in its place.
                if self.is_hit(0.08) {
                    self.nap(3_000).await;
                    continue;
                }
                self.work(reconciler, &board, &remote, &item).await;
            }
            self.nap(20).await;
        }
    }

    async fn work(&self, reconciler: &'static str, board: &Board, remote: &Remote, item: &Claimed) {
        self.begin(item);
        self.world().runs += 1;
        if self.is_hit(0.1) {
            self.nap(40_000).await;
        }
        let done = self.reconcile(reconciler, remote, item).await;
        let done = done.unwrap_or_else(|_| Done::failed("transient"));
        // What it knows of its thing when it is done with it: the same for whoever merely looks.
        let version = self.world().version(&Entry(&item.object).uid(), reconciler);
        if self.is_hit(0.1) {
            self.nap(40_000).await;
        }
        // The report is lost: the lease runs out.
        if self.is_hit(0.05) {
            return;
        }
        let mut details = Map::new();
        details.insert("outcome".into(), json!(done.outcome));
        details.insert("error_class".into(), json!(done.class));
        details.insert("observed_revision".into(), json!(done.revision));
        details.insert("waits_for".into(), json!(done.waits_for));
        let message = format!("#{version}");
        let after = (done.outcome == "not_ready").then(|| Duration::from_secs_f64(LOOK_AGAIN));
        let report = Report { message, requeue_after: after, details, ..Report::default() };
        let times = if self.is_hit(0.05) { 2 } else { 1 };
        for _ in 0..times {
            let taken = board.finish(reconciler, &item.item, item.fence, report.clone()).await.is_ok();
            if taken && done.outcome == "ready" {
                self.claims().succeeded.insert(item.item.clone(), (item.fence, item.attempt));
            }
        }
    }

    /// A claim that follows a success that was taken must not be told of one more failure.
    fn begin(&self, item: &Claimed) {
        let last = self.claims().succeeded.remove(&item.item);
        // Only where nobody else can have had it in between.
        let Some((fence, attempt)) = last else { return };
        if item.fence == fence + 1 && item.attempt > attempt {
            self.world().violations.push(format!("a success of {} was lost", item.item));
        }
    }

    async fn reconcile(
        &self,
        reconciler: &'static str,
        remote: &Remote,
        item: &Claimed,
    ) -> Result<Done, Error> {
        let id = item.object.name();
        let uid = Entry(&item.object).uid();
        if item.context["deleting"] == true {
            if self.bug != Some(Bug::LeavesThingsBehind) {
                let gone = self.world().set(&uid, reconciler, None, item.fence);
                if gone.is_err() {
                    return Ok(Done::failed("transient"));
                }
            }
            return Ok(Done::ready(0));
        }
        let view = View::read(remote, id, &uid).await?;
        let wanted = match reconciler {
            "network" => Some(view.tenant.clone()),
            "shoot" => view.value("network", "vnet_name"),
            _ => view.value("cluster", "name"),
        };
        let lie = self.bug == Some(Bug::ReadsTheFuture);
        let revision = if lie { u64::MAX >> 1 } else { view.revision };
        if lie {
            self.nap(3_000).await;
        }
        if self.is_hit(0.05) {
            return Ok(Done::failed(if self.chance.is_hit(0.3) { "unreachable" } else { "transient" }));
        }
        let Some(wanted) = wanted else {
            let wait = match reconciler {
                "shoot" => json!({"section": "network", "path": "/vnet_name"}),
                _ => json!({"section": "cluster"}),
            };
            let (outcome, class, revision) = ("not_ready", "", Some(revision));
            return Ok(Done { outcome, class, revision, waits_for: vec![wait] });
        };
        if self.world().set(&uid, reconciler, Some(&wanted), item.fence).is_err() {
            return Ok(Done::failed("transient"));
        }
        let written = match reconciler {
            "network" => view.write(remote, item, "network", json!({"vnet_name": wanted})).await,
            "shoot" => view.write(remote, item, "cluster", json!({"name": wanted})).await,
            _ => Ok(()),
        };
        written.map(|()| Done::ready(revision))
    }
}

/// An entry as a host reads it.
struct View {
    entry: Object,
    tenant: String,
    revision: u64,
    sections: BTreeMap<String, Object>,
}

impl View {
    async fn read(remote: &Remote, id: &str, uid: &Uid) -> Result<Self, Error> {
        // As the door of the inventory answers: with what is, and never with what was.
        let page = remote.list(&Query::all(names::entry_kind()), &PageRequest::whole()).await?;
        let mut entries = page.items.iter().map(Encoded::decode);
        let is_meant = |it: &Object| Entry(it).uid() == *uid && !Entry(it).is_deleting();
        let Some(entry) = entries.find(is_meant) else {
            return Err(Error::NotFound { key: names::entry_key(id) });
        };
        let page = remote.list(&Query::all(names::section_kind()), &PageRequest::whole()).await?;
        let mut ledger = Ledger::new();
        ledger.note_entry(&entry);
        let mut sections = BTreeMap::new();
        for object in page.items.iter().map(Encoded::decode).filter(|it| Section(it).entry() == id) {
            ledger.note_section(&object);
            sections.insert(Section(&object).name().to_owned(), object);
        }
        let (tenant, revision) = (Entry(&entry).tenant().to_owned(), ledger.revision(uid));
        Ok(Self { entry, tenant, revision, sections })
    }

    fn value(&self, section: &str, field: &str) -> Option<String> {
        let object = self.sections.get(section)?;
        let is_of_it = Section(object).entry_uid() == Some(Entry(&self.entry).uid());
        Section(object).data()[field].as_str().filter(|_| is_of_it).map(str::to_owned)
    }

    /// What the door of the inventory does with a write that is based on what was read, with the token that
    /// came with the item.
    async fn write(&self, remote: &Remote, item: &Claimed, name: &str, data: Value) -> Result<(), Error> {
        let by = By::actor("inventory");
        let old = self.sections.get(name);
        let fresh = Section::of(Entry(&self.entry), name);
        let is_of_it = old.is_some_and(|it| Section(it).entry_uid() == Some(Entry(&self.entry).uid()));
        let uid = item.context["item"].as_str().unwrap_or_default();
        let lease = Lease { item: Uid(uid.into()), fence: item.fence };
        let newest = old.filter(|_| is_of_it).and_then(|it| Section(it).lease());
        if lease.check(newest.as_ref()).is_err() {
            return Err(Error::Conflict { key: names::section_key(self.entry.name(), name) });
        }
        if is_of_it && old.is_some_and(|it| *Section(it).data() == data) {
            return Ok(());
        }
        let version = old.map_or(0, |it| Section(it).version()) + 1;
        let mut object = old.cloned().unwrap_or_else(|| fresh.clone());
        object.set_metadata("ownerReferences", fresh.metadata("ownerReferences").clone());
        object.get_mut("spec")["version"] = json!(version);
        object.get_mut("spec")["hash"] = json!(data.to_string());
        object.get_mut("spec")["lease"] = json!(lease);
        object.get_mut("spec")["data"] = data;
        match old {
            Some(_) => remote.update(object, &by).await.map(drop),
            None => remote.create(object, &by).await.map(drop),
        }
    }
}
