//! Replays one seed with its trace, or looks for bad ones.
#![allow(clippy::print_stdout, reason = "the trace is what it is for")]

use concert_sim::claims::ClaimsPlay;
use concert_sim::fleet::FleetPlay;
use concert_sim::managed::ManagedPlay;
use concert_sim::scenario::{self, Company, Report};
use concert_sim::toy::ToyPlay;

const USAGE: &str = "usage: concert-sim [PLAY] --seed N          replay one life and print its trace
       concert-sim [PLAY] --seeds FROM TO    live many lives and print the bad ones

PLAY is managed (the default), claims, fleet or toy, and members, shared-managed or shared-claims: toy, managed
and claims with several processes that share the work.";

const PLAYS: [&str; 7] = ["toy", "claims", "fleet", "managed", "members", "shared-managed", "shared-claims"];

fn live(play: &str, seed: u64) -> Report {
    match play {
        "toy" => scenario::run(seed, |stage| ToyPlay::new(stage, None)),
        "fleet" => scenario::run(seed, |stage| FleetPlay::new(stage, None)),
        "claims" => scenario::run(seed, |stage| ClaimsPlay::new(stage, None)),
        "members" => scenario::run_in(Company::Members, seed, |stage| ToyPlay::new(stage, None)),
        "shared-managed" => scenario::run_in(Company::Members, seed, |stage| ManagedPlay::new(stage, None)),
        "shared-claims" => scenario::run_in(Company::Members, seed, |stage| ClaimsPlay::new(stage, None)),
        _ => scenario::run(seed, |stage| ManagedPlay::new(stage, None)),
    }
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_play = words.first().is_some_and(|it| PLAYS.contains(it));
    let play = if is_play { words.remove(0) } else { "managed" };
    let number = |text: &str| text.parse::<u64>().ok();
    let seeds = match words[..] {
        ["--seed", seed] => number(seed).map(|seed| seed..seed + 1),
        ["--seeds", from, to] => number(from).zip(number(to)).map(|(from, to)| from..to),
        _ => None,
    };
    let Some(seeds) = seeds else {
        eprintln!("{USAGE}");
        return std::process::ExitCode::from(2);
    };
    let is_replay = seeds.end - seeds.start == 1;
    let mut bad = 0;
    for seed in seeds {
        let report = live(play, seed);
        if is_replay {
            report.trace.iter().for_each(|line| println!("{line}"));
            println!("{:?}\nfingerprint {:016x}", report.counts, report.fingerprint);
        }
        if !report.violations.is_empty() {
            bad += 1;
            println!("seed {seed}: {}", report.violations.join("; "));
        }
    }
    println!("{bad} bad");
    std::process::ExitCode::from(u8::from(bad > 0))
}
