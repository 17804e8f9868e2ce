//! How the processes of a life divide the work: one leads, or all are members.

use std::sync::Arc;
use std::time::Duration;

use concert_engine::leader::{Config as ElectionConfig, Duty, Election, RowSeat};
use concert_engine::members::{Config as MemberConfig, Membership, Shares};
use concert_engine::{OnExit, Tasks};
use concert_store::{Chance, Clock};

use crate::faults::Remote;

/// How the processes of a life divide the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// Two, of which one leads.
    Leader,
    /// Three that share it, each with a clock of its own and a line that can be cut.
    Members,
    /// The same with a planted bug: they go on for long after their leases, when others have taken over.
    Stubborn,
}

/// Between looks of members at each other: nobody waits for a takeover here, and fewer looks make longer lives
/// affordable.
const LOOK: Duration = Duration::from_secs(3);

impl Company {
    /// How long nothing may happen in the end. Members go on to look at each other all the while, which is
    /// most of what such a life costs.
    pub(crate) fn quiet(self) -> Duration {
        match self {
            Self::Leader => Duration::from_secs(900),
            Self::Members | Self::Stubborn => Duration::from_secs(300),
        }
    }

    pub(crate) fn processes(self) -> u32 {
        match self {
            Self::Leader => 2,
            Self::Members | Self::Stubborn => 3,
        }
    }

    /// Whether all work, and none leads.
    pub(crate) fn shares_work(self) -> bool {
        self != Self::Leader
    }

    /// How a member of it behaves.
    pub(crate) fn member(self, name: &str) -> MemberConfig {
        let config = MemberConfig { look_every: LOOK, ..MemberConfig::new("play", name) };
        match self {
            Self::Leader | Self::Members => config,
            Self::Stubborn => MemberConfig { renew_within: config.lease * 4, ..config },
        }
    }
}

/// Stands for election.
pub(crate) fn stand(
    remote: Arc<Remote>,
    name: &str,
    duty: Arc<dyn Duty>,
    tasks: &Tasks,
    clock: Arc<dyn Clock>,
    chance: Chance,
) -> Option<Shares> {
    let seat = Arc::new(RowSeat::new(remote, "play"));
    let election = Election::new(seat, ElectionConfig::new(name), clock, chance);
    tasks.spawn("election", OnExit::Log, election.run(duty, tasks.shutdown().clone()));
    None
}

/// Becomes one of several.
pub(crate) fn join(
    remote: Arc<Remote>,
    config: MemberConfig,
    duty: Arc<dyn Duty>,
    tasks: &Tasks,
    clock: Arc<dyn Clock>,
    chance: Chance,
) -> Shares {
    let membership = Membership::new(remote, config, clock, chance);
    let shares = membership.shares();
    tasks.spawn("membership", OnExit::Log, membership.run(duty, tasks.shutdown().clone()));
    shares
}
