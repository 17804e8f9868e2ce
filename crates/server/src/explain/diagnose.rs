//! The one reason that matters most.

use super::facts::Facts;
use super::{blocked, claim, deletion, fleet, settled, working};

/// What follows the subject of the sentence.
pub(super) struct Finding {
    pub text: String,
    pub is_ready: bool,
}

impl Finding {
    /// Not ready, for this reason.
    pub fn not_ready(why: impl AsRef<str>) -> Self {
        Self { text: format!("is not ready: {}", why.as_ref()), is_ready: false }
    }

    /// Ready or not as its condition says, with something that holds in either case.
    pub fn as_it_is(facts: &Facts, what: impl AsRef<str>) -> Self {
        let what = what.as_ref();
        if facts.is_ready() {
            Self { text: format!("is ready, but {what}"), is_ready: true }
        } else {
            Self::not_ready(what)
        }
    }
}

type Rung = fn(&Facts) -> Option<Finding>;

/// From what makes all else pointless to what is merely not there yet: the first that answers counts.
const LADDER: &[Rung] = &[
    fleet::being_deleted,
    deletion::being_deleted,
    blocked::no_definition,
    blocked::paused,
    fleet::not_settled,
    claim::not_bound,
    blocked::nobody_serves,
    blocked::provider_unreachable,
    blocked::create_in_doubt,
    blocked::waiting_for_others,
    working::failed_for_good,
    working::failing,
    working::held,
    working::not_looked_at,
    working::running,
    working::in_progress,
    settled::drifted,
    settled::ready,
    settled::without_conditions,
];

/// Looks down the ladder.
pub(super) fn diagnose(facts: &Facts) -> Finding {
    LADDER.iter().find_map(|rung| rung(facts)).unwrap_or_else(|| settled::not_ready(facts))
}
