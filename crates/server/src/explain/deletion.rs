//! Objects that are to go.

use concert_controllers::managed::vocabulary::{FINALIZER, annotation, condition, config, reason};
use concert_model::condition::Status;

use super::blocked::is_paused;
use super::diagnose::Finding;
use super::facts::{Facts, Service};
use super::words::{because, circumstances, enumerate, quote, span};

/// Who takes a finalizer away, where that is known.
const HOLDERS: &[(&str, &str)] = &[
    (FINALIZER, "the managed reconciler"),
    (config::FINALIZER, "the objects that use it"),
    (config::USAGE_FINALIZER, "the managed resource that it stands for"),
    ("foregroundDeletion", "the garbage collector, which deletes its dependents first"),
    ("orphan", "the garbage collector, which sets its dependents free first"),
    ("kubernetes", "the namespace controller, which deletes its contents first"),
    ("customresourcecleanup.apiextensions.k8s.io", "the objects of the kind, which go first"),
];

pub(super) fn being_deleted(facts: &Facts) -> Option<Finding> {
    let since = facts.object.deleted_at()?;
    let age = facts.now.duration_since(since).unsigned_abs();
    Some(Finding {
        text: format!("is being deleted (asked {} ago) and {}", span(age), waits(facts)),
        is_ready: false,
    })
}

fn waits(facts: &Facts) -> String {
    let finalizers = held_by(facts);
    let is_ours = finalizers.iter().any(|it| it == FINALIZER);
    if is_ours && is_paused(facts) {
        return format!(
            "waits until its pause ends, or until the annotation {}: \"true\" allows it",
            annotation::DELETE_WHILE_PAUSED
        );
    }
    let others: Vec<String> = finalizers.iter().filter(|it| *it != FINALIZER).map(|it| named(it)).collect();
    if !others.is_empty() {
        return format!(
            "waits for the finalizer{} {}",
            if others.len() > 1 { "s" } else { "" },
            enumerate(&others)
        );
    }
    match &facts.service {
        _ if !is_ours => "goes as soon as the store looks at it again".to_owned(),
        Service::Down { provider, why } => {
            format!("waits for provider {provider}, which cannot be reached{}", because(why))
        }
        Service::Nobody { .. } => format!(
            "waits for the finalizer {FINALIZER}, but no provider serves its kind that could remove the external resource"
        ),
        _ => with_external(facts),
    }
}

/// Nothing but its external thing holds it.
fn with_external(facts: &Facts) -> String {
    let failed = facts.condition(condition::SYNCED).filter(|it| {
        it.status == Status::False && it.reason == reason::RECONCILE_ERROR && !it.message.is_empty()
    });
    if let Some(failed) = failed {
        return format!(
            "its external resource could not be removed: {}{}",
            quote(&failed.message),
            circumstances(facts)
        );
    }
    let progress = facts.condition(condition::READY).map(|it| it.message).unwrap_or_default();
    format!("waits until its external resource is gone{}{}", because(&progress), circumstances(facts))
}

/// Namespaces have a list of their own beside the usual one.
fn held_by(facts: &Facts) -> Vec<String> {
    let mut all = facts.object.finalizers();
    if facts.object.kind() == "Namespace" {
        let own = facts.object.spec()["finalizers"].as_array().into_iter().flatten();
        all.extend(own.filter_map(|it| it.as_str().map(str::to_owned)));
    }
    all
}

fn named(finalizer: &str) -> String {
    match HOLDERS.iter().find(|(name, _)| *name == finalizer) {
        Some((name, holder)) => format!("{name} of {holder}"),
        // By convention it begins with the domain of whoever set it.
        None => match finalizer.split_once('/') {
            Some((domain, _)) => format!("{finalizer} of {domain}"),
            None => finalizer.to_owned(),
        },
    }
}
