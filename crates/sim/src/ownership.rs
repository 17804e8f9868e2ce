//! Who has which share, over time: in fine weather one, and nobody for no longer than a takeover takes.

use std::collections::BTreeMap;
use std::time::Duration;

use concert_engine::members::Share;

/// The longest that a share may be on its way once nobody is disturbed: some leases by a slow clock, and some looks.
const TAKEOVER: Duration = Duration::from_secs(90);

/// What is known of shares so far.
#[derive(Default)]
pub struct Ownership {
    /// Until then somebody was stopped, cut off, killed or started.
    disturbed_until: Duration,
    /// One broken promise is enough: the next ones are its children.
    is_broken: bool,
}

impl Ownership {
    /// Something happens that moves shares, and lasts until then.
    pub fn disturb(&mut self, until: Duration) {
        self.disturbed_until = self.disturbed_until.max(until);
    }

    /// What is wrong now, in fine weather, with what each process believes to have: a share must have one owner
    /// when a takeover has had its time.
    pub fn check(&mut self, now: Duration, processes: &[Vec<Share>]) -> Option<String> {
        if self.is_broken || now < self.disturbed_until + TAKEOVER {
            return None;
        }
        let mut owners: BTreeMap<Share, u32> = Share::all().map(|share| (share, 0)).collect();
        for share in processes.iter().flatten() {
            *owners.entry(*share).or_default() += 1;
        }
        let wrong = owners.into_iter().find(|(_, count)| *count != 1);
        self.is_broken = wrong.is_some();
        wrong.map(|(share, count)| format!("share {share} has {count} owners at {now:?}"))
    }
}
