//! What really happened, whatever the callers were told.

use std::collections::{BTreeMap, BTreeSet};

use concert_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::thing::{Account, Owner, Thing, ThingKey};

/// One line of the truth log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Counts from 1, without gaps.
    pub sequence: u64,
    /// When.
    pub time: Timestamp,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    /// A thing was made.
    Created {
        /// As it was made.
        thing: Box<Thing>,
        /// With this token.
        token: Option<String>,
        /// The number of the claim that it was done under, where the caller told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fence: Option<u64>,
    },
    /// Its properties changed.
    Updated {
        /// Which one.
        key: ThingKey,
        /// All properties from now on.
        properties: Map<String, Value>,
        /// Whether it was broken by hand.
        is_broken: bool,
        /// Whether it was done behind the back of the provider.
        by_hand: bool,
        /// The number of the claim that it was done under, where the caller told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fence: Option<u64>,
    },
    /// It is gone.
    Deleted {
        /// Which one.
        key: ThingKey,
        /// Whether it was done behind the back of the provider.
        by_hand: bool,
        /// The number of the claim that it was done under, where the caller told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fence: Option<u64>,
    },
    /// A lookup found nothing, so the token can never make anything.
    Burnt {
        /// In which account.
        account: Account,
        /// Which one.
        token: String,
    },
}

/// An object for which a thing was made while an earlier one lived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Double {
    /// The object.
    pub owner: Owner,
    /// The ids that lived side by side at the worst moment, oldest first.
    pub ids: Vec<String>,
}

/// The truth in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Things ever made.
    pub created: u64,
    /// Changes of properties.
    pub updated: u64,
    /// Things ever removed.
    pub deleted: u64,
    /// Tokens burnt.
    pub burnt: u64,
    /// Things there are.
    pub live: u64,
    /// Objects with a double.
    pub doubles: u64,
    /// Changes by one who had been replaced.
    #[serde(default)]
    pub late: u64,
}

/// All that ever happened, in order.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    entries: Vec<Entry>,
}

impl Truth {
    /// Every entry after the given sequence number; 0 for all.
    pub fn since(&self, sequence: u64) -> &[Entry] {
        let start = usize::try_from(sequence).unwrap_or(usize::MAX).min(self.entries.len());
        &self.entries[start..]
    }

    /// The things there are, by type and id.
    pub fn live(&self) -> Vec<Thing> {
        let mut live = BTreeMap::new();
        for entry in &self.entries {
            match &entry.event {
                Event::Created { thing, .. } => drop(live.insert(&thing.key, (**thing).clone())),
                Event::Updated { key, properties, is_broken, .. } => {
                    if let Some(thing) = live.get_mut(key) {
                        thing.properties = properties.clone();
                        thing.is_broken = *is_broken;
                    }
                }
                Event::Deleted { key, .. } => drop(live.remove(key)),
                Event::Burnt { .. } => {}
            }
        }
        live.into_values().collect()
    }

    /// The ids of all things ever made for an object, oldest first.
    pub fn created_for(&self, uid: &str) -> Vec<ThingKey> {
        let of = |entry: &Entry| match &entry.event {
            Event::Created { thing, .. } if thing.owner.uid == uid => Some(thing.key.clone()),
            _ => None,
        };
        self.entries.iter().filter_map(of).collect()
    }

    /// Objects that ever had more than one thing at a time.
    pub fn doubles(&self) -> Vec<Double> {
        let mut alive: BTreeMap<&str, Vec<&ThingKey>> = BTreeMap::new();
        let mut owners: BTreeMap<&ThingKey, &Owner> = BTreeMap::new();
        let mut worst: BTreeMap<&str, Double> = BTreeMap::new();
        for entry in &self.entries {
            match &entry.event {
                Event::Created { thing, .. } if !thing.owner.uid.is_empty() => {
                    owners.insert(&thing.key, &thing.owner);
                    let ids = alive.entry(&thing.owner.uid).or_default();
                    ids.push(&thing.key);
                    let known = worst.get(thing.owner.uid.as_str()).map_or(1, |double| double.ids.len());
                    if ids.len() > known {
                        let ids = ids.iter().map(|key| key.id.clone()).collect();
                        worst.insert(&thing.owner.uid, Double { owner: thing.owner.clone(), ids });
                    }
                }
                Event::Deleted { key, .. } => {
                    let ids = owners.get(key).and_then(|owner| alive.get_mut(owner.uid.as_str()));
                    if let Some(ids) = ids {
                        ids.retain(|id| *id != key);
                    }
                }
                _ => {}
            }
        }
        worst.into_values().collect()
    }

    /// Changes for an object that came after one under a newer claim: whoever made them had been replaced, and
    /// should have been stopped.
    pub fn late(&self) -> Vec<&Entry> {
        let mut owners: BTreeMap<&ThingKey, &str> = BTreeMap::new();
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        let mut late = Vec::new();
        for entry in &self.entries {
            let (key, fence) = match &entry.event {
                Event::Created { thing, fence, .. } => {
                    owners.insert(&thing.key, &thing.owner.uid);
                    (&thing.key, fence)
                }
                Event::Updated { key, fence, .. } | Event::Deleted { key, fence, .. } => (key, fence),
                Event::Burnt { .. } => continue,
            };
            let (Some(owner), Some(fence)) = (owners.get(key), fence) else { continue };
            let newest = newest.entry(owner).or_default();
            *newest = (*newest).max(*fence);
            if fence < newest {
                late.push(entry);
            }
        }
        late
    }

    /// Things whose object the caller does not know. Things made by hand have no object and are not
    /// leaks.
    pub fn leaks(&self, known: &BTreeSet<String>) -> Vec<Thing> {
        let is_leak = |thing: &Thing| !thing.owner.uid.is_empty() && !known.contains(&thing.owner.uid);
        self.live().into_iter().filter(is_leak).collect()
    }

    /// The truth in numbers.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary {
            doubles: self.doubles().len() as u64,
            late: self.late().len() as u64,
            ..Summary::default()
        };
        for entry in &self.entries {
            match entry.event {
                Event::Created { .. } => summary.created += 1,
                Event::Updated { .. } => summary.updated += 1,
                Event::Deleted { .. } => summary.deleted += 1,
                Event::Burnt { .. } => summary.burnt += 1,
            }
        }
        summary.live = summary.created - summary.deleted;
        summary
    }

    /// The entry that would record `event`.
    pub(super) fn next(&self, event: Event, time: Timestamp) -> Entry {
        Entry { sequence: self.entries.len() as u64 + 1, time, event }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }
}
