//! How tables of rows write revisions, acts and times.

use concert_model::{Revision, Timestamp};

use super::Act;

/// How far ahead a store goes on that has taken back a copy: more than could have been written to the lost one
/// after that, at ten thousand writes a second for three years.
pub(super) const LEAP: i64 = 1_000_000_000_000;

pub(super) fn revision_of(number: i64) -> Revision {
    Revision(number.unsigned_abs())
}

/// Revisions stay far below 2^63: at a million writes a second that takes 292,000 years.
pub(super) fn number_of(revision: Revision) -> i64 {
    revision.0.cast_signed()
}

pub(super) fn number_of_act(act: Act) -> i64 {
    match act {
        Act::Created => 0,
        Act::Updated => 1,
        Act::Removed => 2,
    }
}

pub(super) fn act_of(number: i64) -> Act {
    match number {
        0 => Act::Created,
        1 => Act::Updated,
        _ => Act::Removed,
    }
}

pub(super) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

pub(super) fn time_of(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}
