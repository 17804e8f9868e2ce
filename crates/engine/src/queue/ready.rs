//! Slots that are due, first come first served within each lane.

use std::collections::VecDeque;

use super::lane::Lane;

/// Stale entries that are borne before a lane is cleaned.
const STALE_MIN: usize = 64;

/// As with timers, an entry counts while the slot still carries the stamp it was made with.
#[derive(Default)]
pub(super) struct Ready {
    lanes: [Row; Lane::ALL.len()],
}

#[derive(Default)]
struct Row {
    entries: VecDeque<(u32, u32)>,
    live: usize,
}

impl Ready {
    /// How many slots wait, by lane.
    pub fn len(&self) -> [usize; Lane::ALL.len()] {
        [0, 1, 2, 3].map(|lane| self.lanes[lane].live)
    }

    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|row| row.live == 0)
    }

    pub fn push(&mut self, lane: Lane, slot: u32, stamp: u32, is_live: impl Fn(u32, u32) -> bool) {
        let row = &mut self.lanes[lane as usize];
        row.live += 1;
        row.entries.push_back((slot, stamp));
        if row.entries.len() > row.live * 2 + STALE_MIN {
            row.entries.retain(|(slot, stamp)| is_live(*slot, *stamp));
        }
    }

    /// A slot left its lane without being taken: its stamp has changed.
    pub fn forget_one(&mut self, lane: Lane) {
        self.lanes[lane as usize].live -= 1;
    }

    /// Takes the first slot of the best lane.
    pub fn pop(&mut self, is_live: impl Fn(u32, u32) -> bool) -> Option<u32> {
        let row = self.lanes.iter_mut().find(|row| row.live > 0)?;
        while let Some((slot, stamp)) = row.entries.pop_front() {
            if is_live(slot, stamp) {
                row.live -= 1;
                return Some(slot);
            }
        }
        None
    }
}
