//! How often somebody may guess a password.
//!
//! Each user name and each address has a number of tries that fill up again with time. A try is taken
//! before the password is looked at, so that many at once do not get more, and given back if it was
//! right. Names that do not exist are counted like others: what is answered does not tell.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Wrong passwords for one user, and the time until one more may be tried.
const USER: Pace = Pace { burst: 10, every: Duration::from_secs(30) };
/// From one address, where many people may sit.
const ADDRESS: Pace = Pace { burst: 50, every: Duration::from_secs(6) };
/// Names or addresses that are remembered: some hundred bytes each.
const ENTRIES_MAX: usize = 10_000;

#[derive(Clone, Copy)]
struct Pace {
    burst: u32,
    every: Duration,
}

/// Who tries.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// As whom.
    pub username: &'a str,
    /// From where, if that is known.
    pub address: Option<IpAddr>,
    /// When, as [`Clock::elapsed`](concert_store::Clock::elapsed) has it.
    pub at: Duration,
}

/// Counts wrong passwords.
pub struct Throttle {
    counts: Mutex<Counts>,
}

struct Counts {
    users: Buckets<String>,
    addresses: Buckets<IpAddr>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new(ENTRIES_MAX)
    }
}

impl Throttle {
    fn new(entries_max: usize) -> Self {
        let counts =
            Counts { users: Buckets::new(USER, entries_max), addresses: Buckets::new(ADDRESS, entries_max) };
        Self { counts: Mutex::new(counts) }
    }

    /// Takes a try.
    ///
    /// # Errors
    /// There is none: how long until there is.
    pub fn take(&self, attempt: &Attempt<'_>) -> Result<(), Duration> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (user, address) = (key(attempt.username), attempt.address.map(network));
        let wait = counts.users.wait(&user, attempt.at);
        let wait = address.map_or(wait, |it| wait.max(counts.addresses.wait(&it, attempt.at)));
        if !wait.is_zero() {
            return Err(wait);
        }
        counts.users.take(user, attempt.at);
        if let Some(address) = address {
            counts.addresses.take(address, attempt.at);
        }
        Ok(())
    }

    /// The try was right: the user has all tries again, the address the one it took.
    pub fn succeed(&self, attempt: &Attempt<'_>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.users.forget(&key(attempt.username));
        self.return_address(&mut counts, attempt);
    }

    /// The password was not looked at: the try is given back.
    pub fn cancel(&self, attempt: &Attempt<'_>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.users.put_back(&key(attempt.username));
        self.return_address(&mut counts, attempt);
    }

    fn return_address(&self, counts: &mut Counts, attempt: &Attempt<'_>) {
        if let Some(address) = attempt.address.map(network) {
            counts.addresses.put_back(&address);
        }
    }
}

/// A name as it is counted; a long one cannot be a user and is not kept whole.
fn key(username: &str) -> String {
    username.chars().take(64).collect()
}

/// Who has one IPv6 address has all of its network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// For each key, when all its tries are there again: one number says how many are missing now.
struct Buckets<K> {
    pace: Pace,
    entries_max: usize,
    full_at: HashMap<K, Duration>,
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    fn new(pace: Pace, entries_max: usize) -> Self {
        Self { pace, entries_max, full_at: HashMap::new() }
    }

    /// How long until a try may be taken.
    fn wait(&self, key: &K, now: Duration) -> Duration {
        let missing = self.full_at.get(key).map_or(Duration::ZERO, |at| at.saturating_sub(now));
        (missing + self.pace.every).saturating_sub(self.pace.every * self.pace.burst)
    }

    fn take(&mut self, key: K, now: Duration) {
        self.make_room(&key, now);
        let at = self.full_at.entry(key).or_insert(now);
        *at = (*at).max(now) + self.pace.every;
    }

    fn put_back(&mut self, key: &K) {
        if let Some(at) = self.full_at.get_mut(key) {
            *at = at.saturating_sub(self.pace.every);
        }
    }

