//! Lends items to the hosts of one reconciler, and carries out what their reports mean.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::workers::{Leased, Meaning, Offer, Prepared, Report};
use concert_engine::{Failure, Labels, Outcome, Request, Wait};
use concert_model::condition::{self, Status};
use concert_model::inventory::{Entry, State, names};
use concert_model::{Object, ObjectKey, Uid};
use concert_store::{By, Error, Fence, ItemKey};
use serde_json::{Value, json};
use tracing::warn;

use super::component::Component;
use super::decide::{Ended, LOOK_AGAIN, Moment, Next, Said, held, verdict};
use super::run::Fleet;
use super::sections::Sight;
use super::vocabulary::{LEASES, controller_of, finalizer_of, reason, requeue};

/// Tries over what others write: they do so seldom.
const WRITES_MAX: usize = 8;
/// When somebody looks again who waits for what is there already. Twice as long each time in a row, up to
/// [`LOOK_AGAIN`]: it may see next time what it has missed, or never.
const PATIENCE: Duration = Duration::from_secs(1);
/// When an item is looked at again that a store gave no answer about; up to twice that.
const TROUBLE: Duration = Duration::from_secs(5);

/// The items of one reconciler.
pub(super) struct Lending {
    pub fleet: Arc<Fleet>,
    pub component: Arc<Component>,
    /// The claim of the controller, by which a successor shuts us out.
    pub fence: Mutex<Option<Fence>>,
    /// How often in a row they waited for what is there already, by entry.
    pub in_vain: Mutex<BTreeMap<Arc<str>, u32>>,
}

/// What was known when an item was lent.
struct Context {
    generation: i64,
    revision: u64,
    observed: BTreeMap<String, u64>,
    is_deleting: bool,
    /// Which incarnation of the item: its fences cannot be compared with those of others.
    item: Uid,
}

impl Context {
    fn to_value(&self) -> Value {
        json!({"generation": self.generation, "revision": self.revision,
            "observed": self.observed, "deleting": self.is_deleting, "item": self.item})
    }

    fn of(value: &Value) -> Self {
        Self {
            generation: value["generation"].as_i64().unwrap_or_default(),
            revision: value["revision"].as_u64().unwrap_or_default(),
            observed: serde_json::from_value(value["observed"].clone()).unwrap_or_default(),
            is_deleting: value["deleting"].as_bool().unwrap_or_default(),
            item: Uid(value["item"].as_str().unwrap_or_default().into()),
        }
    }
}

/// Whether an item may wait.
enum Parking {
    For(Vec<Wait>),
    /// What it read is not what is there any more.
    Stale,
    /// It does not say for what.
    Nothing,
    /// What it waits for is there, or is not at the version that it read.
    There,
}

