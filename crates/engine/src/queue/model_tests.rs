//! The queue against a naive model of it, and the rules one by one.

use std::collections::BTreeMap;
use std::time::Duration;

use concert_model::{GroupKind, ObjectKey};
use proptest::prelude::*;

use super::*;

const CAPACITY: usize = 6;

fn key(number: usize) -> ObjectKey {
    ObjectKey::namespaced(GroupKind::new("example.com", "Widget"), "default", format!("w{number}"))
}

fn at(second: u64) -> Duration {
    Duration::from_secs(second)
}

fn queue() -> Queue<()> {
    Queue::new(CAPACITY)
}

fn take(queue: &mut Queue<()>, now: u64) -> Option<String> {
    queue.pop(at(now)).map(|item| item.key.name.to_string())
}

#[test]
fn better_lanes_go_first_and_each_lane_keeps_its_order() {
    let mut queue = queue();
    for (number, lane) in
        [(0, Lane::Poll), (1, Lane::Retry), (2, Lane::Event), (3, Lane::User), (4, Lane::Event)]
    {
        queue.add(&key(number), lane, "x", at(0), at(0)).unwrap();
    }
    let order: Vec<_> = std::iter::from_fn(|| take(&mut queue, 0)).collect();
    assert_eq!(order, ["w3", "w2", "w4", "w1", "w0"]);
}

#[test]
fn shares_take_turns_within_a_lane() {
    let mut queue = queue();
    for (number, share) in [(0, 1), (1, 1), (2, 1), (3, 1), (4, 2), (5, 3)] {
        let id = queue.meet(&key(number)).unwrap();
        queue.set_share(id, share);
        queue.add(&key(number), Lane::Event, "x", at(number as u64), at(9)).unwrap();
    }
    assert_eq!(queue.oldest_due(), Some(at(0)));
    let order: Vec<_> = std::iter::from_fn(|| take(&mut queue, 9)).collect();
    assert_eq!(order, ["w0", "w4", "w5", "w1", "w2", "w3"]);
    assert_eq!(queue.oldest_due(), None);
}

#[test]
fn a_key_that_waits_takes_the_better_lane_the_earlier_time_and_all_reasons() {
    let mut queue = queue();
    queue.add(&key(0), Lane::Poll, "poll", at(60), at(0)).unwrap();
    queue.add(&key(1), Lane::Event, "changed", at(0), at(0)).unwrap();
    assert_eq!(queue.add(&key(0), Lane::User, "changed", at(0), at(0)).unwrap(), Placed::Ready);
    let item = queue.pop(at(0)).unwrap();
    assert_eq!((item.key, item.lane, item.reasons.to_string()), (key(0), Lane::User, "poll, changed".into()));
    assert_eq!(queue.depth().delayed, 0);
}

#[test]
fn a_change_while_it_runs_gives_exactly_one_more_run() {
    let mut queue = queue();
    queue.add(&key(0), Lane::Event, "changed", at(0), at(0)).unwrap();
    let item = queue.pop(at(0)).unwrap();
    for _ in 0..3 {
        assert_eq!(queue.add(&key(0), Lane::Event, "changed", at(1), at(1)).unwrap(), Placed::Merged);
    }
    assert!(queue.pop(at(1)).is_none());
    queue.finish(item.id, Next::At(Lane::Retry, "retry", at(99)), at(2));
    let item = queue.pop(at(2)).unwrap();
    assert_eq!(item.reasons.to_string(), "changed ×3, retry");
    queue.finish(item.id, Next::Rest, at(3));
    assert_eq!((queue.pop(at(1_000)).is_none(), queue.next_due()), (true, None));
}

#[test]
fn what_is_deferred_keeps_lane_and_reasons() {
    let mut queue = queue();
    queue.add(&key(0), Lane::User, "changed", at(0), at(0)).unwrap();
    let item = queue.pop(at(0)).unwrap();
    assert_eq!(queue.defer(item.id, at(5), at(0)), Some(Placed::Later(at(5))));
    assert!(queue.pop(at(4)).is_none());
    let item = queue.pop(at(5)).unwrap();
    assert_eq!((item.lane, item.reasons.to_string()), (Lane::User, "changed".into()));
}

#[test]
fn what_is_deferred_keeps_its_time_unless_its_lane_gets_better() {
    let mut queue = queue();
    queue.add(&key(0), Lane::Event, "changed", at(0), at(0)).unwrap();
    let item = queue.pop(at(0)).unwrap();
    queue.defer(item.id, at(5), at(0));
    queue.add(&key(0), Lane::Event, "changed", at(1), at(1)).unwrap();
    assert!(queue.pop(at(4)).is_none());
    queue.add(&key(0), Lane::User, "asked", at(4), at(4)).unwrap();
    let item = queue.pop(at(4)).unwrap();
    assert_eq!((item.lane, item.reasons.to_string()), (Lane::User, "changed ×2, asked".into()));
    queue.finish(item.id, Next::At(Lane::Poll, "poll", at(60)), at(4));
    queue.add(&key(0), Lane::Poll, "listed", at(5), at(5)).unwrap();
    assert!(queue.pop(at(5)).is_some(), "it was not deferred");
}

