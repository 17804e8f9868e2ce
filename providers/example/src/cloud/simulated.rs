//! The rules of the cloud.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use concert_model::Timestamp;
use concert_model::time::SignedDuration;
use concert_store::Chance;
use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::file::{LogFile, ReadError};
use super::quota::Bucket;
use super::settings::Settings;
use super::thing::{Account, Owner, Thing, ThingKey};
use super::truth::{Event, Truth};

/// Properties that are fixed for the life of a thing.
const IMMUTABLE: &[&str] = &["region"];

/// Nobody who listens looks up less often than this.
const TOLD_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// A simulated cloud.
///
/// # Guarantees
/// - The same token makes at most one thing, ever; a token that a lookup has called empty makes none.
/// - [`Fault::AnswerLost`] alone leaves open whether something happened.
/// - What is answered is in the truth log before.
#[derive(Debug)]
pub struct Cloud {
    settings: Settings,
    chance: Chance,
    things: BTreeMap<ThingKey, Kept>,
    tokens: HashMap<(Account, String), TokenUse>,
    quotas: HashMap<Account, Bucket>,
    /// When things become visible or ready. Things that are gone may still be in it.
    due: BTreeSet<(Timestamp, ThingKey)>,
    truth: Truth,
    log: Option<LogFile>,
    made: u64,
    /// Calls of clients since it was opened, whatever came of them.
    calls: u64,
}

#[derive(Debug)]
struct Kept {
    thing: Thing,
    /// What reads still show, and until when.
    former: Option<(Map<String, Value>, Timestamp)>,
}

#[derive(Debug)]
enum TokenUse {
    Made(ThingKey),
    Burnt,
}

/// What to make.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Create {
    /// The cloud's word for the type: `bucket`.
    pub kind: String,
    /// The name to have; none for an id that the cloud makes up.
    pub name: Option<String>,
    /// Names this attempt.
    pub token: Option<String>,
    /// In whose account.
    pub account: Account,
    /// For which object.
    pub owner: Owner,
    /// Any JSON.
    pub properties: Map<String, Value>,
    /// The number of the claim that it is made under.
    pub fence: Option<u64>,
}

/// What became of a token.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// This was made with it, and is still there.
    Found(Box<Thing>),
    /// Nothing is there that was made with it, and nothing ever will be.
    CertainlyNone,
}

impl Cloud {
    /// An empty cloud that forgets everything with the process.
    pub fn new(settings: Settings, chance: Chance) -> Self {
        Self {
            settings,
            chance,
            things: BTreeMap::new(),
            tokens: HashMap::new(),
            quotas: HashMap::new(),
            due: BTreeSet::new(),
            truth: Truth::default(),
            log: None,
            made: 0,
            calls: 0,
        }
    }

    /// The cloud that a truth log tells of, and goes on telling of.
    ///
    /// # Errors
    /// The file cannot be opened, or is something else.
    pub fn open(settings: Settings, chance: Chance, path: &Path) -> Result<Self, ReadError> {
        let (log, entries) = LogFile::open(path)?;
        let mut cloud = Self::new(settings, chance);
        for entry in entries {
            cloud.apply(&entry.event, None);
            cloud.truth.push(entry);
        }
        cloud.log = Some(log);
        Ok(cloud)
    }

    /// How it behaves.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Behaves differently from now on. Things that exist keep the times they were given.
    pub fn set_settings(&mut self, settings: Settings) {
        // Buckets are sized for the quota they were made with.
        if settings.quota != self.settings.quota {
            self.quotas.clear();
        }
        self.settings = settings;
    }

    /// How often clients have called since it was opened, whatever came of it.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// What really happened.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Makes a thing, or finds the one that the same token, or the same owner under the same name, made
    /// before.
    ///
    /// # Errors
    /// Any but [`Fault::Missing`] and [`Fault::Immutable`].
    pub fn create(&mut self, create: Create, now: Timestamp) -> Result<Thing, Fault> {
        self.enter(&create.account, now)?;
        let thing = match self.made_before(&create)? {
            Some(thing) => thing,
            None => self.make(create, now)?,
        };
        self.answer(thing)
    }

