//! A mistake, and something to try about it.

/// What is wrong, and a command to try.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Advice {
    what: String,
    /// What follows `hint: `.
    pub hint: String,
}

impl Advice {
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}