    fn forget(&mut self, key: &K) {
        self.full_at.remove(key);
    }

    /// Forgets those that have all their tries again; if all are in use, the half that soonest will.
    fn make_room(&mut self, key: &K, now: Duration) {
        if self.full_at.len() < self.entries_max || self.full_at.contains_key(key) {
            return;
        }
        self.full_at.retain(|_, at| *at > now);
        if self.full_at.len() >= self.entries_max {
            let mut times: Vec<Duration> = self.full_at.values().copied().collect();
            times.sort_unstable();
            let median = times[times.len() / 2];
            self.full_at.retain(|_, at| *at > median);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(username: &str, last: u8, at: u64) -> Attempt<'_> {
        Attempt { username, address: Some([192, 0, 2, last].into()), at: Duration::from_secs(at) }
    }

    #[test]
    fn a_user_has_ten_tries_and_then_one_every_half_minute() {
        let throttle = Throttle::default();
        for i in 0..10 {
            assert_eq!(throttle.take(&from("ann", i, 100)), Ok(()));
        }
        assert_eq!(throttle.take(&from("ann", 11, 100)), Err(Duration::from_secs(30)));
        assert_eq!(throttle.take(&from("ann", 11, 129)), Err(Duration::from_secs(1)));
        assert_eq!(throttle.take(&from("ann", 11, 130)), Ok(()));
        assert!(throttle.take(&from("ann", 11, 130)).is_err());
        assert_eq!(throttle.take(&from("bob", 11, 130)), Ok(()));
    }

    #[test]
    fn a_right_password_gives_all_tries_back() {
        let throttle = Throttle::default();
        for _ in 0..9 {
            throttle.take(&from("ann", 1, 0)).unwrap();
        }
        throttle.take(&from("ann", 1, 0)).unwrap();
        throttle.succeed(&from("ann", 1, 0));
        for _ in 0..10 {
            assert_eq!(throttle.take(&from("ann", 1, 0)), Ok(()));
        }
    }

    #[test]
    fn an_address_that_tries_many_names_runs_out() {
        let throttle = Throttle::default();
        let names: Vec<String> = (0..51).map(|i| format!("user-{i}")).collect();
        for name in &names[..50] {
            assert_eq!(throttle.take(&from(name, 1, 0)), Ok(()));
        }
        assert_eq!(throttle.take(&from(&names[50], 1, 0)), Err(Duration::from_secs(6)));
        assert_eq!(throttle.take(&from(&names[50], 2, 0)), Ok(()));
        throttle.cancel(&from(&names[0], 1, 0));
        assert_eq!(throttle.take(&from(&names[0], 1, 0)), Ok(()));
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        assert_eq!(
            network("2001:db8:1:2::1".parse().unwrap()),
            network("2001:db8:1:2:3:4:5:6".parse().unwrap())
        );
        assert_ne!(network("2001:db8:1:2::1".parse().unwrap()), network("2001:db8:1:3::1".parse().unwrap()));
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), IpAddr::from([192, 0, 2, 1]));
    }

    #[test]
    fn memory_is_bounded_and_the_worst_are_remembered() {
        let throttle = Throttle::new(100);
        for _ in 0..10 {
            throttle.take(&from("ann", 1, 0)).unwrap();
        }
        for i in 0..1000 {
            let name = format!("user-{i}");
            throttle.take(&Attempt { username: &name, address: None, at: Duration::from_secs(1) }).unwrap();
            assert!(throttle.counts.lock().unwrap().users.full_at.len() <= 100);
        }
        assert!(throttle.take(&from("ann", 1, 1)).is_err());
        let long = "x".repeat(1_000_000);
        throttle.take(&Attempt { username: &long, address: None, at: Duration::from_secs(1) }).unwrap();
        let counts = throttle.counts.lock().unwrap();
        assert!(counts.users.full_at.keys().all(|name| name.len() <= 256));
    }
}