    /// A thing as clients see it: not yet, or as it was, for a while.
    ///
    /// # Errors
    /// [`Fault::OutOfOrder`], [`Fault::Throttled`].
    pub fn read(
        &mut self,
        key: &ThingKey,
        account: &Account,
        now: Timestamp,
    ) -> Result<Option<Thing>, Fault> {
        self.enter(account, now)?;
        Ok(self.things.get(key).and_then(|kept| kept.seen(account, now)))
    }

    /// All visible things of a type whose ids start so, by id.
    ///
    /// # Errors
    /// [`Fault::OutOfOrder`], [`Fault::Throttled`].
    pub fn list(
        &mut self,
        kind: &str,
        prefix: &str,
        account: &Account,
        now: Timestamp,
    ) -> Result<Vec<Thing>, Fault> {
        self.enter(account, now)?;
        let of_kind = self.things.range(ThingKey::new(kind, prefix)..).map(|(_, kept)| kept);
        let wanted =
            of_kind.take_while(|kept| kept.thing.key.kind == kind && kept.thing.key.id.starts_with(prefix));
        Ok(wanted.filter_map(|kept| kept.seen(account, now)).collect())
    }

    /// Puts `properties` in the place of those of the same names.
    ///
    /// # Errors
    /// Any but those of names and tokens.
    pub fn update(
        &mut self,
        key: &ThingKey,
        properties: Map<String, Value>,
        account: &Account,
        fence: Option<u64>,
        now: Timestamp,
    ) -> Result<Thing, Fault> {
        self.enter(account, now)?;
        let kept = self.things.get(key).filter(|kept| kept.is_seen(account, now));
        let Some(kept) = kept else { return Err(Fault::Missing { id: key.id.clone() }) };
        let former = &kept.thing.properties;
        // What was never set may still be.
        let is_moved = |field: &&&str| {
            let pair = properties.get(**field).zip(former.get(**field));
            pair.is_some_and(|(new, old)| new != old)
        };
        if let Some(field) = IMMUTABLE.iter().find(is_moved) {
            return Err(Fault::Immutable { field: (*field).to_owned() });
        }
        let mut whole = former.clone();
        whole.extend(properties);
        if whole != *former {
            let is_broken = kept.thing.is_broken;
            let event =
                Event::Updated { key: key.clone(), properties: whole, is_broken, by_hand: false, fence };
            self.record(event, now)?;
        }
        let thing = self.things[key].thing.clone();
        self.answer(thing)
    }

    /// Removes a thing. What is not there, or not to be seen yet, is fine: so real clouds leak.
    ///
    /// # Errors
    /// Any but those of names, tokens and properties.
    pub fn delete(
        &mut self,
        key: &ThingKey,
        account: &Account,
        fence: Option<u64>,
        now: Timestamp,
    ) -> Result<(), Fault> {
        self.enter(account, now)?;
        if self.things.get(key).is_some_and(|kept| kept.is_seen(account, now)) {
            self.record(Event::Deleted { key: key.clone(), by_hand: false, fence }, now)?;
        }
        self.answer(())
    }

    /// What became of the create with this token. Sees what reads do not see yet.
    ///
    /// # Errors
    /// [`Fault::OutOfOrder`], [`Fault::Throttled`], [`Fault::Unwritten`].
    pub fn lookup(&mut self, token: &str, account: &Account, now: Timestamp) -> Result<Lookup, Fault> {
        self.enter(account, now)?;
        match self.tokens.get(&(account.clone(), token.to_owned())) {
            Some(TokenUse::Made(key)) => {
                let found = self.things.get(key).map(|kept| Box::new(kept.thing.clone()));
                Ok(found.map_or(Lookup::CertainlyNone, Lookup::Found))
            }
            Some(TokenUse::Burnt) => Ok(Lookup::CertainlyNone),
            None => {
                let event = Event::Burnt { account: account.clone(), token: token.to_owned() };
                self.record(event, now)?;
                Ok(Lookup::CertainlyNone)
            }
        }
    }

    /// The thing with this id, of the given type or of any, as it really is.
    pub fn find(&self, kind: Option<&str>, id: &str) -> Option<&Thing> {
        let is_it = |key: &ThingKey| key.id == id && kind.is_none_or(|kind| key.kind == kind);
        self.things.values().map(|kept| &kept.thing).find(|thing| is_it(&thing.key))
    }

