//! Moving a store into a database.

use crate::backend::transfer::{Moved, Source};
use crate::backend::{Failure, Postgres};
use crate::chance::Chance;
use crate::seal::{Keyring, Seal};

/// Copies all that `source` has, sealed with `theirs`, into an empty database, sealed with `ours`: every
/// object with its uid, every write with its revision, who made it and when, work state and attempts.
///
/// # Assumptions
/// Nobody has either of them open.
///
/// # Errors
/// [`Failure`]; the database is as it was.
pub fn migrate(
    source: &dyn Source,
    theirs: &Keyring,
    target: &Postgres,
    ours: &Keyring,
    chance: &Chance,
) -> Result<Moved, Failure> {
    let (from, to) =
        (Seal::new(Some(theirs.clone()), chance.fork()), Seal::new(Some(ours.clone()), chance.fork()));
    target.take_over(source, &|owner, bytes| Ok(Some(to.seal(owner, &from.open(owner, bytes)?))))
}
