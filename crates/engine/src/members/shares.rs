//! What one member holds, as the controllers in its process see it.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concert_store::Fence;

use crate::watched::Watched;

use super::share::{SHARES, Share};

/// The shares that this member holds. Cheap to clone; all clones mean the same.
#[derive(Clone)]
pub struct Shares(Arc<Inner>);

struct Inner {
    held: Mutex<Vec<Held>>,
    /// Rises with every share that comes, is asked back or goes.
    changes: Watched<u64>,
    /// Rises with every run that ends in a share that is asked back.
    ends: Watched<u64>,
    /// How many members there are.
    crowd: Watched<usize>,
}

#[derive(Clone, Default)]
struct Held {
    fence: Option<Fence>,
    /// Nothing new begins in it.
    is_asked_back: bool,
    /// What runs in it.
    stays: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Self(Arc::new(Inner {
            held: Mutex::new(vec![Held::default(); usize::from(SHARES)]),
            changes: Watched::new(0),
            ends: Watched::new(0),
            crowd: Watched::new(1),
        }))
    }
}

impl Shares {
    /// Whether what prints like this is in a share that is held here, and stays.
    pub fn holds(&self, what: &(impl Display + ?Sized)) -> bool {
        self.lock()[Share::of(what).index()].is_open()
    }

    /// Whether what prints like this is in a share that is claimed here, also if it is asked back and only
    /// waits for what runs in it.
    pub fn has(&self, what: &(impl Display + ?Sized)) -> bool {
        self.lock()[Share::of(what).index()].fence.is_some()
    }

    /// A place among what runs in the share of `what`; none if it is not held, or is asked back.
    pub fn enter(&self, what: &(impl Display + ?Sized)) -> Option<Stay> {
        let share = Share::of(what);
        let mut held = self.lock();
        let it = &mut held[share.index()];
        let fence = it.fence.clone().filter(|_| !it.is_asked_back)?;
        it.stays += 1;
        Some(Stay { shares: self.clone(), share, fence })
    }

    /// Waits for the share that `name` is in. For what one member does for all.
    pub async fn tenure(&self, name: &str) -> Tenure {
        loop {
            let seen = self.changes();
            if let Some(stay) = self.enter(name) {
                return Tenure(stay);
            }
            self.changed(seen).await;
        }
    }

    /// Those that are held here and stay.
    pub fn held(&self) -> Vec<Share> {
        let held = self.lock();
        Share::all().filter(|share| held[share.index()].is_open()).collect()
    }

    /// Those that are claimed here, also if they are asked back and only wait for what runs in them.
    pub fn claimed(&self) -> Vec<Share> {
        let held = self.lock();
        Share::all().filter(|share| held[share.index()].fence.is_some()).collect()
    }

    /// How many members there are: what all of them may do together is shared by so many.
    pub fn crowd(&self) -> usize {
        self.0.crowd.get()
    }

    /// How often what is held has changed.
    pub fn changes(&self) -> u64 {
        self.0.changes.get()
    }

    /// Completes when what is held has changed since `seen`.
    pub async fn changed(&self, seen: u64) {
        self.0.changes.wait_for(|changes| *changes != seen).await;
    }

    pub(super) fn fence(&self, share: Share) -> Option<Fence> {
        self.lock()[share.index()].fence.clone()
    }

    pub(super) fn grant(&self, share: Share, fence: Fence) {
        self.change(share, |it| (it.fence, it.is_asked_back) = (Some(fence), false));
    }

    /// Lets nothing new begin in a share, or again lets it.
    pub(super) fn ask_back(&self, share: Share, is_asked_back: bool) {
        self.change(share, |it| it.is_asked_back = is_asked_back);
    }

    /// Those that are asked back and in which nothing runs.
    pub(super) fn empty(&self) -> Vec<(Share, Fence)> {
        let held = self.lock();
        let empty = |share: Share| {
            let it = &held[share.index()];
            it.fence.clone().filter(|_| it.is_asked_back && it.stays == 0).map(|fence| (share, fence))
        };
        Share::all().filter_map(empty).collect()
    }

    /// Whether nothing at all is held.
    pub(super) fn is_none(&self) -> bool {
        self.lock().iter().all(|it| it.fence.is_none())
    }

    pub(super) fn ends(&self) -> u64 {
        self.0.ends.get()
    }

    /// Completes when the last run of a share that is asked back has ended since `seen`.
    pub(super) async fn emptied(&self, seen: u64) {
        self.0.ends.wait_for(|ends| *ends != seen).await;
    }

    pub(super) fn take_away(&self, share: Share) {
        self.change(share, |it| (it.fence, it.is_asked_back) = (None, false));
    }

    pub(super) fn take_all_away(&self) {
        for it in self.lock().iter_mut() {
            (it.fence, it.is_asked_back) = (None, false);
        }
        self.0.changes.change(|changes| *changes += 1);
    }

    pub(super) fn set_crowd(&self, members: usize) {
        if self.0.crowd.get() != members {
            self.0.crowd.set(members.max(1));
        }
    }

    fn change(&self, share: Share, change: impl FnOnce(&mut Held)) {
        change(&mut self.lock()[share.index()]);
        self.0.changes.change(|changes| *changes += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn is_open(&self) -> bool {
        self.fence.is_some() && !self.is_asked_back
    }
}

impl std::fmt::Debug for Shares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.held().iter().map(ToString::to_string)).finish()
    }
}

/// One run in a share. The share is not handed over before it is dropped.
pub struct Stay {
    shares: Shares,
    share: Share,
    fence: Fence,
}

impl Stay {
    /// The claim that the run works under.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut held = self.shares.lock();
        let it = &mut held[self.share.index()];
        it.stays -= 1;
        let is_awaited = it.stays == 0 && !it.is_open();
        drop(held);
        if is_awaited {
            self.shares.0.ends.change(|ends| *ends += 1);
        }
    }
}

/// The time in which this member has a share, for what one member does for all.
pub struct Tenure(Stay);

/// How a tenure ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Somebody else is to have the share: what runs may end first.
    AskedBack,
    /// It is gone: nothing may go on.
    Lost,
}

impl Tenure {
    /// The claim to work under.
    pub fn fence(&self) -> &Fence {
        self.0.fence()
    }

    /// Completes when it is over. The share is handed over when the tenure is dropped.
    pub async fn over(&self) -> End {
        let shares = &self.0.shares;
        loop {
            let seen = shares.changes();
            {
                let held = shares.lock();
                let it = &held[self.0.share.index()];
                if it.fence.as_ref() != Some(&self.0.fence) {
                    return End::Lost;
                }
                if it.is_asked_back {
                    return End::AskedBack;
                }
            }
            shares.changed(seen).await;
        }
    }
}
