//! Who has how much of what, right now.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::limits::{Limits, Rate};

/// Clients remembered though they have nothing open, for their rate.
const CLIENTS_MAX: usize = 10_000;

/// Counts of one listener. Cheap to clone.
#[derive(Clone)]
pub(super) struct Quota {
    limits: Arc<Limits>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    all: Counts,
    clients: HashMap<IpAddr, Client>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts([usize; 3]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Connection,
    Request,
    Watch,
}

struct Client {
    counts: Counts,
    /// Requests it may still make at once, as of `at`.
    tokens: f64,
    at: Duration,
}

/// There is enough already: come back after this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany(pub(super) Duration);

impl Quota {
    pub(super) fn new(limits: Arc<Limits>) -> Self {
        Self { limits, state: Arc::default() }
    }

    /// One more of `what` for the client at `address`, until the permit is dropped.
    pub(super) fn take(&self, what: What, address: IpAddr, now: Duration) -> Result<Permit, TooMany> {
        let client = client_of(address);
        let (all_max, client_max) = self.bounds(what);
        let mut state = self.lock();
        let state = &mut *state;
        if state.clients.len() >= CLIENTS_MAX && !state.clients.contains_key(&client) {
            state.clients.retain(|_, client| client.counts != Counts::default());
        }
        let rate = self.limits.rate;
        let entry = state.clients.entry(client).or_insert_with(|| Client::new(rate, now));
        if what != What::Connection
            && let Some(rate) = rate
        {
            entry.spend(rate, now)?;
        }
        if state.all.of(what) >= all_max || entry.counts.of(what) >= client_max {
            return Err(TooMany(Duration::from_secs(1)));
        }
        state.all.0[what as usize] += 1;
        entry.counts.0[what as usize] += 1;
        Ok(Permit { quota: self.clone(), what, client })
    }

    fn bounds(&self, what: What) -> (usize, usize) {
        let limits = &*self.limits;
        match what {
            What::Connection => (limits.connections_max, limits.connections_per_client_max),
            What::Request => (limits.requests_max, limits.requests_per_client_max),
            What::Watch => (limits.watches_max, limits.watches_per_client_max),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn of(self, what: What) -> usize {
        self.0[what as usize]
    }
}

impl Client {
    fn new(rate: Option<Rate>, now: Duration) -> Self {
        let tokens = rate.map_or(0.0, |rate| f64::from(rate.burst));
        Self { counts: Counts::default(), tokens, at: now }
    }

    fn spend(&mut self, rate: Rate, now: Duration) -> Result<(), TooMany> {
        let earned = now.saturating_sub(self.at).as_secs_f64() * f64::from(rate.per_second);
        self.tokens = (self.tokens + earned).min(f64::from(rate.burst));
        self.at = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let missing = (1.0 - self.tokens) / f64::from(rate.per_second.max(1));
        Err(TooMany(Duration::from_secs_f64(missing)))
    }
}

/// One of something; given back when dropped.
pub(super) struct Permit {
    quota: Quota,
    what: What,
    client: IpAddr,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.quota.lock();
        state.all.0[self.what as usize] -= 1;
        let Some(client) = state.clients.get_mut(&self.client) else { return };
        client.counts.0[self.what as usize] -= 1;
        // Without a rate there is nothing to remember of a client that left.
        if self.quota.limits.rate.is_none() && client.counts == Counts::default() {
            state.clients.remove(&self.client);
        }
    }
}

/// Whoever has one address of an IPv6 network has 2^64 of them.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const TWO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn quota(limits: Limits) -> Quota {
        Quota::new(Arc::new(limits))
    }

    #[test]
    fn each_client_has_its_share_and_all_have_theirs() {
        let limits = Limits { watches_max: 3, watches_per_client_max: 2, rate: None, ..Limits::default() };
        let quota = quota(limits);
        let take = |from| quota.take(What::Watch, from, Duration::ZERO);
        let (one, two) = (take(ONE).unwrap(), take(ONE).unwrap());
        assert!(take(ONE).is_err());
        let three = take(TWO).unwrap();
        assert!(take(TWO).is_err());
        drop(one);
        let _four = take(TWO).unwrap();
        assert!(quota.take(What::Request, TWO, Duration::ZERO).is_ok());
        drop((two, three));
        assert_eq!(quota.lock().clients.len(), 1);
    }

    #[test]
    fn a_client_that_asks_too_fast_is_told_when_to_come_back() {
        let quota = quota(Limits { rate: Some(Rate { per_second: 2, burst: 3 }), ..Limits::default() });
        let ask = |from, at| quota.take(What::Request, from, Duration::from_millis(at)).map(drop);
        for _ in 0..3 {
            assert_eq!(ask(ONE, 0), Ok(()));
        }
        assert_eq!(ask(ONE, 0), Err(TooMany(Duration::from_millis(500))));
        assert_eq!(ask(TWO, 0), Ok(()));
        assert_eq!(ask(ONE, 250), Err(TooMany(Duration::from_millis(250))));
        assert_eq!(ask(ONE, 500), Ok(()));
        assert!(ask(ONE, 500).is_err());
        assert_eq!((0..4).filter(|_| ask(ONE, 100_000).is_ok()).count(), 3);
    }

    #[test]
    fn a_network_is_one_client() {
        let parse = |text: &str| client_of(text.parse().unwrap());
        assert_eq!(parse("2001:db8::1"), parse("2001:db8::ffff:1"));
        assert_ne!(parse("2001:db8::1"), parse("2001:db8:0:1::1"));
        assert_eq!(parse("::ffff:192.0.2.1"), ONE);
        assert_ne!(parse("::1"), parse("::2"));
    }
}
