//! Slots that never move.

use std::ops::{Index, IndexMut};

/// Slots per chunk: large enough to be few, small enough that a new one costs nothing.
const CHUNK: usize = 1024;

/// A growing row of slots, in chunks: a doubling vector would cost twice the memory at its worst
/// moment and copy a million items at once.
pub(super) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new() }
    }

    /// A slot, used before or new. What is in a used one is for the caller to reset.
    pub fn take(&mut self, new: impl FnOnce() -> T) -> u32 {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let full = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.last_mut().expect("pushed above if there was none");
        chunk.push(new());
        u32::try_from(full + chunk.len() - 1).expect("the queue's capacity is below 2^32")
    }

    /// Gives a slot free to be taken again.
    pub fn give(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// All slots, free ones among them.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0u32..).zip(self.chunks.iter().flatten())
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, slot: u32) -> &T {
        &self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }
}
