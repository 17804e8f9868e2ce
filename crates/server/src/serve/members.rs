//! This process as one of several replicas that share the work of one store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_api::relay::{Peer, Place, Whose};
use concert_api::rest::{Company, Seat};
use concert_engine::members::{Config, Manner, Member, Membership, Profile, SHARES, Share, Shares, View};
use concert_engine::{OnExit, Tasks, Watched};
use concert_store::{Chance, Clock, Local};

use super::hands::{Hands, PATIENCE};
use super::posts::LENDING;

/// All replicas on one store.
const GROUP: &str = "concert-serve";

/// How this replica takes part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// One has all the work and the others stand by.
    pub is_leader_election: bool,
    /// Where the other replicas reach this one, as in `https://host:port`.
    pub advertise: Option<String>,
    /// How long others wait before they take the work of one that is gone.
    pub lease: Option<Duration>,
}

/// What is known of all replicas. Cheap to clone.
#[derive(Clone)]
pub(super) struct Members {
    me: Member,
    shares: Shares,
    view: Arc<Watched<Arc<View>>>,
}

/// What a replica says of itself.
pub(super) struct Introduction {
    /// `hostname:pid:random`, different at every start.
    pub id: String,
    pub url: String,
    pub authority: Option<String>,
}

/// Becomes a member, until `tasks` end, and does its part.
pub(super) fn join(
    store: &Local,
    hands: &Arc<Hands>,
    (sharing, introduction): (&Sharing, Introduction),
    clock: &Arc<dyn Clock>,
    chance: &Chance,
    tasks: &Tasks,
) -> Members {
    let Introduction { id, url, authority } = introduction;
    let mut config = Config::new(GROUP, id.as_str());
    if let Some(lease) = sharing.lease {
        config = config.with_lease(lease);
    }
    config.patience = PATIENCE;
    config.profile = Profile {
        address: sharing.advertise.clone().unwrap_or(url),
        trust: authority.unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        since: Some(clock.now()),
        manner: if sharing.is_leader_election { Manner::Leader } else { Manner::Shared },
    };
    let me = config.member.clone();
    let membership = Membership::new(Arc::new(store.clone()), config, clock.clone(), chance.fork());
    let members = Members { me, shares: membership.shares(), view: membership.view() };
    let shutdown = tasks.shutdown().clone();
    tasks.spawn("membership", OnExit::Stop, membership.run(hands.clone(), shutdown));
    members
}

#[async_trait]
impl Whose for Members {
    async fn place(&self) -> Place {
        // Also while it is asked back: what was lent here comes back here, before another lends it again.
        if self.shares.has(LENDING) {
            return Place::Here;
        }
        let view = self.view.get();
        let peer = view.holder_of(LENDING).filter(|it| **it != self.me);
        let profile = peer.and_then(|it| view.roll.members.get(it)).map(|it| &it.profile);
        match profile.filter(|it| !it.address.is_empty()) {
            Some(it) => Place::There(Peer { url: it.address.clone(), trust: it.trust.clone() }),
            None => Place::Nowhere,
        }
    }
}

impl Company for Members {
    fn seats(&self) -> Vec<Seat> {
        let view = self.view.get();
        let leader = view.holder_of(LENDING);
        let seat = |(member, seen): (&Member, &concert_engine::members::Seen)| Seat {
            id: member.0.to_string(),
            since: seen.profile.since,
            is_live: view.live.contains(member),
            is_leaving: seen.is_leaving,
            is_leader: leader == Some(member),
            shares: view.shares_of(member).into_iter().map(Share::number).collect(),
            shares_max: usize::from(SHARES),
            address: seen.profile.address.clone(),
            version: seen.profile.version.clone(),
        };
        view.roll.members.iter().map(seat).collect()
    }
}