#[test]
fn a_full_queue_refuses_new_keys_and_never_known_ones() {
    let mut queue = queue();
    for number in 0..CAPACITY {
        queue.add(&key(number), Lane::Poll, "poll", at(60), at(0)).unwrap();
    }
    assert_eq!(queue.add(&key(99), Lane::User, "x", at(0), at(0)), Err(Full { capacity: CAPACITY }));
    assert_eq!(queue.add(&key(2), Lane::User, "x", at(0), at(0)), Ok(Placed::Ready));
    let item = queue.pop(at(0)).unwrap();
    queue.finish(item.id, Next::Forget, at(0));
    assert!(queue.add(&key(99), Lane::User, "x", at(0), at(0)).is_ok());
}

#[test]
fn paused_keys_keep_what_they_were_asked_for() {
    let mut queue = queue();
    queue.add(&key(0), Lane::Event, "x", at(0), at(0)).unwrap();
    queue.pause_key(&key(0)).unwrap();
    queue.add(&key(0), Lane::User, "y", at(0), at(0)).unwrap();
    assert_eq!((take(&mut queue, 10), queue.next_due()), (None, None));
    assert_eq!(queue.resume_key(&key(0), at(10)), Placed::Ready);
    queue.pause();
    assert_eq!(take(&mut queue, 10), None);
    queue.resume();
    assert_eq!(queue.pop(at(10)).unwrap().reasons.to_string(), "x, y");
}

#[test]
fn a_key_that_is_removed_while_it_runs_goes_at_its_end_unless_it_is_added_again() {
    for is_added in [false, true] {
        let mut queue = queue();
        queue.add(&key(0), Lane::Event, "x", at(0), at(0)).unwrap();
        let item = queue.pop(at(0)).unwrap();
        queue.remove(&key(0));
        if is_added {
            queue.add(&key(0), Lane::Event, "x", at(0), at(0)).unwrap();
        }
        queue.finish(item.id, Next::At(Lane::Poll, "poll", at(9)), at(0));
        assert_eq!(queue.find(&key(0)).is_some(), is_added);
        assert_eq!(take(&mut queue, 0).is_some(), is_added);
    }
}

#[test]
fn moving_a_key_about_leaves_nothing_behind() {
    let mut queue = queue();
    for round in 0..10_000 {
        queue.add(&key(0), Lane::Poll, "poll", at(100_000 - round), at(0)).unwrap();
        queue.pause_key(&key(0)).unwrap();
        queue.resume_key(&key(0), at(0));
    }
    assert_eq!(queue.depth(), Depth { delayed: 1, known: 1, ..Depth::default() });
}

