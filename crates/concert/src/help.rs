//! The help text, in the form that users of the Go program know.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command};

/// The whole text for `command`, called `name`.
pub fn text(name: &str, command: &Command) -> String {
    let mut text = String::new();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "{about}\n\nUsage:\n  {name} [flags]\n");
    for part in command.get_subcommands() {
        let _ = writeln!(text, "  {name} {} [flags]", part.get_name());
    }
    for part in command.get_subcommands() {
        let about = part.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = write!(text, "\nCommands:\n  {}    {about}\n", part.get_name());
    }
    text + "\nFlags:\n" + &flags(command.get_arguments())
}

/// One line for each flag, the texts in one column.
pub fn flags<'a>(all: impl Iterator<Item = &'a Arg>) -> String {
    let rows: Vec<(String, String)> = all.filter(|it| it.get_long().is_some()).map(row).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    rows.iter().map(|(name, help)| format!("{name:width$}   {help}\n")).collect()
}

fn row(arg: &Arg) -> (String, String) {
    let short = arg.get_short().map_or_else(|| "      ".to_owned(), |it| format!("  -{it}, "));
    let mut name = format!("{short}--{}", arg.get_long().unwrap_or_default());
    // A boolean has no value name: the bare flag is what people write.
    let is_switch = arg.get_value_names().is_none();
    if let Some([kind, ..]) = arg.get_value_names() {
        let _ = write!(name, " {kind}");
    }
    let mut help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let default = arg.get_default_values().first().and_then(|it| it.to_str());
    match default {
        Some(default) if is_switch && default == "true" => help += " (default true)",
        Some(default) if !is_switch && matches!(arg.get_action(), ArgAction::Set) => {
            let _ = write!(help, " (default {default:?})");
        }
        _ => {}
    }
    (name, help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::command;

    /// The flags of the seed, and their texts.
    const SEED: &str = "\
--config string                      Path to the configuration file
--provider-endpoint string           gRPC endpoint for the provider (overrides config file)
--leader-election                    Use leader election for the controller (default true)
--restart-on-provider-disconnect     Restart the reconciler if the provider connection is lost (default true)
--max-reconcile-rate int             The maximum number of concurrent reconciliations per controller (default 10)
--poll-interval duration             How often a managed resource should be polled when in a steady state (default 1m0s)
--metrics-bind-address string        The address the metric endpoint binds to (default \":8080\")
--health-probe-bind-address string   The address the probe endpoint binds to (default \":8081\")
--cert-dir string                    The directory containing TLS certificates";

    #[test]
    fn every_flag_of_the_seed_is_there_with_its_default_and_text() {
        let command = command("dynamic-reconciler");
        let help = text("dynamic-reconciler", &command);
        assert!(help.contains("Usage:\n  dynamic-reconciler [flags]\n"), "{help}");
        for line in SEED.lines() {
            assert!(help.lines().any(|it| it.trim_start() == line), "{line}\nin\n{help}");
        }
    }

    #[test]
    fn the_reference_has_every_flag() {
        let reference = include_str!("../../../docs/reference/managed-reconciler.md");
        let command = command("managed-reconciler");
        let plan = command.find_subcommand("plan").unwrap();
        for flag in command.get_arguments().chain(plan.get_arguments()).filter_map(Arg::get_long) {
            assert!(reference.contains(&format!("`--{flag}`")), "--{flag} is missing");
        }
    }
}
