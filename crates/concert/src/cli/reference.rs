//! `docs/reference/cli.md` is what the command line says of itself.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::{EXIT_CODES, command};

/// The page, and why it is there.
const PAGE: &str = include_str!("../../../../docs/reference/cli.md");
const HEAD: &str = "\
# `concert`

Every command and every flag, as the program itself has them: a test holds this page to it. `concert serve` and its \
settings have [a page of their own](serve.md).
";

#[test]
fn the_reference_is_what_the_command_line_says() {
    let page = page();
    assert!(page == PAGE, "docs/reference/cli.md is to be:\n{page}");
}

fn page() -> String {
    let mut all = command();
    all.build();
    let mut text = HEAD.to_owned();
    let (codes, streams) = EXIT_CODES.split_once("\n\n").unwrap();
    text += "\n## Exit codes\n\n| | |\n|---|---|\n";
    for line in codes.lines().skip(1) {
        let (code, meaning) = line.trim().split_once(' ').unwrap();
        let _ = writeln!(text, "| {code} | {} |", meaning.trim());
    }
    let _ = write!(text, "\n{streams}\n\n## Flags of every command\n\n");
    text += &table(all.get_arguments().filter(|it| it.is_global_set()));
    for part in all.get_subcommands().filter(|it| it.get_name() != "help") {
        describe(part, "concert", &mut text);
    }
    text
}

fn describe(command: &Command, parent: &str, text: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "\n## `{name}`\n\n{about}.\n");
    let own: Vec<&Arg> = command.get_arguments().filter(|it| is_own(it)).collect();
    if !own.is_empty() {
        let _ = write!(text, "\n{}", table(own.into_iter()));
    }
    for part in command.get_subcommands().filter(|it| it.get_name() != "help") {
        describe(part, &name, text);
    }
}

fn is_own(arg: &Arg) -> bool {
    !arg.is_global_set() && !["help", "version"].contains(&arg.get_id().as_str())
}

fn table<'a>(all: impl Iterator<Item = &'a Arg>) -> String {
    let mut text = "| | |\n|---|---|\n".to_owned();
    for arg in all {
        let _ = writeln!(text, "| {} | {} |", shape(arg), meaning(arg));
    }
    text
}

/// `-n`, `--namespace NAMESPACE`, or `FILE`.
fn shape(arg: &Arg) -> String {
    let takes_value = arg.get_action().takes_values();
    let value = arg.get_value_names().and_then(|it| it.first()).map(ToString::to_string).unwrap_or_default();
    let value = value.replace('|', "\\|");
    if arg.is_positional() {
        return format!("`{value}`");
    }
    let short = arg.get_short().map(|it| format!("`-{it}`, ")).unwrap_or_default();
    let long = arg.get_long().unwrap_or_default();
    if takes_value { format!("{short}`--{long} {value}`") } else { format!("{short}`--{long}`") }
}

/// The text of the help, with the values and the default that it takes.
fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('|', "\\|");
    if arg.get_action().takes_values() {
        let values: Vec<String> =
            arg.get_possible_values().iter().map(|it| format!("`{}`", it.get_name())).collect();
        if !values.is_empty() {
            let _ = write!(text, ": {}", values.join(", "));
        }
        if let Some(default) = arg.get_default_values().first() {
            let _ = write!(text, " (default `{}`)", default.to_string_lossy());
        }
    }
    if arg.is_required_set() {
        text += " (required)";
    }
    text
}
