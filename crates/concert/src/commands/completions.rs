//! `concert completions`: what a shell needs to complete the command line.

use super::Run;
use crate::client::Flags;
use crate::exit::Exit;
use crate::{cli, print};

#[derive(clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

impl Run for Completions {
    const NAME: &'static str = "completions";
    const ABOUT: &'static str = "Print completions for a shell";

    fn run(self, _flags: &Flags) -> anyhow::Result<Exit> {
        print::out(&script(self.shell))?;
        Ok(Exit::Done)
    }
}

fn script(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "concert", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::*;

    #[test]
    fn every_shell_knows_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            assert!(super::super::ALL.iter().all(|it| script.contains(it.name)), "{shell}");
        }
    }
}
