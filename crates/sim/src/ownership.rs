//! Who has which share, over time: nobody beside another for long, and in fine weather one, or nobody for no
//! longer than a takeover takes.

use std::collections::BTreeMap;
use std::time::Duration;

use concert_engine::members::{Config, Share};

use crate::skew::DRIFT;

/// What is known of shares so far.
pub struct Ownership {
    /// The longest that a share may be on its way once nobody is disturbed.
    takeover: Duration,
    /// The longest that two may believe to have one.
    lease: Duration,
    /// Until then somebody was stopped, cut off, killed or started.
    disturbed_until: Duration,
    /// What two believe to have, and since when.
    doubled: BTreeMap<Share, Duration>,
    /// One broken promise is enough: the next ones are its children.
    is_broken: bool,
}

impl Ownership {
    /// Nobody has anything yet. All members behave like this.
    pub fn new(config: &Config) -> Self {
        Self {
            takeover: takeover(config),
            lease: config.lease,
            disturbed_until: Duration::ZERO,
            doubled: BTreeMap::new(),
            is_broken: false,
        }
    }

    /// The longest that a share may be on its way once nobody is disturbed.
    pub fn takeover(&self) -> Duration {
        self.takeover
    }

    /// Something happens that moves shares, and lasts until then.
    pub fn disturb(&mut self, until: Duration) {
        self.disturbed_until = self.disturbed_until.max(until);
    }

    /// What is wrong now, in fine weather, with what each process believes to have: a share must have one owner
    /// when a takeover has had its time.
    pub fn check(&mut self, now: Duration, processes: &[Vec<Share>]) -> Option<String> {
        if self.is_broken || now < self.disturbed_until + self.takeover {
            return None;
        }
        let wrong = owners(processes).into_iter().find(|(_, count)| *count != 1);
        self.is_broken = wrong.is_some();
        wrong.map(|(share, count)| format!("share {share} has {count} owners at {now:?}"))
    }

    /// What is wrong now, in any weather, with what each process that is awake works in. A member gives up before
    /// its lease ends, by whatever clock. A look that takes long may still declare one dead that has just
    /// renewed; that one sees at its next look that it has lost, and its effects are refused until then.
    pub fn check_doubles(&mut self, now: Duration, processes: &[Vec<Share>]) -> Option<String> {
        let owners = owners(processes);
        let is_double = |share: &Share| owners.get(share).is_some_and(|count| *count > 1);
        self.doubled.retain(|share, _| is_double(share));
        for share in owners.keys().filter(|it| is_double(it)) {
            self.doubled.entry(*share).or_insert(now);
        }
        let is_wrong = self.doubled.iter().find(|(_, since)| now.saturating_sub(**since) > self.lease);
        let wrong = is_wrong.map(|(share, _)| *share).filter(|_| !self.is_broken)?;
        self.is_broken = true;
        Some(format!("share {wrong} has had two owners for longer than a lease at {now:?}"))
    }
}

/// How many have each share.
fn owners(processes: &[Vec<Share>]) -> BTreeMap<Share, u32> {
    let mut owners: BTreeMap<Share, u32> = Share::all().map(|share| (share, 0)).collect();
    for share in processes.iter().flatten() {
        *owners.entry(*share).or_default() += 1;
    }
    owners
}

/// Who leaves has its patience to do so, and if it cannot say that it is gone, the others wait for its lease. One
/// who loses its membership meanwhile is back within a lease, knows of no renewals, and counts a whole one anew.
/// Beside that there are looks: one to see the rows, one to find a lease over, one to give up what came without
/// a word, one to hear what is asked back, one to take it, and one that was just missed. All by the slowest clock.
fn takeover(config: &Config) -> Duration {
    (config.patience + config.lease * 2 + config.look_every * 6).div_f64(1.0 - DRIFT)
}
