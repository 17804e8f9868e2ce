//! One thread, virtual time, and a seed that decides who goes next.
//!
//! Tasks belong to groups, which stand for processes: a group can be killed, or frozen as by SIGSTOP.
//! When nobody can go on, time jumps to the next timer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use concert_engine::Spawn;
use concert_model::Timestamp;
use concert_store::{Chance, Clock};
use futures_util::future::BoxFuture;

/// Steps at one moment before it counts as a loop: a thousand times what a life needs.
const STEPS_MAX: u64 = 1_000_000;

/// A process, as far as the executor is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(pub u32);

/// The executor and its clock. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Executor {
    state: Arc<Mutex<State>>,
    ready: Arc<Mutex<Vec<u64>>>,
    chance: Chance,
}

#[derive(Default)]
struct State {
    now: Duration,
    next: u64,
    tasks: BTreeMap<u64, Task>,
    timers: BinaryHeap<Reverse<(Duration, u64)>>,
    wakers: BTreeMap<u64, Waker>,
    frozen: BTreeMap<Group, Duration>,
    steps: u64,
    fingerprint: u64,
}

struct Task {
    group: Group,
    /// Out while it is polled.
    future: Option<BoxFuture<'static, ()>>,
}

struct Wakes {
    id: u64,
    ready: Arc<Mutex<Vec<u64>>>,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        lock(&self.ready).push(self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Executor {
    /// An executor that follows the choices of `chance`.
    pub fn new(chance: Chance) -> Self {
        Self { state: Arc::default(), ready: Arc::default(), chance }
    }

    /// Starts a task of a group.
    pub fn spawn(&self, group: Group, future: BoxFuture<'static, ()>) {
        let mut state = lock(&self.state);
        state.next += 1;
        let id = state.next;
        state.tasks.insert(id, Task { group, future: Some(future) });
        lock(&self.ready).push(id);
    }

    /// What the tasks of a group are spawned with.
    pub fn spawner(&self, group: Group) -> Arc<dyn Spawn> {
        Arc::new(Spawner { executor: self.clone(), group })
    }

    /// Ends all tasks of a group where they stand.
    pub fn kill(&self, group: Group) {
        let mut state = lock(&self.state);
        let dead: Vec<u64> =
            state.tasks.iter().filter(|(_, t)| t.group == group).map(|(id, _)| *id).collect();
        let dead: Vec<Option<Task>> = dead.iter().map(|id| state.tasks.remove(id)).collect();
        state.frozen.remove(&group);
        drop(state);
        // Dropped without the lock: what a task holds may want to wake others.
        drop(dead);
    }

    /// Ends all tasks of all groups. They hold the executor and it holds them: nothing else would ever let go of
    /// what a life has used.
    pub fn end(&self) {
        let mut state = lock(&self.state);
        let all = (std::mem::take(&mut state.tasks), std::mem::take(&mut state.wakers));
        drop(state);
        // Dropped without the lock, as above.
        drop(all);
    }

    /// Stops polling a group for a while.
    pub fn freeze(&self, group: Group, duration: Duration) {
        let mut state = lock(&self.state);
        let until = state.now + duration;
        state.frozen.insert(group, until);
        state.next += 1;
        let id = state.next;
        state.timers.push(Reverse((until, id)));
    }

    /// Runs until `duration` has passed; true if nothing was left to do before that.
    ///
    /// # Panics
    /// When time stands still: somebody is busy without ever waiting.
    pub fn run_for(&self, duration: Duration) -> bool {
        let end = self.elapsed() + duration;
        let mut steps = 0;
        loop {
            if self.step() {
                steps += 1;
                assert!(steps < STEPS_MAX, "{STEPS_MAX} steps at {:?} and no end", self.elapsed());
                continue;
            }
            steps = 0;
            if !self.advance(end) {
                let is_idle = lock(&self.state).timers.is_empty();
                lock(&self.state).now = end;
                return is_idle;
            }
        }
    }

    /// A number that two runs share exactly when they made the same choices.
    pub fn fingerprint(&self) -> u64 {
        lock(&self.state).fingerprint
    }

    /// Tasks polled so far.
    pub fn steps(&self) -> u64 {
        lock(&self.state).steps
    }

    /// Polls one task that is ready; false if there is none.
    fn step(&self) -> bool {
        let Some((id, mut future)) = self.pick() else { return false };
        let waker = Waker::from(Arc::new(Wakes { id, ready: self.ready.clone() }));
        let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut state = lock(&self.state);
        match (poll, state.tasks.get_mut(&id)) {
            (Poll::Pending, Some(task)) => task.future = Some(future),
            (Poll::Ready(()), _) => drop(state.tasks.remove(&id)),
            // It was killed by what it did.
            (Poll::Pending, None) => {}
        }
        true
    }

    fn pick(&self) -> Option<(u64, BoxFuture<'static, ()>)> {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let mut ready = lock(&self.ready);
        ready.sort_unstable();
        ready.dedup();
        ready.retain(|id| state.tasks.contains_key(id));
        let now = state.now;
        state.frozen.retain(|_, until| *until > now);
        let can_go =
            |id: &&u64| !state.tasks.get(id).is_some_and(|task| state.frozen.contains_key(&task.group));
        let free: Vec<u64> = ready.iter().filter(can_go).copied().collect();
        if free.is_empty() {
            return None;
        }
        let id = free[self.chance.below(free.len() as u64) as usize];
        ready.retain(|other| *other != id);
        state.steps += 1;
        state.fingerprint = mix(state.fingerprint, id ^ state.now.as_nanos() as u64);
        let future = state.tasks.get_mut(&id)?.future.take()?;
        Some((id, future))
    }

    /// Jumps to the next timer, if it is not after `end`.
    fn advance(&self, end: Duration) -> bool {
        let mut state = lock(&self.state);
        let Some(Reverse((due, _))) = state.timers.peek().copied() else { return false };
        if due > end {
            return false;
        }
        state.now = state.now.max(due);
        let mut wakers = Vec::new();
        while let Some(Reverse((at, id))) = state.timers.peek().copied() {
            if at > due {
                break;
            }
            state.timers.pop();
            wakers.extend(state.wakers.remove(&id));
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        true
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

struct Spawner {
    executor: Executor,
    group: Group,
}

impl Spawn for Spawner {
    fn spawn(&self, _name: &str, task: BoxFuture<'static, ()>) {
        self.executor.spawn(self.group, task);
    }
}

impl Clock for Executor {
    fn now(&self) -> Timestamp {
        // 2026-01-01: what the simulated world calls its beginning.
        let start = Timestamp::from_second(1_767_225_600).unwrap_or(Timestamp::UNIX_EPOCH);
        start.checked_add(self.elapsed()).unwrap_or(start)
    }

    fn elapsed(&self) -> Duration {
        lock(&self.state).now
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut state = lock(&self.state);
        state.next += 1;
        Box::pin(Sleep {
            state: self.state.clone(),
            id: state.next,
            due: state.now + duration,
            is_set: false,
        })
    }
}

struct Sleep {
    state: Arc<Mutex<State>>,
    id: u64,
    due: Duration,
    is_set: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let (id, due, is_set) = (self.id, self.due, self.is_set);
        let mut state = lock(&self.state);
        if state.now >= due {
            return Poll::Ready(());
        }
        if !is_set {
            state.timers.push(Reverse((due, id)));
        }
        state.wakers.insert(id, context.waker().clone());
        drop(state);
        self.is_set = true;
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        lock(&self.state).wakers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64) -> Vec<u32> {
        let executor = Executor::new(Chance::seeded(seed));
        let seen = Arc::new(Mutex::new(Vec::new()));
        for n in 0..6 {
            let (clock, seen) = (executor.clone(), seen.clone());
            let task = async move {
                clock.sleep(Duration::from_millis(u64::from(n % 2))).await;
                lock(&seen).push(n);
            };
            executor.spawn(Group(0), Box::pin(task));
        }
        assert!(executor.run_for(Duration::from_secs(1)));
        Arc::try_unwrap(seen).unwrap().into_inner().unwrap()
    }

    #[test]
    fn the_seed_decides_the_order_and_time_the_rest() {
        assert_eq!(order(1), order(1));
        assert!((2..20).any(|seed| order(seed) != order(1)));
        assert!(order(3)[..3].iter().all(|n| n % 2 == 0));
    }

    #[test]
    fn nothing_is_held_any_more_after_the_end() {
        let executor = Executor::new(Chance::seeded(1));
        let held = Arc::new(());
        for group in [Group(0), Group(1)] {
            let (held, spawner, clock) = (held.clone(), executor.spawner(group), executor.clone());
            let task = async move {
                clock.sleep(Duration::from_secs(60)).await;
                drop((held, spawner));
            };
            executor.spawn(group, Box::pin(task));
        }
        executor.run_for(Duration::from_secs(1));
        assert_eq!(Arc::strong_count(&held), 3);
        executor.end();
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(executor.run_for(Duration::from_secs(100)), "nobody is left");
    }

    #[test]
    fn a_killed_group_stops_where_it_stands_and_a_frozen_one_goes_on_later() {
        let executor = Executor::new(Chance::seeded(1));
        let seen = Arc::new(Mutex::new(Vec::new()));
        for n in 0..3 {
            let (clock, seen) = (executor.clone(), seen.clone());
            let task = async move {
                clock.sleep(Duration::from_secs(1)).await;
                lock(&seen).push((n, clock.elapsed().as_secs()));
            };
            executor.spawn(Group(n), Box::pin(task));
        }
        executor.run_for(Duration::ZERO);
        executor.kill(Group(0));
        executor.freeze(Group(1), Duration::from_secs(5));
        executor.run_for(Duration::from_secs(10));
        assert_eq!(*lock(&seen), [(2, 1), (1, 5)]);
    }
}
