//! Which share a key is in, and which member a share belongs to.
//!
//! All keys are dealt out to a fixed number of shares. Shares belong to members by rendezvous hashing: each
//! member draws a number for the share, the same wherever it is computed, and the highest has it. So a
//! member that comes takes shares only for itself, and the shares of one that goes are spread over the rest;
//! nothing else moves.

use std::fmt::{self, Display, Write};
use std::sync::Arc;

/// How many shares there are. Stable for ever: members of different versions must agree. Each is a row that
/// somebody claims, so no more than are needed for about equal parts among a dozen members.
pub const SHARES: u16 = 128;

/// One part of all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u16);

impl Share {
    /// The share of what prints like this: a key, or the name of something that one member does for all.
    pub fn of(what: &(impl Display + ?Sized)) -> Self {
        let mut hash = Fnv::default();
        // Nothing here fails to be written.
        write!(hash, "{what}").ok();
        Self((mixed(hash.0) % u64::from(SHARES)) as u16)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SHARES).map(Self)
    }

    /// Reads what was printed.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|it| *it < SHARES).map(Self)
    }

    /// Counted from 0.
    pub fn number(self) -> u16 {
        self.0
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03}", self.0)
    }
}

/// One of several processes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub Arc<str>);

/// The member that `key` belongs to; none where there is nobody.
pub fn owner<'a>(members: impl IntoIterator<Item = &'a Member>, key: &str) -> Option<&'a Member> {
    // Of two that drew the same, the one whose name comes first.
    members.into_iter().max_by_key(|member| (draw(&member.0, key), std::cmp::Reverse(*member)))
}

/// True if `key` belongs to `member`, among these.
pub fn owns<'a>(member: &Member, members: impl IntoIterator<Item = &'a Member>, key: &str) -> bool {
    owner(members, key) == Some(member)
}

/// A number for a pair. Stable for ever: members of different versions must agree.
fn draw(member: &str, key: &str) -> u64 {
    let mut hash = Fnv::default();
    // With a byte between that no name has.
    member.bytes().chain([0xff]).chain(key.bytes()).for_each(|byte| hash.add(byte));
    mixed(hash.0)
}

/// FNV-1a.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.add(byte));
        Ok(())
    }
}

/// Every bit of the number depends on every bit of the hash (the finalizer of MurmurHash3).
fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const KEYS: usize = 10_000;

    fn members(count: usize) -> Vec<Member> {
        (0..count).map(|n| Member(format!("host-{n}").into())).collect()
    }

    fn key(n: usize) -> String {
        format!("managed/Bucket.example.com/default/bucket-{n}")
    }

    fn owned(members: &[Member]) -> Vec<Option<&Member>> {
        (0..KEYS).map(|n| owner(members, &key(n))).collect()
    }

    #[test]
    fn nobody_owns_anything_where_nobody_is() {
        assert_eq!(owner(&[], "a"), None);
        assert!(!owns(&Member("a".into()), &[], "a"));
    }

    #[test]
    fn who_comes_takes_keys_for_itself_only() {
        let (few, more) = (members(3), members(4));
        let moved: Vec<_> = owned(&few).into_iter().zip(owned(&more)).filter(|(a, b)| a != b).collect();
        assert!(moved.iter().all(|(_, new)| *new == more.last()));
        // About a quarter.
        assert!((KEYS / 5..KEYS / 3).contains(&moved.len()), "{}", moved.len());
    }

    #[test]
    fn who_goes_leaves_its_keys_to_all_others_alike() {
        let all = members(5);
        let rest: Vec<Member> = all.iter().filter(|it| &*it.0 != "host-2").cloned().collect();
        let mut heirs: BTreeMap<&Member, usize> = BTreeMap::new();
        for (before, after) in owned(&all).into_iter().zip(owned(&rest)) {
            if before == Some(&all[2]) {
                *heirs.entry(after.unwrap()).or_default() += 1;
            } else {
                assert_eq!(before, after);
            }
        }
        assert!(heirs.len() == 4 && heirs.values().all(|count| *count > KEYS / 40), "{heirs:?}");
    }

    #[test]
    fn shares_are_about_equal_and_the_order_of_members_does_not_matter() {
        let all = members(7);
        let backwards: Vec<Member> = all.iter().rev().cloned().collect();
        let mut shares: BTreeMap<&Member, usize> = BTreeMap::new();
        for n in 0..KEYS {
            let whose = owner(&all, &key(n)).unwrap();
            assert_eq!(Some(whose), owner(&backwards, &key(n)));
            *shares.entry(whose).or_default() += 1;
        }
        let even = KEYS / all.len();
        assert!(shares.values().all(|count| count.abs_diff(even) < even / 5), "{shares:?}");
    }

    #[test]
    fn numbers_never_change() {
        assert_eq!(draw("host-0", "a"), 15_401_577_397_785_485_052);
        assert_ne!(draw("host-0", "a"), draw("host-1", "a"));
        assert_ne!(draw("ab", "c"), draw("a", "bc"));
        assert_eq!(Share::of("Bucket.example.com/default/photos").to_string(), "062");
    }

    #[test]
    fn shares_are_about_equally_large_and_can_be_read_back() {
        let mut sizes = vec![0_usize; usize::from(SHARES)];
        (0..100_000).for_each(|n| sizes[Share::of(&key(n)).index()] += 1);
        let even = 100_000 / usize::from(SHARES);
        assert!(sizes.iter().all(|size| size.abs_diff(even) < even / 4), "{sizes:?}");
        assert!(Share::all().all(|share| Share::parse(&share.to_string()) == Some(share)));
        assert_eq!((Share::parse("128"), Share::parse("x")), (None, None));
    }
}
