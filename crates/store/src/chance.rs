//! Randomness, handed in.

use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

/// A shared source of random numbers, good enough for keys. The same seed gives the same numbers.
#[derive(Clone)]
pub struct Chance(Arc<Mutex<StdRng>>);

impl Chance {
    /// Numbers nobody can foresee.
    pub fn from_system() -> Self {
        let mut system = rand::rngs::SysRng;
        let seed = StdRng::try_from_rng(&mut system).expect("the operating system gives random bytes");
        Self(Arc::new(Mutex::new(seed)))
    }

    /// The numbers of `seed`: for simulation and tests.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// A source of its own, seeded from this one.
    pub fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.with(StdRng::from_rng))))
    }

    /// 128 random bits.
    pub fn bits(&self) -> u128 {
        self.with(RngExt::random)
    }

    /// Fills `bytes`.
    pub fn fill(&self, bytes: &mut [u8]) {
        self.with(|rng| rng.fill_bytes(bytes));
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.with(|rng| rng.random_range(0..bound)) }
    }

    /// A number from 0 to just under 1.
    pub fn fraction(&self) -> f64 {
        self.with(RngExt::random)
    }

    /// True in `probability` of all cases.
    pub fn is_hit(&self, probability: f64) -> bool {
        self.fraction() < probability
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Chance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Chance")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |c: Chance| (c.bits(), c.below(10), c.fork().bits());
        assert_eq!(draw(Chance::seeded(1)), draw(Chance::seeded(1)));
        assert_ne!(draw(Chance::seeded(1)), draw(Chance::seeded(2)));
        assert_ne!(Chance::from_system().bits(), Chance::from_system().bits());
    }
}
