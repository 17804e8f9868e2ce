//! The life of a member: it joins, keeps its row alive, takes and gives back shares, leaves.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use concert_store::{Chance, Clock, Error, Fence, Work};
use futures_util::future::join_all;
use tracing::{info, warn};

use crate::leader::Duty;
use crate::shutdown::Shutdown;
use crate::watched::Watched;

use super::authority::Authority;
use super::plan::{Mine, Step, crowd, plan};
use super::roll::{Body, Profile, Roll, Watch, bytes, claim, member_row, roll, share_row};
use super::share::{Member, Share};
use super::shares::Shares;

/// How a member behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whom it shares with.
    pub group: Arc<str>,
    /// Who; different in every process and every start.
    pub member: Member,
    /// What it tells of itself.
    pub profile: Profile,
    /// How long others must see no renewal before they take what it has.
    pub lease: Duration,
    /// How long it may go without a renewal that worked. Shorter than `lease`: it must have stopped when
    /// others take over.
    pub renew_within: Duration,
    /// Between renewals.
    pub renew_every: Duration,
    /// Between looks at the others.
    pub look_every: Duration,
    /// How long what runs may take to end when it leaves.
    pub patience: Duration,
}

impl Config {
    /// With a lease of 15 seconds, looks every half second, and half a minute to leave.
    pub fn new(group: impl Into<Arc<str>>, member: impl Into<Arc<str>>) -> Self {
        let (group, member) = (group.into(), Member(member.into()));
        let none = Duration::ZERO;
        Self {
            group,
            member,
            profile: Profile::default(),
            lease: none,
            renew_within: none,
            renew_every: none,
            look_every: Duration::from_millis(500),
            patience: Duration::from_secs(30),
        }
        .with_lease(Duration::from_secs(15))
    }

    /// The same with another lease, and the times that go with it in the proportions of Kubernetes.
    #[must_use]
    pub fn with_lease(self, lease: Duration) -> Self {
        Self { lease, renew_within: lease * 2 / 3, renew_every: lease * 2 / 15, ..self }
    }
}

/// Where a member stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It has not joined, or has lost what it had.
    #[default]
    Outside,
    /// It is one of them.
    Member,
    /// It gives back what it has.
    Leaving,
    /// It has left.
    Ended,
}

/// All members, as one of them saw them last.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// What the rows said.
    pub roll: Roll,
    /// Those who live.
    pub live: Vec<Member>,
}

impl View {
    /// Who has the share that `what` is in, if whoever has it lives.
    pub fn holder_of(&self, what: &str) -> Option<&Member> {
        let claimed = self.roll.shares.get(&Share::of(what))?;
        claimed.holder.as_ref().filter(|it| self.live.contains(it))
    }

    /// Which shares a member has, in order.
    pub fn shares_of(&self, member: &Member) -> Vec<Share> {
        let own = self.roll.shares.iter().filter(|(_, it)| it.holder.as_ref() == Some(member));
        own.map(|(share, _)| *share).collect()
    }
}

/// One member.
pub struct Membership {
    work: Arc<dyn Work>,
    config: Config,
    clock: Arc<dyn Clock>,
    chance: Chance,
    shares: Shares,
    standing: Arc<Watched<Standing>>,
    view: Arc<Watched<Arc<View>>>,
}

/// How a term ended.
enum End {
    Lost,
    /// It was to leave, and has nothing any more.
    Empty,
}

impl Membership {
    /// A process that is to be a member.
    pub fn new(work: Arc<dyn Work>, config: Config, clock: Arc<dyn Clock>, chance: Chance) -> Self {
        let (shares, standing, view) = Default::default();
        Self { work, config, clock, chance, shares, standing, view }
    }

    /// All members, as this one saw them last.
    pub fn view(&self) -> Arc<Watched<Arc<View>>> {
        self.view.clone()
    }

    /// What it holds, now and at any later time.
    pub fn shares(&self) -> Shares {
        self.shares.clone()
    }

    /// Where it stands.
    pub fn standing(&self) -> Arc<Watched<Standing>> {
        self.standing.clone()
    }

    /// Joins, and does its part until it is asked to stop. Then it first hands over what it has.
    pub async fn run(self, duty: Arc<dyn Duty>, shutdown: Shutdown) {
        while let Some(mut term) = self.join(&shutdown).await {
            info!(member = %self.config.member.0, "joined");
            self.standing.set(Standing::Member);
            duty.begin(Authority::Shared(self.shares.clone()));
            let is_asked = tokio::select! {
                biased;
                _ = term.keep() => false,
                () = shutdown.requested() => true,
            };
            if is_asked {
                self.leave(term, &*duty).await;
                break;
            }
            self.lose(&*duty).await;
        }
        self.standing.set(Standing::Ended);
    }

