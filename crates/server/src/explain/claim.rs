//! Why a claim is not bound: what its own conditions say, and who should have made its managed resource.

use concert_model::condition::Status;

use super::diagnose::Finding;
use super::facts::{Facts, Relation, Service};
use super::words::{because, key, quote};

/// A claim that is not ready says itself what is missing; only of providers it knows nothing.
pub(super) fn not_bound(facts: &Facts) -> Option<Finding> {
    if !facts.is_claim || facts.is_ready() {
        return None;
    }
    let failed = facts.condition("Synced").filter(|it| it.status == Status::False);
    let waiting = facts.readiness().filter(|it| it.status != Status::True);
    let words = failed.or(waiting).map(|it| if it.message.is_empty() { it.reason } else { it.message });
    let why = match words {
        Some(words) => quote(&words),
        None => {
            "nobody has looked at it yet; is there a ClaimDefinition of its kind that is ready?".to_owned()
        }
    };
    Some(Finding::not_ready(format!("{why}{}", provider(facts))))
}

fn provider(facts: &Facts) -> String {
    let managed = facts.related.iter().find(|it| it.relation == Relation::Managed);
    let Some(managed) = managed else { return String::new() };
    match &facts.service {
        Service::Nobody { .. } => format!("; no provider serves {}", managed.key.kind),
        Service::Down { provider, why } => {
            format!("; provider {provider} of {} cannot be reached{}", key(&managed.key), because(why))
        }
        Service::Unknown | Service::NotNeeded | Service::Up { .. } => String::new(),
    }
}
