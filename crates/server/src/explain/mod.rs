//! Why an object is not ready, in one sentence.
//!
//! [`explain`] is a plain function of [`Facts`]: whoever has the store and the engine gathers them, and
//! a client that has only the object and its events can ask as well. The texts are pinned by tests.

mod blocked;
mod chain;
mod claim;
mod deletion;
mod diagnose;
mod explanation;
mod facts;
mod fleet;
mod settled;
mod words;
mod working;

#[cfg(test)]
mod tests;

pub use explanation::{Explanation, Link};
pub use facts::{Definition, Facts, Holder, Item, Related, Relation, Service, State, Told};
pub use fleet::{Component, Dependency};
pub use words::span;

/// The sentence, and the chain below it.
pub fn explain(facts: &Facts) -> Explanation {
    let finding = diagnose::diagnose(facts);
    Explanation {
        sentence: format!("{} {}.", words::subject(&facts.object), finding.text),
        is_ready: finding.is_ready,
        chain: chain::chain(facts),
        next_try: facts.next_try(),
    }
}
