//! A thousand lives, and proof that a bad one would be noticed.

use concert_sim::claims::{self, ClaimsPlay};
use concert_sim::faults::Fault;
use concert_sim::fleet::{self, FleetPlay};
use concert_sim::managed::{self, ManagedPlay};
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
    let reports = live(0..1000, |seed| lone(seed, None));
    assert_good("managed", &reports);
    assert_eventful(&reports, &["creates", "deletes", "crashes", "kills", "freezes", "stops"]);
    assert_struck(&reports);
}

/// Every commit in the life of an object, and so every effect before and after it, is the last one of a process.
#[test]
fn a_crash_at_every_effect_of_a_managed_life_costs_nothing() {
    const COMMITS: u64 = 40;
    const SEEDS: u64 = 4;
    let one = |number: u64| {
        let (seed, commit) = (number % SEEDS, 1 + number / SEEDS);
        scenario::run_dying(seed, commit, ManagedPlay::story, |stage| ManagedPlay::new(stage, None))
    };
    let reports = live(0..COMMITS * SEEDS, one);
    let told =
        |it: &Report| format!("seed {}: {}\n{}", it.seed, it.violations.join("; "), it.trace.join("\n"));
    let bad = reports.iter().find(|report| !report.violations.is_empty());
    assert!(bad.is_none(), "{}", bad.map(told).unwrap_or_default());
    let deaths: u64 = reports.iter().map(|it| it.counts.crashes).sum();
    let wishes = ManagedPlay::story().len() as u64;
    assert_eq!(deaths, COMMITS * SEEDS * wishes, "a store that does not die proves nothing");
}

fn lone(seed: u64, bug: Option<managed::Bug>) -> Report {
    scenario::run(seed, |stage| ManagedPlay::new(stage, bug))
}

#[test]
fn bugs_planted_on_the_way_to_a_provider_are_found() {
    use managed::Bug;
    for bug in [Bug::DeniesDoubt, Bug::FindsNothing] {
        let is_bad = |seed| !lone(seed, Some(bug)).violations.is_empty();
        assert!((0..100).any(is_bad), "{bug:?} goes unnoticed in a hundred lives");
    }
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
    assert_struck(&reports);
}

#[test]
fn bugs_planted_in_a_fleet_are_found() {
    use fleet::Bug;
    for bug in
        [Bug::LosesChanges, Bug::NoFence, Bug::NoSectionFence, Bug::ReadsTheFuture, Bug::LeavesThingsBehind]
    {
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
    assert_struck(&reports);
    assert_good(
        "shared-managed",
        &live(0..100, |seed| scenario::run_in(Company::Members, seed, |stage| ManagedPlay::new(stage, None))),
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
            |seed| lone(seed, None),
            |seed| concert(seed, None),
            |seed| fleet(seed, None),
            |seed| scenario::run_in(Company::Members, seed, |stage| ToyPlay::new(stage, None)),
        ];
        for play in plays {
            let (one, two) = (play(seed), play(seed));
            assert_eq!(one.trace, two.trace);
            assert_eq!((one.fingerprint, one.counts), (two.fingerprint, two.counts));
        }
    }
    assert_ne!(toy(1, None).fingerprint, toy(2, None).fingerprint);
}

/// Each by what it does, and not by what else goes wrong with it.
#[test]
fn bugs_planted_in_a_concert_are_found_by_what_they_do() {
    use claims::Bug;
    for (bug, what) in [
        (Bug::KeepsWhatItShouldDelete, "is still being deleted"),
        (Bug::DropsConsent, "was copied without consent"),
        (Bug::RandomNames, "its claim is gone"),
    ] {
        let is_found = |seed| concert(seed, Some(bug)).violations.iter().any(|it| it.contains(what));
        assert!(
            (0..100).any(is_found),
            "{bug:?} goes unnoticed in a hundred lives: nobody says that it {what}"
        );
    }
}

#[test]
fn planted_bugs_are_found() {
    for bug in [Bug::NoFence, Bug::NoIntent, Bug::NoFinalizer, Bug::WritesEveryTime, Bug::ForgetsToWait] {
        let is_bad = |seed| !toy(seed, Some(bug)).violations.is_empty();
        assert!((0..1000).any(is_bad), "{bug:?} goes unnoticed in a thousand lives");
    }
}

#[test]
fn bugs_planted_in_a_company_are_found() {
    let live = |company, seed, bug| scenario::run_in(company, seed, move |stage| ToyPlay::new(stage, bug));
    let is_bad = |seed| !live(Company::Members, seed, Some(Bug::NoFence)).violations.is_empty();
    assert!((0..1000).any(is_bad), "that nobody is fenced goes unnoticed in a thousand lives");
    let has_two = |seed| {
        let violations = live(Company::Stubborn, seed, None).violations;
        violations.iter().any(|it| it.contains("has had two owners"))
    };
    assert!((0..100).any(has_two), "that members go on after their leases goes unnoticed in a hundred lives");
}