    /// Somebody changes a thing behind the back of the provider. Nothing is in the way of that.
    ///
    /// # Errors
    /// [`Fault::Missing`], [`Fault::Unwritten`].
    pub fn drift(
        &mut self,
        key: &ThingKey,
        properties: Map<String, Value>,
        is_broken: Option<bool>,
        now: Timestamp,
    ) -> Result<Thing, Fault> {
        let Some(kept) = self.things.get(key) else { return Err(Fault::Missing { id: key.id.clone() }) };
        let is_broken = is_broken.unwrap_or(kept.thing.is_broken);
        let mut whole = kept.thing.properties.clone();
        for (field, value) in properties {
            // Null takes a property away, as in a merge patch.
            if value.is_null() { drop(whole.remove(&field)) } else { drop(whole.insert(field, value)) }
        }
        let event =
            Event::Updated { key: key.clone(), properties: whole, is_broken, by_hand: true, fence: None };
        self.record(event, now)?;
        Ok(self.things[key].thing.clone())
    }

    /// Somebody removes a thing behind the back of the provider.
    ///
    /// # Errors
    /// [`Fault::Missing`], [`Fault::Unwritten`].
    pub fn vanish(&mut self, key: &ThingKey, now: Timestamp) -> Result<Thing, Fault> {
        let gone = self.things.get(key).map(|kept| kept.thing.clone());
        let gone = gone.ok_or_else(|| Fault::Missing { id: key.id.clone() })?;
        self.record(Event::Deleted { key: key.clone(), by_hand: true, fence: None }, now)?;
        Ok(gone)
    }

    /// Things that became visible or ready after `since` and not later than `now`.
    pub fn settled(&self, since: Timestamp, now: Timestamp) -> Vec<Thing> {
        let after = (Bound::Excluded(after_all(since)), Bound::Included(after_all(now)));
        if since >= now {
            return Vec::new();
        }
        self.due.range(after).filter_map(|(_, key)| Some(self.things.get(key)?.thing.clone())).collect()
    }

    /// When the next thing becomes visible or ready.
    pub fn settles_next(&self, now: Timestamp) -> Option<Timestamp> {
        self.due.range((Bound::Excluded(after_all(now)), Bound::Unbounded)).next().map(|(at, _)| *at)
    }

    fn enter(&mut self, account: &Account, now: Timestamp) -> Result<(), Fault> {
        self.calls += 1;
        if let Some(quota) = self.settings.quota {
            let bucket = self.quotas.entry(account.clone()).or_insert_with(|| Bucket::full(&quota, now));
            bucket
                .take(&quota, now)
                .map_err(|retry_after| Fault::Throttled { account: account.0.clone(), retry_after })?;
        }
        if self.settings.error_rate > 0.0 && self.chance.is_hit(self.settings.error_rate) {
            return Err(Fault::OutOfOrder);
        }
        Ok(())
    }

    fn answer<T>(&self, answer: T) -> Result<T, Fault> {
        let is_lost = self.settings.lost_answers > 0.0 && self.chance.is_hit(self.settings.lost_answers);
        if is_lost { Err(Fault::AnswerLost) } else { Ok(answer) }
    }

    fn made_before(&self, create: &Create) -> Result<Option<Thing>, Fault> {
        if let Some(token) = &create.token
            && let Some(used) = self.tokens.get(&(create.account.clone(), token.clone()))
        {
            // What was made for another type, or is gone, is not what the caller asks for.
            let made = match used {
                TokenUse::Made(key) if key.kind == create.kind => self.things.get(key),
                _ => None,
            };
            let made = made.map(|kept| Some(kept.thing.clone()));
            return made.ok_or_else(|| Fault::TokenSpent { token: token.clone() });
        }
        let named = create.name.as_ref().and_then(|name| self.things.get(&ThingKey::new(&create.kind, name)));
        match named {
            None => Ok(None),
            Some(kept) if kept.thing.owner == create.owner && kept.thing.account == create.account => {
                Ok(Some(kept.thing.clone()))
            }
            Some(kept) => Err(Fault::Taken { name: kept.thing.key.id.clone() }),
        }
    }

