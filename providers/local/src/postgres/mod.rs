//! Databases in a PostgreSQL server, each with a role that owns it.
//!
//! The role carries a [`mark`]: a comment that says for which object, with which token and for which database
//! it was made. Role and mark come in one transaction and before the database, so whatever a crash leaves
//! behind is recognised. [`deviation`] has what can be wrong and what to do about each.

mod actual;
mod deviation;
mod mark;
mod password;
mod quote;
mod server;
mod target;
mod verbs;

use anyhow::Context;
use concert_store::Chance;

use crate::DataFolder;
use crate::tokens::Tokens;
use password::Passwords;

/// Serves databases of the PostgreSQL servers that ProviderConfigs name.
pub struct Postgres {
    tokens: Tokens,
    passwords: Passwords,
}

impl Postgres {
    /// Keeps what it must not forget in this folder.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub fn open(data: &DataFolder, chance: &Chance) -> anyhow::Result<Self> {
        let failed = || "cannot read the data folder";
        Ok(Self {
            tokens: Tokens::new(data.folder("tokens/postgres").with_context(failed)?),
            passwords: Passwords::open(&data.file("password-key"), chance).with_context(failed)?,
        })
    }
}