#[derive(Clone, Debug)]
enum Step {
    Add { key: usize, lane: Lane, delay: u64 },
    Pop,
    Finish { pick: usize, next: usize, delay: u64 },
    Defer { pick: usize, delay: u64 },
    Pause(usize),
    Resume(usize),
    Remove(usize),
    Sleep(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let lane = prop::sample::select(Lane::ALL.to_vec());
    prop_oneof![
        4 => (0..8usize, lane, 0..6u64).prop_map(|(key, lane, delay)| Step::Add { key, lane, delay }),
        4 => Just(Step::Pop),
        3 => (0..8usize, 0..4usize, 0..6u64).prop_map(|(pick, next, delay)| Step::Finish { pick, next, delay }),
        1 => (0..8usize, 0..6u64).prop_map(|(pick, delay)| Step::Defer { pick, delay }),
        1 => (0..8usize).prop_map(Step::Pause),
        2 => (0..8usize).prop_map(Step::Resume),
        1 => (0..8usize).prop_map(Step::Remove),
        2 => (0..4u64).prop_map(Step::Sleep),
    ]
}

/// What the queue must know of a key, kept the slow and obvious way.
#[derive(Clone, Debug, Default)]
struct Naive {
    wanted: Option<(u64, Lane)>,
    running: Option<Lane>,
    is_deferred: bool,
    is_paused: bool,
    is_removed: bool,
}

impl Naive {
    fn want(&mut self, due: u64, lane: Lane) {
        self.is_removed = false;
        self.wanted = Some(match self.wanted {
            Some((_, best)) if self.is_deferred && best <= lane => return,
            Some((earliest, best)) => (earliest.min(due), best.min(lane)),
            None => (due, lane),
        });
        self.is_deferred = false;
    }
}

type Model = BTreeMap<usize, Naive>;

fn best_due(model: &Model, now: u64) -> Option<Lane> {
    let due = |it: &&Naive| it.running.is_none() && !it.is_paused;
    model.values().filter(due).filter_map(|it| it.wanted).filter(|w| w.0 <= now).map(|w| w.1).min()
}

fn meet(model: &mut Model, key: usize) -> Option<&mut Naive> {
    let is_room = model.len() < CAPACITY || model.contains_key(&key);
    is_room.then(|| model.entry(key).or_default())
}

fn end_of_run(model: &mut Model, key: usize, next: Option<(u64, Lane)>, is_forgotten: bool) {
    let it = model.get_mut(&key).unwrap();
    it.running = None;
    let is_forgotten = std::mem::take(&mut it.is_removed) || is_forgotten;
    if is_forgotten && it.wanted.is_none() {
        model.remove(&key);
    } else if let Some((due, lane)) = next.filter(|_| !is_forgotten) {
        it.want(due, lane);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn behaves_like_the_naive_model(steps in prop::collection::vec(any_step(), 0..120)) {
        let (mut queue, mut model, mut now) = (queue(), Model::new(), 0u64);
        let mut held: Vec<(usize, Item)> = Vec::new();
        for step in steps {
            match step {
                Step::Add { key: k, lane, delay } => {
                    let answer = queue.add(&key(k), lane, "x", at(now + delay), at(now));
                    let expected = meet(&mut model, k).map(|it| it.want(now + delay, lane));
                    prop_assert_eq!(answer.is_ok(), expected.is_some());
                }
                Step::Pop => {
                    let best = best_due(&model, now);
                    let item = queue.pop(at(now));
                    prop_assert_eq!(item.as_ref().map(|it| it.lane), best, "no lost wake-up, lanes in order");
                    if let Some(item) = item {
                        let k: usize = item.key.name[1..].parse().unwrap();
                        let it = model.get_mut(&k).unwrap();
                        prop_assert!(it.running.is_none() && !it.is_paused, "never two runs of a key");
                        prop_assert_eq!(Some((item.due.as_secs(), item.lane)), it.wanted);
                        (it.running, it.wanted, it.is_deferred) = (Some(item.lane), None, false);
                        held.push((k, item));
                    }
                }
                Step::Finish { pick, next, delay } if !held.is_empty() => {
                    let (k, item) = held.remove(pick % held.len());
                    let (outcome, wish) = match next {
                        0 => (Next::Rest, None),
                        1 => (Next::Forget, None),
                        2 => (Next::Back, Some((now, item.lane))),
                        _ => (Next::At(Lane::Retry, "r", at(now + delay)), Some((now + delay, Lane::Retry))),
                    };
                    queue.finish(item.id, outcome, at(now));
                    end_of_run(&mut model, k, wish, next == 1);
                }
                Step::Defer { pick, delay } if !held.is_empty() => {
                    let (k, item) = held.remove(pick % held.len());
                    queue.defer(item.id, at(now + delay), at(now));
                    let it = model.get_mut(&k).unwrap();
                    if it.is_removed && it.wanted.is_none() {
                        end_of_run(&mut model, k, None, true);
                    } else {
                        let better = it.wanted.filter(|(_, lane)| *lane < item.lane);
                        let (wanted, is_deferred) = (better.or(Some((now + delay, item.lane))), better.is_none());
                        *it = Naive { wanted, is_deferred, is_paused: it.is_paused, ..Naive::default() };
                    }
                }
                Step::Finish { .. } | Step::Defer { .. } => {}
                Step::Pause(k) => {
                    let answer = queue.pause_key(&key(k));
                    let expected = meet(&mut model, k).map(|it| it.is_paused = true);
                    prop_assert_eq!(answer.is_ok(), expected.is_some());
                }
                Step::Resume(k) => {
                    queue.resume_key(&key(k), at(now));
                    model.entry(k).and_modify(|it| it.is_paused = false);
                }
                Step::Remove(k) => {
                    queue.remove(&key(k));
                    match model.get_mut(&k) {
                        Some(it) if it.running.is_some() => (it.is_removed, it.wanted) = (true, None),
                        _ => drop(model.remove(&k)),
                    }
                }
                Step::Sleep(seconds) => now += seconds,
            }
            prop_assert_eq!(queue.depth().known, model.len());
            prop_assert_eq!(queue.depth().running, held.len());
            for (k, naive) in &model {
                let view = queue.view(queue.find(&key(*k)).unwrap()).unwrap();
                prop_assert_eq!(view.due.map(|it| it.as_secs()), naive.wanted.map(|it| it.0), "earliest due");
                prop_assert_eq!(view.is_paused, naive.is_paused);
            }
        }
    }
}