    fn make(&mut self, create: Create, now: Timestamp) -> Result<Thing, Fault> {
        let id = create.name.unwrap_or_else(|| self.new_id(&create.kind));
        let mut properties = create.properties;
        properties.entry("tier").or_insert_with(|| json!("standard"));
        let asked = properties.get("password").and_then(Value::as_str).map(str::to_owned);
        let thing = Thing {
            key: ThingKey { kind: create.kind, id },
            account: create.account,
            owner: create.owner,
            properties,
            password: asked.unwrap_or_else(|| format!("{:032x}", self.chance.bits())),
            created_at: now,
            visible_at: later(now, self.settings.visible_after),
            ready_at: later(now, self.settings.ready_after),
            is_broken: false,
        };
        let made = Box::new(thing.clone());
        self.record(Event::Created { thing: made, token: create.token, fence: create.fence }, now)?;
        Ok(thing)
    }

    fn new_id(&self, kind: &str) -> String {
        let prefix = match kind {
            "bucket" => "bkt",
            "example" => "exr",
            "network" => "net",
            "another" => "ano",
            _ => "thg",
        };
        format!("{prefix}-{:07}-{:08x}", self.made + 1, self.chance.below(1 << 32))
    }

    /// Writes down what happens, then lets it happen.
    fn record(&mut self, event: Event, now: Timestamp) -> Result<(), Fault> {
        let entry = self.truth.next(event, now);
        if let Some(log) = &mut self.log {
            log.append(&entry).map_err(|e| Fault::Unwritten { reason: e.to_string() })?;
        }
        self.apply(&entry.event, Some(now));
        // What has settled was told of; the set must not grow with all that ever was.
        self.due = self
            .due
            .split_off(&(now.checked_sub(TOLD_AFTER).unwrap_or(Timestamp::MIN), ThingKey::new("", "")));
        self.truth.push(entry);
        Ok(())
    }

    /// `now` is none for what happened in an earlier life, which everybody has seen by now.
    fn apply(&mut self, event: &Event, now: Option<Timestamp>) {
        match event {
            Event::Created { thing, token, .. } => {
                self.made += 1;
                if let Some(token) = token {
                    let token = (thing.account.clone(), token.clone());
                    self.tokens.insert(token, TokenUse::Made(thing.key.clone()));
                }
                for at in [thing.visible_at, thing.ready_at].into_iter().filter(|at| *at > thing.created_at) {
                    self.due.insert((at, thing.key.clone()));
                }
                self.things.insert(thing.key.clone(), Kept { thing: (**thing).clone(), former: None });
            }
            Event::Updated { key, properties, is_broken, by_hand, .. } => {
                let stale_for = self.settings.stale_for;
                let Some(kept) = self.things.get_mut(key) else { return };
                let former = std::mem::replace(&mut kept.thing.properties, properties.clone());
                kept.thing.is_broken = *is_broken;
                if let Some(password) = properties.get("password").and_then(Value::as_str) {
                    kept.thing.password = password.to_owned();
                }
                // What is done by hand is pushed, and a push must find what it tells of.
                let stale = now.filter(|_| !by_hand && !stale_for.is_zero());
                kept.former = stale.map(|now| (former, later(now, stale_for)));
            }
            Event::Deleted { key, .. } => drop(self.things.remove(key)),
            Event::Burnt { account, token } => {
                self.tokens.insert((account.clone(), token.clone()), TokenUse::Burnt);
            }
        }
    }
}

impl Kept {
    fn is_seen(&self, account: &Account, now: Timestamp) -> bool {
        self.thing.account == *account && self.thing.is_visible(now)
    }

    /// The thing as a client of the account sees it.
    fn seen(&self, account: &Account, now: Timestamp) -> Option<Thing> {
        if !self.is_seen(account, now) {
            return None;
        }
        let mut thing = self.thing.clone();
        if let Some((former, until)) = &self.former
            && now < *until
        {
            thing.properties = former.clone();
        }
        Some(thing)
    }
}

fn later(now: Timestamp, wait: Duration) -> Timestamp {
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// Sorts behind every thing that is due at this time.
fn after_all(at: Timestamp) -> (Timestamp, ThingKey) {
    (at, ThingKey::new("\u{10ffff}", ""))
}
