//! Is there an order in which all this could have happened one after the other?
//!
//! A history is linearizable if every operation can be given a moment between its call and its answer
//! so that, taken at these moments, each answer is the right one. Objects are independent, so each
//! key is checked by itself. The search is Wing and Gong's with Lowe's memory of configurations that
//! lead nowhere.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;

/// What operations do to a state.
pub trait Model {
    /// The state of one key.
    type State: Clone + Eq + Hash + Debug;
    /// An operation, and what it was answered.
    type Operation: Clone + Debug;

    /// The state after `operation`, or none if it cannot have been answered so in `state`.
    fn step(&self, state: &Self::State, operation: &Self::Operation) -> Option<Self::State>;
}

/// One operation between two ticks of a clock that all callers share.
#[derive(Clone, Debug)]
pub struct Span<O> {
    /// The tick before it was called.
    pub called: u64,
    /// The tick after it was answered.
    pub answered: u64,
    /// What it was.
    pub operation: O,
}

/// What cannot be put in an order.
#[derive(Clone, Debug)]
pub struct Violation<O> {
    /// The longest run that can, in order.
    pub longest: Vec<O>,
    /// The operation that must come next and cannot.
    pub stuck: O,
}

/// Puts the operations of one key in order, starting from `initial`.
///
/// # Errors
/// [`Violation`] when there is no order.
pub fn check<M: Model>(
    model: &M,
    initial: M::State,
    history: &[Span<M::Operation>],
) -> Result<(), Violation<M::Operation>> {
    let mut search = Search::new(history);
    let mut state = initial;
    let mut dead_ends = HashSet::new();
    let mut longest = Vec::new();
    let mut stuck = 0;
    // Operations taken, in order, each with the state before it.
    let mut taken: Vec<(usize, M::State)> = Vec::new();
    let mut at = search.first();
    loop {
        match at {
            None => return Ok(()),
            Some(Entry::Call(operation)) => {
                let next = model.step(&state, &history[operation].operation);
                let next = next.filter(|next| dead_ends.insert((search.with(operation), next.clone())));
                if let Some(next) = next {
                    taken.push((operation, std::mem::replace(&mut state, next)));
                    search.take(operation);
                    if taken.len() > longest.len() {
                        longest = taken.iter().map(|(operation, _)| *operation).collect();
                    }
                    at = search.first();
                } else {
                    at = search.after_call(operation);
                }
            }
            // An operation that is not taken yet was answered here: too late for it. Take back the last
            // one and try another in its place.
            Some(Entry::Answer(operation)) => {
                if taken.len() == longest.len() {
                    stuck = operation;
                }
                let Some((last, before)) = taken.pop() else {
                    let longest = longest.iter().map(|i: &usize| history[*i].operation.clone()).collect();
                    return Err(Violation { longest, stuck: history[stuck].operation.clone() });
                };
                state = before;
                search.put_back(last);
                at = search.after_call(last);
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Call(usize),
    Answer(usize),
}

/// Calls and answers in the order of their ticks, as a list from which operations are taken and put
/// back in the opposite order.
struct Search {
    entries: Vec<Entry>,
    /// Neighbours of each entry; the last place is both ends.
    next: Vec<usize>,
    previous: Vec<usize>,
    calls: Vec<usize>,
    answers: Vec<usize>,
    is_taken: Vec<u64>,
}

impl Search {
    fn new<O>(history: &[Span<O>]) -> Self {
        let mut ticks = BTreeMap::new();
        for (i, span) in history.iter().enumerate() {
            assert!(span.called < span.answered, "answered before it was called");
            ticks.insert(span.called, Entry::Call(i));
            ticks.insert(span.answered, Entry::Answer(i));
        }
        assert_eq!(ticks.len(), 2 * history.len(), "every call and every answer has a tick of its own");
        let entries: Vec<Entry> = ticks.into_values().collect();
        let count = entries.len();
        let (mut calls, mut answers) = (vec![0; history.len()], vec![0; history.len()]);
        for (place, entry) in entries.iter().enumerate() {
            match *entry {
                Entry::Call(i) => calls[i] = place,
                Entry::Answer(i) => answers[i] = place,
            }
        }
        let next = (1..=count).chain([0]).collect();
        let previous = std::iter::once(count).chain(0..count).collect();
        Self { entries, next, previous, calls, answers, is_taken: vec![0; history.len().div_ceil(64)] }
    }

    fn first(&self) -> Option<Entry> {
        self.at(self.next[self.entries.len()])
    }

    fn after_call(&self, operation: usize) -> Option<Entry> {
        self.at(self.next[self.calls[operation]])
    }

    fn at(&self, place: usize) -> Option<Entry> {
        self.entries.get(place).copied()
    }

    /// Which operations would be taken with this one.
    fn with(&self, operation: usize) -> Vec<u64> {
        let mut taken = self.is_taken.clone();
        taken[operation / 64] |= 1 << (operation % 64);
        taken
    }

    fn take(&mut self, operation: usize) {
        self.is_taken[operation / 64] |= 1 << (operation % 64);
        for place in [self.calls[operation], self.answers[operation]] {
            let (previous, next) = (self.previous[place], self.next[place]);
            self.next[previous] = next;
            self.previous[next] = previous;
        }
    }

    fn put_back(&mut self, operation: usize) {
        self.is_taken[operation / 64] &= !(1 << (operation % 64));
        // In the opposite order, so that each finds the neighbours it had.
        for place in [self.answers[operation], self.calls[operation]] {
            let (previous, next) = (self.previous[place], self.next[place]);
            self.next[previous] = place;
            self.previous[next] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One number that is written and read.
    struct Register;

    #[derive(Clone, Debug)]
    enum Operation {
        Write(u32),
        Read(u32),
        /// From, to, and whether it was so.
        Swap(u32, u32, bool),
    }
    use Operation::{Read, Swap, Write};

    impl Model for Register {
        type State = u32;
        type Operation = Operation;

        fn step(&self, state: &u32, operation: &Operation) -> Option<u32> {
            match *operation {
                Write(n) => Some(n),
                Read(n) => (n == *state).then_some(n),
                Swap(from, to, true) => (from == *state).then_some(to),
                Swap(from, _, false) => (from != *state).then_some(*state),
            }
        }
    }

    fn is_linearizable(history: &[(u64, u64, Operation)]) -> bool {
        let span = |(called, answered, operation): &(u64, u64, Operation)| Span {
            called: *called,
            answered: *answered,
            operation: operation.clone(),
        };
        check(&Register, 0, &history.iter().map(span).collect::<Vec<_>>()).is_ok()
    }

    #[test]
    fn what_happened_in_some_order_is_accepted() {
        for good in [
            vec![],
            vec![(1, 2, Write(1)), (3, 4, Read(1))],
            // A read beside a write may see it or not.
            vec![(1, 4, Write(1)), (2, 3, Read(0))],
            vec![(1, 4, Write(1)), (2, 3, Read(1))],
            // The first write may take effect last.
            vec![(1, 6, Write(1)), (2, 3, Write(2)), (4, 5, Read(2)), (7, 8, Read(1))],
            vec![(1, 4, Swap(0, 1, true)), (2, 3, Swap(0, 2, false)), (5, 6, Read(1))],
            // The order of answers is not the order of effects.
            vec![(1, 8, Write(1)), (2, 7, Write(2)), (3, 6, Write(3)), (4, 5, Read(2)), (9, 10, Read(3))],
        ] {
            assert!(is_linearizable(&good), "{good:?}");
        }
    }

    #[test]
    fn what_cannot_have_happened_is_rejected() {
        for bad in [
            // A stale read, and a read from nowhere.
            vec![(1, 2, Write(1)), (3, 4, Read(0))],
            vec![(1, 2, Write(1)), (3, 4, Read(2))],
            // A lost update: both swaps from the same state.
            vec![(1, 4, Swap(0, 1, true)), (2, 3, Swap(0, 2, true))],
            // Time travel: new, then old again.
            vec![(1, 6, Write(1)), (2, 3, Read(1)), (4, 5, Read(0))],
            // Two readers who see two writes in different orders.
            vec![(1, 12, Write(1)), (2, 13, Write(2)), (3, 4, Read(1)), (5, 6, Read(2)), (7, 8, Read(1))],
            // Refused although nobody was in the way.
            vec![(1, 2, Swap(0, 1, false)), (3, 4, Read(0))],
        ] {
            assert!(!is_linearizable(&bad), "{bad:?}");
        }
    }

    #[test]
    fn a_violation_names_the_operation_that_does_not_fit() {
        let history = [(1, 2, Write(1)), (3, 4, Read(0))].map(|(called, answered, operation)| Span {
            called,
            answered,
            operation,
        });
        let violation = check(&Register, 0, &history).unwrap_err();
        assert!(matches!(violation.stuck, Read(0)), "{violation:?}");
        assert_eq!(violation.longest.len(), 1);
    }

    /// Without the memory of dead ends this would try every order of fourteen writes.
    #[test]
    fn dead_ends_are_remembered() {
        let mut history: Vec<_> = (0..14).map(|i| (1 + i, 100 + i, Write(1))).collect();
        history.push((200, 201, Read(2)));
        assert!(!is_linearizable(&history));
    }
}