    /// Stops at once: somebody else may have everything.
    async fn lose(&self, duty: &dyn Duty) {
        warn!(member = %self.config.member.0, "lost its membership");
        self.shares.take_all_away();
        self.standing.set(Standing::Outside);
        duty.end(true).await;
    }

    /// Gives back one share after the other as what runs in it ends, while it goes on to renew.
    async fn leave(&self, mut term: Term<'_>, duty: &dyn Duty) {
        self.standing.set(Standing::Leaving);
        term.is_leaving = true;
        (term.next_renewal, term.next_look) = (Duration::ZERO, Duration::ZERO);
        let end = tokio::select! {
            biased;
            end = term.keep() => end,
            () = self.clock.sleep(self.config.patience) => End::Lost,
        };
        match end {
            End::Empty => duty.end(false).await,
            // Whatever still runs must end before others are told that nobody is here.
            End::Lost => self.lose(duty).await,
        }
        if let Err(error) = self.work.forget(&term.fence).await {
            info!(%error, "cannot take its name off the roll");
        }
    }

    async fn join(&self, shutdown: &Shutdown) -> Option<Term<'_>> {
        let mut stop = pin!(shutdown.requested());
        loop {
            let asked = self.clock.elapsed();
            tokio::select! {
                biased;
                () = &mut stop => return None,
                joined = self.enter() => match joined {
                    Ok(fence) => return Some(Term::new(self, fence, asked)),
                    Err(error) => warn!(%error, "cannot join"),
                },
            }
            // Some jitter, so that all who were cut off do not come back at once.
            let pause = self.config.renew_every.mul_f64(0.8 + 0.4 * self.chance.fraction());
            tokio::select! {
                biased;
                () = &mut stop => return None,
                () = self.clock.sleep(pause) => {}
            }
        }
    }

    async fn enter(&self) -> Result<Fence, Error> {
        let row = member_row(&self.config.group, &self.config.member);
        let seen = self.work.read(&row).await?.map_or(0, |it| it.fence);
        self.work.claim(&row, seen, bytes(&self.body(0, false)).into()).await
    }

    fn body(&self, renewals: u64, is_leaving: bool) -> Body {
        let lease_millis = u64::try_from(self.config.lease.as_millis()).unwrap_or(u64::MAX);
        Body { profile: self.config.profile.clone(), lease_millis, renewals, is_leaving }
    }
}

/// The time that one is a member.
struct Term<'a> {
    membership: &'a Membership,
    fence: Fence,
    /// When the last renewal that worked was asked for: others may count from then.
    renewed: Duration,
    renewals: u64,
    next_renewal: Duration,
    next_look: Duration,
    is_leaving: bool,
    watch: Watch,
    /// How often something had ended in a share that is asked back, at the last look.
    ends: u64,
}

impl<'a> Term<'a> {
    fn new(membership: &'a Membership, fence: Fence, joined: Duration) -> Self {
        Self {
            membership,
            fence,
            renewed: joined,
            renewals: 0,
            next_renewal: joined + membership.config.renew_every,
            next_look: joined,
            is_leaving: false,
            watch: Watch::default(),
            ends: membership.shares.ends(),
        }
    }

    /// Renews, looks and acts until that fails for too long, or until nothing is left.
    async fn keep(&mut self) -> End {
        let Membership { clock, config, shares, .. } = self.membership;
        loop {
            let end = self.renewed + config.renew_within;
            let next = self.next_renewal.min(self.next_look).min(end);
            tokio::select! {
                biased;
                () = clock.sleep(next.saturating_sub(clock.elapsed())) => {}
                () = shares.emptied(self.ends) => {}
            }
            let left = end.saturating_sub(clock.elapsed());
            // A process that was paused wakes up here and must not even try.
            if left.is_zero() {
                return End::Lost;
            }
            let done = tokio::select! {
                biased;
                done = self.act() => done,
                () = clock.sleep(left) => return End::Lost,
            };
            if let Some(end) = done {
                return end;
            }
        }
    }

    async fn act(&mut self) -> Option<End> {
        let Membership { clock, config, shares, .. } = self.membership;
        self.ends = shares.ends();
        self.give_back().await;
        if self.next_renewal <= clock.elapsed() {
            self.next_renewal = clock.elapsed() + config.renew_every;
            if let Err(end) = self.renew().await {
                return Some(end);
            }
        }
        if self.is_leaving && shares.is_none() {
            return Some(End::Empty);
        }
        if self.next_look > clock.elapsed() {
            return None;
        }
        self.next_look = clock.elapsed() + config.look_every;
        match roll(&*self.membership.work, &config.group).await {
            Ok(roll) => self.follow(&roll).await,
            Err(error) => {
                warn!(%error, "cannot look at the other members");
                None
            }
        }
    }

