//! Going on after a copy of the database was put back.
//!
//! The copy gives out numbers again that were given out before, after it was made: a client that remembers one
//! would take something else for what it knew. So everything moves far ahead, as with a [file](super::super::sqlite).

use concert_model::Revision;

use super::Postgres;
use crate::backend::Failure;
use crate::backend::numbers::{LEAP, revision_of};

/// `$1` is how far revisions and claims move. Rows are apart by less, so none meets another on the way.
const MOVES: &[&str] = &[
    // Only what is current stays: nobody can ask for the rest.
    "DELETE FROM bodies b WHERE $1::bigint > 0 AND NOT EXISTS \
        (SELECT 1 FROM objects o WHERE o.revision = b.revision AND NOT o.is_free)",
    "UPDATE bodies SET revision = revision + $1::bigint",
    "UPDATE log SET revision = revision + $1::bigint, previous = previous + $1::bigint",
    "UPDATE objects SET revision = revision + $1::bigint",
    "UPDATE work SET fence = fence + $1::bigint",
    "UPDATE meta SET value = value + $1::bigint WHERE name IN ('newest', 'claims')",
    "UPDATE meta SET value = (SELECT value FROM meta WHERE name = 'newest') \
        WHERE name = 'compacted' AND $1::bigint > 0",
    // Questions of processes that are gone.
    "DELETE FROM writers WHERE $1::bigint > 0",
];

impl Postgres {
    /// Moves all revisions and claims far ahead of every one that was ever given out, in one step. All before is
    /// compacted: watches from there are expired, updates conflict, claims are lost. Returns the newest revision.
    ///
    /// # Errors
    /// [`Failure`]; everything is as it was.
    pub fn move_ahead(&self) -> Result<Revision, Failure> {
        let newest = self.writer().maintain(async |connection| {
            connection.be_patient().await?;
            for sql in MOVES {
                connection.rows(sql, &[&LEAP]).await?;
            }
            let newest = connection.one("SELECT value FROM meta WHERE name = 'newest'", &[]).await?.get(0);
            connection.be_quick();
            Ok(newest)
        })?;
        Ok(revision_of(newest))
    }
}
