//! A thousand lives, and proof that a bad one would be noticed.

use concert_sim::claims::ClaimsPlay;
use concert_sim::faults::Fault;
use concert_sim::managed::ManagedPlay;
use concert_sim::scenario::{self, Counts, Report};
use concert_sim::toy::ToyPlay;
use concert_sim::toy::run::Bug;

fn toy(seed: u64, bug: Option<Bug>) -> Report {
    scenario::run(seed, |stage| ToyPlay::new(stage, bug))
}

/// Lives these lives on all cores.
fn live(seeds: std::ops::Range<u64>, one: fn(u64) -> Report) -> Vec<Report> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        let share = |n: u64| seeds.clone().filter(move |seed| seed % threads == n);
        let run = |n: u64| scope.spawn(move || share(n).map(one).collect::<Vec<_>>());
        let workers: Vec<_> = (0..threads).map(run).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no life panics")).collect()
    })
}

fn assert_good(play: &str, reports: &[Report]) {
    let bad = reports.iter().filter(|report| !report.violations.is_empty()).map(|r| {
        let (seed, violations) = (r.seed, r.violations.join("; "));
        format!("seed {seed}: {violations}\n  replay: make replay PLAY={play} SEED={seed}")
    });
    let bad: Vec<String> = bad.collect();
    assert!(bad.is_empty(), "{} of {} lives are bad\n{}", bad.len(), reports.len(), bad.join("\n"));
}

#[test]
fn a_thousand_managed_lives_keep_every_promise() {
    let reports = live(0..1000, |seed| scenario::run(seed, ManagedPlay::new));
    assert_good("managed", &reports);
    let sum = |count: fn(&Counts) -> u64| reports.iter().map(|r| count(&r.counts)).sum::<u64>();
    for (what, count) in [
        ("creates", sum(|c| c.creates)),
        ("deletes", sum(|c| c.deletes)),
        ("crashes", sum(|c| c.crashes)),
        ("kills", sum(|c| c.kills)),
        ("freezes", sum(|c| c.freezes)),
        ("stops", sum(|c| c.stops)),
    ] {
        assert!(count >= 100, "only {count} {what} in all lives: they prove little");
    }
}

#[test]
fn a_thousand_lives_in_concert_keep_every_promise() {
    let reports = live(0..1000, |seed| scenario::run(seed, ClaimsPlay::new));
    assert_good("claims", &reports);
    let sum = |count: fn(&Counts) -> u64| reports.iter().map(|r| count(&r.counts)).sum::<u64>();
    for (what, count) in
        [("creates", sum(|c| c.creates)), ("deletes", sum(|c| c.deletes)), ("crashes", sum(|c| c.crashes))]
    {
        assert!(count >= 100, "only {count} {what} in all lives: they prove little");
    }
}

#[test]
fn a_thousand_seeds_keep_every_promise() {
    let reports = live(0..1000, |seed| toy(seed, None));
    assert_good("toy", &reports);
    let sum = |count: fn(&Counts) -> u64| reports.iter().map(|r| count(&r.counts)).sum::<u64>();
    for (what, count) in [
        ("creates", sum(|c| c.creates)),
        ("deletes", sum(|c| c.deletes)),
        ("fenced calls", sum(|c| c.fenced)),
        ("crashes", sum(|c| c.crashes)),
        ("kills", sum(|c| c.kills)),
        ("freezes", sum(|c| c.freezes)),
        ("stops", sum(|c| c.stops)),
    ] {
        assert!(count >= 100, "only {count} {what} in all lives: they prove little");
    }
    for fault in [
        Fault::Late,
        Fault::LostRequest,
        Fault::LostAnswer,
        Fault::Conflict,
        Fault::Stale,
        Fault::LostEvent,
        Fault::RepeatedEvent,
        Fault::Cut,
    ] {
        let count: u64 = reports.iter().filter_map(|r| r.counts.faults.get(&fault)).sum();
        assert!(count >= 100, "only {count} times {fault:?} in all lives: they prove little");
    }
}

#[test]
fn the_same_seed_gives_the_same_life() {
    for seed in [1, 77, 4711] {
        let plays = [
            |seed| toy(seed, None),
            |seed| scenario::run(seed, ManagedPlay::new),
            |seed| scenario::run(seed, ClaimsPlay::new),
        ];
        for play in plays {
            let (one, two) = (play(seed), play(seed));
            assert_eq!(one.trace, two.trace);
            assert_eq!((one.fingerprint, one.counts), (two.fingerprint, two.counts));
        }
    }
    assert_ne!(toy(1, None).fingerprint, toy(2, None).fingerprint);
}

#[test]
fn planted_bugs_are_found() {
    for bug in [Bug::NoFence, Bug::NoIntent, Bug::NoFinalizer, Bug::WritesEveryTime, Bug::ForgetsToWait] {
        let is_bad = |seed| !toy(seed, Some(bug)).violations.is_empty();
        assert!((0..1000).any(is_bad), "{bug:?} goes unnoticed in a thousand lives");
    }
}
