//! The things that reconcilers make, one for each incarnation of an entry.

use std::collections::BTreeMap;

use concert_model::Uid;

use super::run::RECONCILERS;

/// What there is, and what was done.
#[derive(Debug, Default)]
pub struct World {
    /// What each thing is like, and the newest fence that came to it.
    pub things: BTreeMap<(Uid, &'static str), Thing>,
    pub creates: u64,
    pub deletes: u64,
    pub effects: u64,
    pub fenced: u64,
    pub runs: u64,
    pub violations: Vec<String>,
}

/// One thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thing {
    /// None if there is none any more.
    pub value: Option<String>,
    pub fence: u64,
    /// Rises with each effect on any thing.
    pub version: u64,
}

/// Somebody else works on it by now.
#[derive(Debug)]
pub struct TurnedAway;

impl World {
    /// Makes a thing, changes it, or removes it. Refused to who is late.
    pub fn set(
        &mut self,
        entry: &Uid,
        reconciler: &'static str,
        value: Option<&str>,
        fence: u64,
    ) -> Result<(), TurnedAway> {
        self.version(entry, reconciler);
        let thing = self.things.entry((entry.clone(), reconciler)).or_default();
        if fence < thing.fence {
            self.fenced += 1;
            return Err(TurnedAway);
        }
        thing.fence = thing.fence.max(fence);
        if thing.value.as_deref() == value {
            return Ok(());
        }
        self.effects += 1;
        match (&thing.value, value) {
            (None, Some(_)) => self.creates += 1,
            (Some(_), None) => self.deletes += 1,
            _ => {}
        }
        thing.value = value.map(str::to_owned);
        thing.version = self.effects;
        Ok(())
    }

    /// What a thing is at. One that was never looked for begins where the world is.
    pub fn version(&mut self, entry: &Uid, reconciler: &'static str) -> u64 {
        let version = self.effects;
        let fresh = || Thing { version, ..Thing::default() };
        self.things.entry((entry.clone(), reconciler)).or_insert_with(fresh).version
    }

    /// The things of one entry, in the order of the reconcilers.
    pub fn of(&self, entry: &Uid) -> Vec<Option<&str>> {
        let value = |it: &&'static str| self.things.get(&(entry.clone(), *it))?.value.as_deref();
        RECONCILERS.iter().map(value).collect()
    }
}
