//! The junctors: `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! Branches are first tried without putting anything into words. When none fits, the one with the
//! fewest errors is taken as what the user meant, and its errors are reported beside the junctor's.

use serde_json::Value;

use super::report::Report;
use super::{check_value, is_of_type, words};
use crate::structural::checks::{Branch, Branches};
use crate::structural::path::Path;

pub(super) fn check(branches: &Branches, value: &Value, path: &Path<'_>, report: &mut Report) {
    check_any_of(&branches.any_of, value, path, report);
    check_one_of(&branches.one_of, value, path, report);
    check_all_of(&branches.all_of, value, path, report);
    if let Some(not) = &branches.not
        && errors_in(not, value, path) == 0
    {
        report.add(|| words::junctor(path, "must not validate the schema (not)"));
    }
}

fn check_any_of(branches: &[Branch], value: &Value, path: &Path<'_>, report: &mut Report) {
    let mut closest = None;
    for branch in branches {
        let errors = errors_in(branch, value, path);
        if errors == 0 {
            return;
        }
        closest = closer(closest, (errors, branch));
    }
    if let Some((_, closest)) = closest {
        report.add(|| words::junctor(path, "must validate at least one schema (anyOf)"));
        explain(closest, value, path, report);
    }
}

fn check_one_of(branches: &[Branch], value: &Value, path: &Path<'_>, report: &mut Report) {
    let mut closest = None;
    let mut fitting = 0;
    for branch in branches {
        let errors = errors_in(branch, value, path);
        fitting += usize::from(errors == 0);
        closest = closer(closest, (errors, branch));
    }
    match (fitting, closest) {
        (1, _) | (_, None) => {}
        (0, Some((_, closest))) => {
            let what = "must validate one and only one schema (oneOf). Found none valid";
            report.add(|| words::junctor(path, what));
            explain(closest, value, path, report);
        }
        (several, Some(_)) => report.add(|| {
            let what = "must validate one and only one schema (oneOf)";
            words::junctor(path, &format!("{what}. Found {several} valid alternatives"))
        }),
    }
}

/// The one with fewer errors; of two alike the first.
fn closer<'a>(best: Option<(usize, &'a Branch)>, next: (usize, &'a Branch)) -> Option<(usize, &'a Branch)> {
    Some(best.filter(|best| best.0 <= next.0).unwrap_or(next))
}

/// Adds the errors of the branch that came closest, if anybody will read them. Walking it again while
/// only counting would make nested junctors exponentially slow.
fn explain(closest: &Branch, value: &Value, path: &Path<'_>, report: &mut Report) {
    if report.is_collecting() {
        check_branch(closest, value, path, report);
    }
}

fn check_all_of(branches: &[Branch], value: &Value, path: &Path<'_>, report: &mut Report) {
    let fitting = branches
        .iter()
        .filter(|branch| {
            let before = report.found();
            check_branch(branch, value, path, report);
            report.found() == before
        })
        .count();
    if fitting < branches.len() {
        let none = if fitting == 0 { ". None validated" } else { "" };
        report.add(|| words::junctor(path, &format!("must validate all the schemas (allOf){none}")));
    }
}

fn errors_in(branch: &Branch, value: &Value, path: &Path<'_>) -> usize {
    let mut report = Report::counting();
    check_branch(branch, value, path, &mut report);
    report.found()
}

fn check_branch(branch: &Branch, value: &Value, path: &Path<'_>, report: &mut Report) {
    if let Some(kind) = branch.kind
        && !is_of_type(kind, value)
    {
        report.add(|| words::wrong_type(path, kind.name(), value));
        return;
    }
    check_value(&branch.checks, value, path, report);
    match value {
        Value::Object(object) => {
            for (name, property) in &branch.properties {
                if let Some(value) = object.get(name) {
                    check_branch(property, value, &path.child(name), report);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &branch.items {
                for (index, element) in list.iter().enumerate() {
                    check_branch(items, element, &path.index(index), report);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
