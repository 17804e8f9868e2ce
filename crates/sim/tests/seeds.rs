//! A thousand lives, and proof that a bad one would be noticed.

use concert_sim::claims::{self, ClaimsPlay};
use concert_sim::faults::Fault;
use concert_sim::fleet::{self, FleetPlay};
use concert_sim::managed::ManagedPlay;
use concert_sim::scenario::{self, Company, Counts, Report};
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
    assert_eventful(&reports, &["creates", "deletes", "crashes", "kills", "freezes", "stops"]);
}

fn concert(seed: u64, bug: Option<claims::Bug>) -> Report {
    scenario::run(seed, |stage| ClaimsPlay::new(stage, bug))
}

#[test]
fn a_thousand_lives_in_concert_keep_every_promise() {
    let reports = live(0..1000, |seed| concert(seed, None));
    assert_good("claims", &reports);
    assert_eventful(&reports, &["creates", "deletes", "crashes", "kills", "freezes", "stops"]);
    assert_struck(&reports);
}

/// Each of these has happened often enough.
fn assert_eventful(reports: &[Report], events: &[&str]) {
    let counted = |counts: &Counts, what: &str| match what {
        "creates" => counts.creates,
        "deletes" => counts.deletes,
        "fenced calls" => counts.fenced,
        "crashes" => counts.crashes,
        "kills" => counts.kills,
        "freezes" => counts.freezes,
        "stops" => counts.stops,
        "cuts" => counts.cuts,
        other => panic!("nobody counts {other}"),
    };
    for what in events {
        let count: u64 = reports.iter().map(|report| counted(&report.counts, what)).sum();
        assert!(count >= 100, "only {count} {what} in all lives: they prove little");
    }
}

/// Every sort of bad weather has come often enough.
fn assert_struck(reports: &[Report]) {
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

fn fleet(seed: u64, bug: Option<fleet::Bug>) -> Report {
    scenario::run(seed, |stage| FleetPlay::new(stage, bug))
}

#[test]
fn a_thousand_fleets_keep_every_promise() {
    let reports = live(0..1000, |seed| fleet(seed, None));
    assert_good("fleet", &reports);
    assert_eventful(&reports, &["creates", "deletes", "fenced calls", "crashes", "kills", "freezes"]);
}

#[test]
fn bugs_planted_in_a_fleet_are_found() {
    use fleet::Bug;
    for bug in [Bug::LosesChanges, Bug::NoFence, Bug::ReadsTheFuture, Bug::LeavesThingsBehind] {
        let is_bad = |seed| !fleet(seed, Some(bug)).violations.is_empty();
        assert!((0..1000).any(is_bad), "{bug:?} goes unnoticed in a thousand lives");
    }
}

#[test]
fn a_thousand_seeds_keep_every_promise() {
    let reports = live(0..1000, |seed| toy(seed, None));
    assert_good("toy", &reports);
    assert_eventful(
        &reports,
        &["creates", "deletes", "fenced calls", "crashes", "kills", "freezes", "stops"],
    );
    assert_struck(&reports);
}

/// A thousand lives of three members with clocks of their own, of which some share managed resources and
/// claims.
#[test]
fn a_thousand_companies_keep_every_promise() {
    let one = |seed| scenario::run_in(Company::Members, seed, |stage| ToyPlay::new(stage, None));
    let reports = live(0..1000, one);
    assert_good("members", &reports);
    assert_eventful(&reports, &["creates", "deletes", "fenced calls", "kills", "freezes", "stops", "cuts"]);
    assert_good(
        "shared-managed",
        &live(0..100, |seed| scenario::run_in(Company::Members, seed, ManagedPlay::new)),
    );
    assert_good(
        "shared-claims",
        &live(0..100, |seed| scenario::run_in(Company::Members, seed, |stage| ClaimsPlay::new(stage, None))),
    );
}

#[test]
fn the_same_seed_gives_the_same_life() {
    for seed in [1, 77, 4711] {
        let plays = [
            |seed| toy(seed, None),
            |seed| scenario::run(seed, ManagedPlay::new),
            |seed| concert(seed, None),
            |seed| fleet(seed, None),
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
fn a_bug_planted_in_a_concert_is_found() {
    let is_bad = |seed| !concert(seed, Some(claims::Bug::KeepsWhatItShouldDelete)).violations.is_empty();
    assert!((0..100).any(is_bad), "it goes unnoticed in a hundred lives");
}

#[test]
fn planted_bugs_are_found() {
    for bug in [Bug::NoFence, Bug::NoIntent, Bug::NoFinalizer, Bug::WritesEveryTime, Bug::ForgetsToWait] {
        let is_bad = |seed| !toy(seed, Some(bug)).violations.is_empty();
        assert!((0..1000).any(is_bad), "{bug:?} goes unnoticed in a thousand lives");
    }
}
