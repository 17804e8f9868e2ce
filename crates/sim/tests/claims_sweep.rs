//! The store dies at every commit of a claim's life, one life each.

use concert_sim::claims::sweep::{Act, How, sweep};

/// Sweeps, and finds nothing amiss in any life; says how many there were.
fn swept(how: How, act: Act, reclaim: &'static str) -> usize {
    let reports = sweep(how, act, reclaim);
    for report in &reports {
        let (fuse, violations) = (report.seed, report.violations.join("; "));
        assert!(
            violations.is_empty(),
            "{how:?} {act:?} {reclaim}, dead at commit {fuse}: {violations}\n{}",
            report.trace.join("\n")
        );
    }
    reports.len()
}

#[test]
fn a_store_that_dies_at_any_commit_of_a_binding_leaves_one_bound_claim() {
    for how in [How::Class, How::Selector, How::Static] {
        let lives = swept(how, Act::Bind, "Delete");
        assert!((8..500).contains(&lives), "{how:?}: {lives} lives are not all commits of a binding");
    }
}

#[test]
fn a_store_that_dies_while_a_class_is_chosen_leaves_one_bound_claim() {
    for how in [How::Policy, How::Default] {
        let lives = swept(how, Act::Bind, "Delete");
        assert!((9..500).contains(&lives), "{how:?}: {lives} lives are not all commits of a binding");
    }
}

#[test]
fn a_store_that_dies_while_a_claim_by_labels_is_let_go_leaves_nothing() {
    let lives = swept(How::Selector, Act::Unbind, "Delete");
    assert!((4..500).contains(&lives), "{lives} lives are not all commits");
}

#[test]
fn a_store_that_dies_while_a_secret_follows_loses_no_change() {
    let lives = swept(How::Static, Act::Follow, "Retain");
    assert!((2..500).contains(&lives), "{lives} lives are not all commits");
}

#[test]
fn a_store_that_dies_at_any_commit_of_an_unbinding_leaves_nothing_or_what_is_to_be_kept() {
    for reclaim in ["Delete", "Retain"] {
        for how in [How::Class, How::Static] {
            let lives = swept(how, Act::Unbind, reclaim);
            assert!((4..500).contains(&lives), "{how:?} {reclaim}: {lives} lives are not all commits");
        }
    }
}