impl Lending {
    fn by(&self, why: &'static str) -> By {
        let by = By::actor(controller_of(&self.component.name)).because(why);
        match self.fence.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            Some(fence) => by.fenced(fence),
            None => by,
        }
    }

    /// When an item is looked at again that waits for what is there already.
    fn patience(&self, entry: &Arc<str>, said: &Said) -> Duration {
        let most = said.after.unwrap_or(LOOK_AGAIN).clamp(PATIENCE, LOOK_AGAIN);
        let mut in_vain = self.in_vain.lock().unwrap_or_else(PoisonError::into_inner);
        let times = in_vain.entry(entry.clone()).or_default();
        let patience = PATIENCE.saturating_mul(1_u32 << (*times).min(6)).min(most);
        *times = times.saturating_add(1);
        patience
    }

    /// What comes next starts anew.
    fn forget(&self, entry: &str) {
        self.in_vain.lock().unwrap_or_else(PoisonError::into_inner).remove(entry);
    }

    async fn offer(&self, request: &Request) -> Result<Prepared, Error> {
        let (fleet, name) = (&*self.fleet, &*self.component.name);
        let object = fleet.parts.inventory.get(&request.key).await?.decode();
        let entry = Entry(&object);
        // Looked at now and then all the same: what was read may have been about to change.
        let rest = Ok(Prepared::Settled(Outcome::Done));
        if !self.component.concerns(&object) {
            return rest;
        }
        let known = fleet.items.get(entry.id(), name).filter(|it| it.is_of(&entry.uid()));
        if entry.is_deleting() && !self.component.holds(&object) {
            // Who never worked on it has nothing to undo, and who is done is done.
            if let Some(known) = known {
                fleet.items.remove(entry.id(), name, &known.uid, &self.by("done")).await?;
            }
            return rest;
        }
        let stopped = known.as_ref().is_some_and(|it| it.is_stopped);
        if stopped || entry.is_paused() {
            let (state, word) =
                if stopped { (State::Stopped, reason::STOPPED) } else { (State::Paused, reason::PAUSED) };
            if known.is_some() {
                let now = fleet.parts.clock.now();
                let say = |before: &Value| held(before, state, word, "", now);
                fleet.items.say(entry, name, &self.by("held"), say).await?;
            }
            return rest;
        }
        let object = if entry.is_deleting() { object } else { self.take_charge(object).await? };
        // It may have been met only now.
        if fleet.items.get(object.name(), name).is_some_and(|it| it.is_stopped) {
            return rest;
        }
        Ok(Prepared::Offer(Box::new(self.offer_of(request, object))))
    }

    fn offer_of(&self, request: &Request, object: Object) -> Offer {
        let (fleet, entry) = (&*self.fleet, Entry(&object));
        // First the versions: a revision that is newer than they are would hide a change.
        let observed = fleet.sections.versions(entry.id(), self.component.sections());
        let context = Context {
            generation: object.generation(),
            revision: fleet.sections.revision(&entry.uid()),
            observed,
            is_deleting: entry.is_deleting(),
            item: fleet
                .items
                .get(entry.id(), &self.component.name)
                .map_or_else(|| Uid("".into()), |it| it.uid),
        };
        let item: Arc<str> = format!("{}/{}", entry.id(), self.component.name).into();
        Offer {
            row: ItemKey { controller: LEASES.into(), item: item.clone() },
            item,
            key: request.key.clone(),
            attempt: u64::from(request.attempt),
            context: Arc::new(context.to_value()),
            object: Arc::new(object),
        }
    }

    /// Before anybody works on an entry it is held, and it is written down who does: what is made must
    /// not be forgotten.
    async fn take_charge(&self, object: Object) -> Result<Object, Error> {
        let object = self.hold(object, true).await?;
        self.fleet.items.ensure(Entry(&object), &self.component.name, &self.by("begun")).await?;
        Ok(object)
    }

    /// Holds an entry, or lets it go: this incarnation of it, whatever has its name by now.
    async fn hold(&self, mut object: Object, is_held: bool) -> Result<Object, Error> {
        let (inventory, key) = (&self.fleet.parts.inventory, names::entry_key(object.name()));
        let uid = Entry(&object).uid();
        let finalizer = finalizer_of(&self.component.name);
        let by =
            By::actor(controller_of(&self.component.name)).because(if is_held { "begun" } else { "done" });
        for _ in 0..WRITES_MAX {
            let is_changed =
                if is_held { object.add_finalizer(&finalizer) } else { object.remove_finalizer(&finalizer) };
            if !is_changed {
                return Ok(object);
            }
            match inventory.update(object, &by).await {
                Err(Error::Conflict { .. }) => object = inventory.get(&key).await?.decode(),
                written => return Ok(written?.decode()),
            }
            if Entry(&object).uid() != uid {
                return Err(Error::NotFound { key });
            }
        }
        Err(Error::Conflict { key })
    }

    /// Nothing of it is left to do.
    async fn let_go(&self, lease: &Leased) -> Result<(), Error> {
        let key = &lease.key;
        let let_go = async {
            let object = self.fleet.parts.inventory.get(key).await?.decode();
            // Another one may have its name by now, and somebody who works on that: a leader that was held up
            // would take the hold away from what it has never seen.
            if Entry(&object).uid() == Entry(&lease.object).uid() {
                self.hold(object, false).await?;
            }
            Ok(())
        };
        match let_go.await {
            Ok(()) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        let item = Context::of(&lease.context).item;
        self.fleet.items.remove(&key.name, &self.component.name, &item, &self.by("done")).await
    }

    async fn end(&self, lease: &Leased, said: Said) -> Outcome {
        match self.carry_out(lease, &said).await {
            Ok(outcome) => outcome,
            // Its host has done what it could: that we cannot write it down is not its failure.
            Err(error) => self.again(&error),
        }
    }

    /// Another look, at nobody's cost, when stores answer again.
    fn again(&self, error: &Error) -> Outcome {
        warn!(reconciler = %self.component.name, %error, "cannot carry on");
        let after = TROUBLE.mul_f64(1.0 + self.fleet.parts.chance.fraction());
        Outcome::Requeue(error.to_string().into(), Some(after))
    }

    async fn carry_out(&self, lease: &Leased, said: &Said) -> Result<Outcome, Error> {
        let (fleet, name) = (&*self.fleet, &*self.component.name);
        let context = Context::of(&lease.context);
        let mut waits = Vec::new();
        if said.ended == Ended::NotReady {
            match self.parking(lease, said, &context).await? {
                Parking::For(all) => waits = all,
                Parking::Nothing => {}
                Parking::There => {
                    fleet.metrics.requeued(requeue::STALE);
                    let patience = self.patience(&lease.key.name, said);
                    return Ok(Outcome::Requeue(said.message.as_str().into(), Some(patience)));
                }
                Parking::Stale => {
                    fleet.metrics.requeued(requeue::STALE);
                    return Ok(Outcome::Requeue(said.message.as_str().into(), Some(Duration::ZERO)));
                }
            }
        }
        self.forget(&lease.key.name);
        let (now, draw) = (fleet.parts.clock.now(), fleet.parts.chance.fraction());
        let judge = |before: &Value| {
            verdict(
                said,
                &Moment {
                    now,
                    before,
                    attempt: lease.attempt,
                    generation: context.generation,
                    revision: context.revision,
                    observed: &context.observed,
                    resync: self.component.resync(),
                    is_deleting: context.is_deleting,
                    draw,
                },
            )
        };
        let (_, next) = judge(&Value::Null);
        if next == Next::Gone {
            self.let_go(lease).await?;
            return Ok(Outcome::Done);
        }
        let say = |before: &Value| judge(before).0;
        fleet.items.say(Entry(&lease.object), name, &self.by("reported"), say).await?;
        fleet.metrics.requeued(why(said.ended));
        Ok(outcome(said, next, waits))
    }

    /// What an item waits for, as it is: a change from here on wakes it.
    async fn parking(&self, lease: &Leased, said: &Said, context: &Context) -> Result<Parking, Error> {
        let sections = &self.fleet.sections;
        let uid = Entry(&lease.object).uid();
        // Whatever it says, it has read nothing before it was lent the item.
        let read_at = said.revision.unwrap_or_default().max(context.revision);
        let mut waits = Vec::new();
        for wait in &said.waits_for {
            let text = |field: &str| wait[field].as_str().filter(|it| !it.is_empty());
            let entry = text("entry").unwrap_or(&lease.key.name);
            let Some(section) = text("section") else {
                let Some(kind) = text("condition") else { continue };
                match self.condition(entry, kind).await? {
                    Some(wait) => waits.push(wait),
                    None => return Ok(Parking::There),
                }
                continue;
            };
            let own = (entry == &*lease.key.name).then_some(&uid);
            let Some((label, seen)) = self.sight(entry, own, section, text("path")).await? else {
                return Ok(Parking::Stale);
            };
            // After the look: what changes from here on is another version than the one seen.
            if own.is_some_and(|uid| sections.has_changed(uid, section, read_at)) {
                return Ok(Parking::Stale);
            }
            // Of other entries there is no revision to compare, only what was read of the section.
            let version = sections.versions(entry, [section]).remove(section).unwrap_or_default();
            if wait["version"].as_u64().is_some_and(|read| read != version) {
                return Ok(Parking::There);
            }
            waits.push(Wait::label(label, seen));
        }
        Ok(if waits.is_empty() { Parking::Nothing } else { Parking::For(waits) })
    }

    /// What is waited for and what it is at; none if it is changing as we look.
    async fn sight(
        &self,
        entry: &str,
        uid: Option<&Uid>,
        section: &str,
        path: Option<&str>,
    ) -> Result<Option<(String, Option<Arc<str>>)>, Error> {
        let sections = &self.fleet.sections;
        let (label, sight) = sections.look(entry, uid, section, path);
        if let Sight::At(seen) = sight {
            return Ok(Some((label, seen)));
        }
        let object = match self.fleet.parts.inventory.get(&names::section_key(entry, section)).await {
            Ok(object) => object.decode(),
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if !path.is_some_and(|path| sections.learn(&object, path)) {
            return Ok(None);
        }
        match sections.look(entry, uid, section, path) {
            (label, Sight::At(seen)) => Ok(Some((label, seen))),
            (_, Sight::Unseen(_)) => Ok(None),
        }
    }

    /// A condition of an entry that is not there yet; none if it is.
    async fn condition(&self, entry: &str, kind: &str) -> Result<Option<Wait>, Error> {
        let key = names::entry_key(entry);
        let object = match self.fleet.parts.inventory.get(&key).await {
            Ok(object) => object,
            Err(Error::NotFound { .. }) => return Ok(Some(Wait::existence_of(key))),
            Err(error) => return Err(error),
        };
        let found = condition::find(object.decode().status(), kind);
        let is_true = found.is_some_and(|it| it.status == Status::True);
        Ok((!is_true).then(|| Wait::condition_of(&object, kind)))
    }
}

fn outcome(said: &Said, next: Next, waits: Vec<Wait>) -> Outcome {
    let message = || Arc::<str>::from(said.message.as_str());
    let failure = || {
        let failure = Failure::new(message());
        if said.ended == Ended::Unreachable { failure } else { failure.elsewhere() }
    };
    match next {
        Next::Rest(look) => Outcome::Poll(look),
        Next::GoOn(after) if said.ended == Ended::Ready => Outcome::After(after),
        Next::GoOn(after) => Outcome::Requeue(message(), Some(after)),
        Next::Park(most) if waits.is_empty() => Outcome::Requeue(message(), Some(most)),
        Next::Park(most) => Outcome::WaitAtMost(waits, most),
        Next::Retry(after) => Outcome::Transient(failure().retried_after(after)),
        Next::GiveUp => Outcome::Terminal(failure()),
        Next::Gone => Outcome::Done,
    }
}

fn why(ended: Ended) -> (&'static str, bool) {
    match ended {
        Ended::Ready => requeue::RESYNC,
        Ended::Requeue => requeue::REQUEUE,
        Ended::NotReady => requeue::NOT_READY,
        Ended::Transient => requeue::TRANSIENT,
        Ended::Unreachable => requeue::UNREACHABLE,
        Ended::Terminal => requeue::TERMINAL,
        Ended::Expired => requeue::LEASE_EXPIRED,
    }
}

#[async_trait]
impl Meaning for Lending {
    async fn prepare(&self, request: &Request) -> Prepared {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&request.fence);
        match self.offer(request).await {
            Ok(prepared) => prepared,
            // What is left of it is the matter of `entries`.
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => {
                self.forget(&request.key.name);
                Prepared::Settled(Outcome::Done)
            }
            Err(error) => Prepared::Settled(self.again(&error)),
        }
    }

    async fn finished(&self, lease: &Leased, report: Report) -> Outcome {
        self.end(lease, Said::of(&report)).await
    }

    async fn expired(&self, lease: &Leased, _: Fence) -> Outcome {
        self.end(lease, Said::silence()).await
    }

    /// The breaker of the cluster that the entry is about, which all its reconcilers share.
    fn labels(&self, key: &ObjectKey) -> Labels {
        Labels { budgets: Vec::new(), target: Some(key.name.clone()) }
    }
}
