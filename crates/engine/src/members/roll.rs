//! Who is there and who has what: rows of work state that all members read.

use std::collections::BTreeMap;
use std::time::Duration;

use concert_model::Timestamp;
use concert_store::{Error, ItemKey, Work};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::plan::Manner;
use super::share::{Member, Share};

/// What a member tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Profile {
    /// Where it answers, as a URL; empty if others cannot reach it.
    pub address: String,
    /// The authority that its certificate is of, as PEM; empty where it needs none.
    pub trust: String,
    /// Of the program.
    pub version: String,
    /// When it joined, by its own clock. For people.
    #[serde(deserialize_with = "if_known")]
    pub since: Option<Timestamp>,
    /// How it wants the keys to be shared.
    #[serde(deserialize_with = "if_known")]
    pub manner: Manner,
}

/// The body of a member's row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Body {
    #[serde(deserialize_with = "if_known")]
    pub profile: Profile,
    pub lease_millis: u64,
    pub renewals: u64,
    /// It takes nothing more, and gives back what it has.
    pub is_leaving: bool,
}

/// What a newer member says in a way that is not known here counts as not said. The rest of its row must be
/// read all the same: one without a lease would be taken for dead, and what it has be taken away.
fn if_known<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// All rows as they were at one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    /// Who has a row, alive or not.
    pub members: BTreeMap<Member, Seen>,
    /// Who has which share; none that was never claimed.
    pub shares: BTreeMap<Share, Claimed>,
}

/// A member's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What it tells.
    pub profile: Profile,
    /// How long the row is good for.
    pub lease: Duration,
    /// Whether it gives back what it has.
    pub is_leaving: bool,
    /// Differs with every renewal. For equality only.
    pub token: (u64, u64),
}

/// A share's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Who has it; none if it was given back.
    pub holder: Option<Member>,
    /// The number of the newest claim.
    pub fence: u64,
}

/// What the rows of `group` say.
///
/// # Errors
/// Any of the store's.
pub async fn roll(work: &dyn Work, group: &str) -> Result<Roll, Error> {
    let mut roll = Roll::default();
    for row in work.scan(&members_of(group)).await? {
        // A row of nobody's making is of a member that is long gone.
        let Body { profile, lease_millis, renewals, is_leaving } =
            serde_json::from_slice(&row.body).unwrap_or_default();
        let lease = Duration::from_millis(lease_millis);
        let seen = Seen { profile, lease, is_leaving, token: (row.fence, renewals) };
        roll.members.insert(Member(row.item.item.clone()), seen);
    }
    for row in work.scan(&shares_of(group)).await? {
        let Some(share) = Share::parse(&row.item.item) else { continue };
        let holder = std::str::from_utf8(&row.body).unwrap_or_default();
        let holder = Some(holder).filter(|it| !it.is_empty()).map(|it| Member(it.into()));
        roll.shares.insert(share, Claimed { holder, fence: row.fence });
    }
    Ok(roll)
}

pub(super) fn member_row(group: &str, member: &Member) -> ItemKey {
    ItemKey { controller: members_of(group).into(), item: member.0.clone() }
}

pub(super) fn share_row(group: &str, share: Share) -> ItemKey {
    ItemKey { controller: shares_of(group).into(), item: share.to_string().into() }
}

fn members_of(group: &str) -> String {
    format!("members/{group}")
}

fn shares_of(group: &str) -> String {
    format!("shares/{group}")
}

/// The row of a share that `holder` has: its name and nothing else, for all of them are read at every look.
pub(super) fn claim(holder: Option<&Member>) -> Vec<u8> {
    holder.map(|it| it.0.as_bytes().to_vec()).unwrap_or_default()
}

/// Strings, numbers and times can always be written.
pub(super) fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

/// Who lives, from one observer's view: whoever was seen to renew within its lease. Nobody compares times
/// of others.
#[derive(Debug, Default)]
pub(super) struct Watch(BTreeMap<Member, ((u64, u64), Duration)>);

impl Watch {
    /// Takes in what a look at `now` found. Returns those who live.
    pub fn look(&mut self, roll: &Roll, now: Duration) -> Vec<Member> {
        self.0.retain(|member, _| roll.members.contains_key(member));
        let mut live = Vec::new();
        for (member, seen) in &roll.members {
            let (token, since) = self.0.entry(member.clone()).or_insert((seen.token, now));
            if *token != seen.token {
                (*token, *since) = (seen.token, now);
            }
            if now.saturating_sub(*since) < seen.lease {
                live.push(member.clone());
            }
        }
        live
    }

    /// When the next of those who live is given up if it does not renew.
    pub fn next_end(&self, roll: &Roll, now: Duration) -> Option<Duration> {
        let ends = self.0.iter().filter_map(|(member, (_, since))| {
            Some(*since + roll.members.get(member)?.lease).filter(|end| *end > now)
        });
        ends.min()
    }

    /// Whether a member has not renewed for many leases, and its row is of no use to anybody.
    pub fn is_long_gone(&self, member: &Member, seen: &Seen, now: Duration) -> bool {
        self.0.get(member).is_some_and(|(_, since)| now.saturating_sub(*since) > seen.lease * 20)
    }
}
