//! A session of the administrator that stays, with the locks that it has.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};

use anyhow::{Context, Result, ensure};

use super::Postgres;

/// What the session says when it has done what it was told.
const DONE: &str = "it is done";

/// An open transaction. It ends with the value, and nothing of it stays.
#[derive(Debug)]
pub struct Session {
    psql: Child,
    // Taken when it is dropped: psql ends with its input.
    input: Option<ChildStdin>,
}

impl Postgres {
    /// Begins a transaction, executes a statement in it, and leaves it open.
    ///
    /// # Errors
    /// The statement failed; psql has said why on stderr.
    pub fn session(&self, database: &str, statement: &str) -> Result<Session> {
        let mut command = self.client("psql", database);
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        let mut psql = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (psql.stdin.take(), psql.stdout.take());
        let mut session = Session { psql, input };
        let input = session.input.as_mut().context("psql has no input")?;
        writeln!(input, "BEGIN;\n{statement};\nSELECT '{DONE}';")?;
        let lines = BufReader::new(output.context("psql has no output")?).lines();
        let is_done = lines.map_while(Result::ok).any(|line| line == DONE);
        ensure!(is_done, "psql ended before it was done");
        Ok(session)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.psql.wait();
    }
}
