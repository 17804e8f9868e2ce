//! The program `concert`, from command line to exit code. What each command does is in `commands`.

mod advice;
#[cfg(test)]
mod reference;

use std::io::{ErrorKind as IoErrorKind, Write as _};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args as _, FromArgMatches as _};

pub use advice::Advice;

use crate::client::{Error, Flags};
use crate::commands;
use crate::exit::Exit;
use crate::print::plain;

const EXIT_CODES: &str = "\
Exit codes:
  0   it did what was asked; for a plan, nothing would change
  1   it could not; standard error says why and what to try
  2   a plan found changes; one that is saved says so only with --detailed-exitcode
  64  the command line makes no sense

Data goes to standard output and talk to standard error. NO_COLOR turns colours off.";

/// The program.
pub fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return refuse(&error).into(),
    };
    let Some((name, sub)) = matches.subcommand() else { return Exit::Usage.into() };
    let run = |flags: Flags| match commands::ALL.iter().find(|it| it.name == name) {
        Some(command) => (command.run)(sub, &flags),
        None => Ok(Exit::Usage),
    };
    let result = match Flags::from_arg_matches(sub) {
        Ok(flags) => run(flags),
        Err(error) => return refuse(&error).into(),
    };
    result.unwrap_or_else(|error| report(&error)).into()
}

/// The whole command line.
pub fn command() -> clap::Command {
    let command = clap::Command::new("concert")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(EXIT_CODES);
    let about = "Makes declared things real and keeps them so";
    let command = Flags::augment_args(command).about(about).long_about(about);
    commands::ALL.iter().fold(command, |command, it| command.subcommand((it.define)()))
}

/// Help and version were asked for; everything else is a mistake.
fn refuse(error: &clap::Error) -> Exit {
    // Whoever reads it may have gone.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Exit::Usage,
        _ => {
            say("hint: concert --help");
            Exit::Usage
        }
    }
}

/// The error, its causes once each, and something to try.
fn report(error: &anyhow::Error) -> Exit {
    if is_nobody_reading(error) {
        return Exit::Done;
    }
    let lines: Vec<String> = format!("{error:#}").lines().map(plain).collect();
    say(&format!("error: {}", lines.join("\n       ")));
    say(&format!("hint: {}", plain(&hint(error))));
    Exit::Failed
}

/// What to try: the advice of whoever knew best, which is whoever was closest to what went wrong.
pub fn hint(error: &anyhow::Error) -> String {
    let advice = error.chain().find_map(|it| it.downcast_ref::<Advice>()).map(|it| it.hint.clone());
    let advice = advice.or_else(|| error.chain().find_map(|it| it.downcast_ref::<Error>()).map(Error::hint));
    let serving = || error.chain().find_map(|it| it.downcast_ref::<concert_server::serve::Error>());
    let advice = advice.or_else(|| serving().map(|it| it.hint().into_owned()));
    advice.unwrap_or_else(|| "concert --help".to_owned())
}

/// `concert get … | head` is no failure.
fn is_nobody_reading(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|it| it.downcast_ref::<std::io::Error>());
    causes.into_iter().any(|it| it.kind() == IoErrorKind::BrokenPipe)
}

/// Talk goes to standard error; if that is closed, nobody listens.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn the_hint_is_of_whoever_was_closest() {
        let error = Err::<(), _>(Advice::new("no kind is called x", "concert api-resources"));
        assert_eq!(hint(&error.context("cannot get x").unwrap_err()), "concert api-resources");
        assert_eq!(hint(&anyhow::anyhow!("odd")), "concert --help");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let error =
            anyhow::Error::from(std::io::Error::from(IoErrorKind::BrokenPipe)).context("cannot write");
        assert_eq!(report(&error), Exit::Done);
    }
}
