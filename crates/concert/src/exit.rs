//! How programs end.

use std::process::ExitCode;

/// Every exit code there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked; for a plan, nothing would change.
    Done = 0,
    /// It could not; standard error says why and what to try.
    Failed = 1,
    /// A plan found changes, and was to tell by its exit code.
    Changes = 2,
    /// The command line makes no sense (`EX_USAGE` of BSD).
    Usage = 64,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