    async fn renew(&mut self) -> Result<(), End> {
        let asked = self.membership.clock.elapsed();
        let body = self.membership.body(self.renewals + 1, self.is_leaving);
        match self.membership.work.save(&self.fence, bytes(&body).into()).await {
            Ok(()) => {
                (self.renewed, self.renewals) = (asked, self.renewals + 1);
                Ok(())
            }
            Err(Error::Fenced { .. } | Error::NotFound { .. }) => Err(End::Lost),
            Err(error) => {
                warn!(%error, "cannot renew the membership");
                Ok(())
            }
        }
    }

    /// Does what is to be done, given what all rows say.
    async fn follow(&mut self, roll: &Roll) -> Option<End> {
        let Membership { clock, config, shares, .. } = self.membership;
        let now = clock.elapsed();
        let live = self.watch.look(roll, now);
        if let Some(end) = self.watch.next_end(roll, now) {
            self.next_look = self.next_look.min(end);
        }
        shares.set_crowd(crowd(roll, &live));
        self.membership.view.set(Arc::new(View { roll: roll.clone(), live: live.clone() }));
        let mine = self.mine();
        let (mut takes, mut disowned) = (Vec::new(), Vec::new());
        for step in plan(&config.member, roll, &live, &mine) {
            match step {
                Step::Lost => return Some(End::Lost),
                Step::Take { share, seen } => takes.push((share, seen)),
                Step::Disown { share, seen } => disowned.push((share, seen)),
                Step::Keep(share) => shares.ask_back(share, false),
                Step::AskBack(share) => shares.ask_back(share, true),
            }
        }
        self.take(takes).await;
        self.disown(disowned).await;
        self.give_back().await;
        self.bury(roll, now).await;
        None
    }

    fn mine(&self) -> BTreeMap<Share, Mine> {
        let shares = &self.membership.shares;
        let open = shares.held();
        let mine = |share: Share| {
            let fence = shares.fence(share)?.number;
            Some((share, Mine { fence, is_asked_back: !open.contains(&share) }))
        };
        Share::all().filter_map(mine).collect()
    }

    /// Claims all at once: they are committed together.
    async fn take(&self, takes: Vec<(Share, u64)>) {
        let Membership { work, config, shares, .. } = self.membership;
        let claims = takes.into_iter().map(|(share, seen)| async move {
            let row = share_row(&config.group, share);
            match work.claim(&row, seen, claim(Some(&config.member)).into()).await {
                Ok(fence) => shares.grant(share, fence),
                Err(error) => info!(%share, %error, "did not get a share"),
            }
        });
        join_all(claims).await;
    }

    /// Gives back claims that are known from their rows alone. A claim for nobody fences off whatever an
    /// earlier term may still have on its way.
    async fn disown(&self, claims: Vec<(Share, u64)>) {
        let Membership { work, config, .. } = self.membership;
        let gifts = claims.into_iter().map(|(share, seen)| async move {
            if let Err(error) = work.claim(&share_row(&config.group, share), seen, claim(None).into()).await {
                info!(%share, %error, "cannot give back a share of an earlier term yet");
            }
        });
        join_all(gifts).await;
    }

    /// Gives back what is asked for and in which nothing runs. What cannot be now is at the next look.
    async fn give_back(&self) {
        let Membership { work, shares, .. } = self.membership;
        let gifts = shares.empty().into_iter().map(|(share, fence)| async move {
            match work.save(&fence, claim(None).into()).await {
                Ok(()) | Err(Error::Fenced { .. }) => shares.take_away(share),
                Err(error) => warn!(%share, %error, "cannot give a share back yet"),
            }
        });
        join_all(gifts).await;
    }

    /// Removes the rows of members that are long gone.
    async fn bury(&self, roll: &Roll, now: Duration) {
        let Membership { work, config, .. } = self.membership;
        for (member, seen) in &roll.members {
            if *member == config.member || !self.watch.is_long_gone(member, seen, now) {
                continue;
            }
            let row = member_row(&config.group, member);
            if let Ok(fence) = work.claim(&row, seen.token.0, bytes(&Body::default()).into()).await
                && let Err(error) = work.forget(&fence).await
            {
                info!(%error, "cannot take a member off the roll");
            }
        }
    }
}
