//! Slots that are due later.
//!
//! An entry is only a note that a slot may be due: it counts while the slot still carries the stamp
//! it was made with. So moving a slot costs one more entry instead of a search.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Stale entries that are borne before the heap is cleaned.
const STALE_MIN: usize = 64;

#[derive(Default)]
pub(super) struct Timers {
    /// Due time in nanoseconds, slot, stamp: 16 bytes.
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    live: usize,
}

impl Timers {
    /// How many slots wait.
    pub fn len(&self) -> usize {
        self.live
    }

    pub fn push(&mut self, due: u64, slot: u32, stamp: u32, is_live: impl Fn(u32, u32) -> bool) {
        self.live += 1;
        self.heap.push(Reverse((due, slot, stamp)));
        if self.heap.len() > self.live * 2 + STALE_MIN {
            self.heap.retain(|Reverse((_, slot, stamp))| is_live(*slot, *stamp));
        }
    }

    /// A slot left without being due: its stamp has changed.
    pub fn forget_one(&mut self) {
        self.live -= 1;
    }

    /// Takes a slot that is due by `now`.
    pub fn pop(&mut self, now: u64, is_live: impl Fn(u32, u32) -> bool) -> Option<u32> {
        let due = self.next_due(is_live)?;
        if due > now {
            return None;
        }
        let Reverse((_, slot, _)) = self.heap.pop()?;
        self.live -= 1;
        Some(slot)
    }

    /// When the next slot is due.
    pub fn next_due(&mut self, is_live: impl Fn(u32, u32) -> bool) -> Option<u64> {
        while let Some(Reverse((due, slot, stamp))) = self.heap.peek() {
            if is_live(*slot, *stamp) {
                return Some(*due);
            }
            self.heap.pop();
        }
        None
    }
}
