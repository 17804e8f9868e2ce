//! A server that follows another.

use anyhow::{Result, ensure};

use super::{PASSWORD, Postgres, run};

impl Postgres {
    /// A standby of this server, with settings of its own: it streams what is written here. Where this one has
    /// `synchronous_standby_names=*`, no commit is acknowledged that the standby does not have.
    ///
    /// # Errors
    /// It does not start.
    pub fn standby(&self, settings: &[&str]) -> Result<Self> {
        let standby = Self::place(self.programs.clone(), settings)?;
        let port = self.port.to_string();
        let mut copy = standby.command("pg_basebackup");
        copy.args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "--write-recovery-conf"]);
        copy.args(["--no-sync", "--checkpoint=fast", "-D"]).arg(standby.data());
        run(copy.env("PGPASSWORD", PASSWORD))?;
        standby.begin()?;
        Ok(standby)
    }

    /// Makes a standby a primary, and waits until it is one.
    ///
    /// # Errors
    /// It is none, or does not become one.
    pub fn promote(&self) -> Result<()> {
        let is_promoted = self.sql("postgres", "SELECT pg_promote()")?;
        ensure!(is_promoted == "t", "the standby has not become a primary");
        Ok(())
    }
}
