//! Why there is no copy, and what to try.

use std::error::Error as StdError;
use std::path::Path;

use super::super::error::Error;
use concert_store::Error as StoreError;
use concert_store::backend::sqlite::OpenError;
use concert_store::seal::{KeyError, SealedElsewhere};
use serde::{Deserialize, Serialize};

/// Why not, in words that can be sent to another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}")]
pub struct Refusal {
    /// What is wrong.
    pub what: String,
    /// Something to try.
    pub hint: String,
}

impl Refusal {
    pub(super) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }

    pub(super) fn of_keys(error: &KeyError, hint: &str) -> Self {
        Self::new(chain(error), hint)
    }

    /// A copy that was taken, and then could not be brought up to date.
    pub(super) fn of_start(error: &Error) -> Self {
        Self::new(chain(error), "the copy was taken; restore it again")
    }

    /// A backup that failed.
    pub(super) fn of_backup(error: &StoreError, file: &Path) -> Self {
        let what = format!("cannot write {}: {}", file.display(), deepest(error));
        let hint = match error {
            StoreError::Full => "choose a file on a disk with room, or make some",
            _ => "choose a file that is not there yet, in a folder that can be written to",
        };
        Self::new(what, hint)
    }

    /// A restore that failed.
    pub(super) fn of_restore(error: &StoreError, file: &Path) -> Self {
        let name = file.display();
        let what = format!("cannot restore {name}: {}", deepest(error));
        let hint = if matches!(error, StoreError::Full) {
            "nothing has changed; make room on the disk of the data directory for twice the copy".to_owned()
        } else if causes(error).find_map(|it| it.downcast_ref::<SealedElsewhere>()).is_some() {
            format!("concert restore {name} --key KEYFILE, with the concert.key of where the copy was made")
        } else {
            match causes(error).find_map(|it| it.downcast_ref::<OpenError>()) {
                Some(OpenError::Newer { .. }) => {
                    "install the version of concert that made it, or a newer one"
                }
                Some(OpenError::Foreign { .. }) => "give a file that `concert backup` wrote",
                _ => "nothing has changed; take another copy",
            }
            .to_owned()
        };
        Self::new(what, hint)
    }
}

type Cause<'a> = &'a (dyn StdError + 'static);

fn causes(error: Cause<'_>) -> impl Iterator<Item = Cause<'_>> {
    std::iter::successors(Some(error), |it: &Cause<'_>| (*it).source())
}

/// The whole chain in one line.
pub(super) fn chain(error: &(dyn StdError + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// What a store says of a copy, without that it was the store that said it.
fn deepest(error: &StoreError) -> String {
    let all: Vec<String> = causes(error).map(ToString::to_string).collect();
    let general = |it: &&String| ["the store is unavailable", "the backend failed"].contains(&it.as_str());
    let rest: Vec<&str> = all.iter().skip_while(general).map(String::as_str).collect();
    if rest.is_empty() { all.join(": ") } else { rest.join(": ") }
}
