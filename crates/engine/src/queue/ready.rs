//! Slots that are due: within each lane first come first served, and share by share in turns.

use std::collections::{BTreeMap, VecDeque};

use super::lane::Lane;

/// Stale entries that are borne before a lane is cleaned.
const STALE_MIN: usize = 64;

/// As with timers, an entry counts while the slot still carries the stamp it was made with.
#[derive(Default)]
pub(super) struct Ready {
    lanes: [Row; Lane::ALL.len()],
}

/// One lane. Whoever shares the queue with others has a line of its own, and lines take turns: who
/// brings a thousand keys at once waits for them, and nobody else does.
#[derive(Default)]
struct Row {
    lines: BTreeMap<u32, VecDeque<(u32, u32)>>,
    /// The lines that there are, in the order of their turns.
    turns: VecDeque<u32>,
    entries: usize,
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

    pub fn push(
        &mut self,
        lane: Lane,
        share: u32,
        slot: u32,
        stamp: u32,
        is_live: impl Fn(u32, u32) -> bool,
    ) {
        let row = &mut self.lanes[lane as usize];
        let line = row.lines.entry(share).or_insert_with(|| {
            row.turns.push_back(share);
            VecDeque::new()
        });
        line.push_back((slot, stamp));
        (row.live, row.entries) = (row.live + 1, row.entries + 1);
        if row.entries > row.live * 2 + STALE_MIN {
            row.clean(is_live);
        }
    }

    /// A slot left its lane without being taken: its stamp has changed.
    pub fn forget_one(&mut self, lane: Lane) {
        self.lanes[lane as usize].live -= 1;
    }

    /// Takes the first slot of the line whose turn it is in the best lane.
    pub fn pop(&mut self, is_live: impl Fn(u32, u32) -> bool) -> Option<u32> {
        self.lanes.iter_mut().find(|row| row.live > 0)?.pop(is_live)
    }

    /// The first slot of each line.
    pub fn heads(&self, is_live: impl Fn(u32, u32) -> bool) -> impl Iterator<Item = u32> {
        let lines = self.lanes.iter().flat_map(|row| row.lines.values());
        lines.filter_map(move |line| line.iter().find(|(slot, stamp)| is_live(*slot, *stamp)).map(|it| it.0))
    }
}

impl Row {
    fn pop(&mut self, is_live: impl Fn(u32, u32) -> bool) -> Option<u32> {
        while let Some(share) = self.turns.pop_front() {
            let Some(line) = self.lines.get_mut(&share) else { continue };
            let before = line.len();
            let taken = std::iter::from_fn(|| line.pop_front()).find(|(slot, stamp)| is_live(*slot, *stamp));
            self.entries -= before - line.len();
            if line.is_empty() {
                self.lines.remove(&share);
            } else {
                self.turns.push_back(share);
            }
            if let Some((slot, _)) = taken {
                self.live -= 1;
                return Some(slot);
            }
        }
        None
    }

    fn clean(&mut self, is_live: impl Fn(u32, u32) -> bool) {
        self.lines.retain(|_, line| {
            line.retain(|(slot, stamp)| is_live(*slot, *stamp));
            !line.is_empty()
        });
        self.turns.retain(|share| self.lines.contains_key(share));
        self.entries = self.lines.values().map(VecDeque::len).sum();
    }
}
