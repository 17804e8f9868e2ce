//! The managed reconciler, from command line to exit code.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ArgMatches;
use clap::error::ErrorKind;
use concert_server::managed::{self, Controller, ControllerConfig, Options, ProviderConfig, Storage};

use crate::exit::Exit;
use crate::flags::{Flags, command, meant};
use crate::signals::until_told;
use crate::{help, logs, manifests, plan};

/// The program, called `name`.
pub fn main(name: &'static str) -> ExitCode {
    let mut command = command(name);
    let text = help::text(name, &command);
    command = command.override_help(text);
    command = command.mut_subcommand("plan", |plan| {
        let about = plan.get_about().map(ToString::to_string).unwrap_or_default();
        let flags = help::flags(plan.get_arguments());
        plan.override_help(format!(
            "{about}\n\nUsage:\n  {name} plan -f FILE [flags]\n\nFlags:\n{flags}\n\
             Those flags of {name} apply too that say which providers there are, how they are asked and where\n\
             objects live. --config or --provider-endpoint is needed.\n"
        ))
    });
    let line = meant(&command, std::env::args_os());
    let matches = match command.try_get_matches_from(line) {
        Ok(matches) => matches,
        Err(error) => return refuse(name, &error).into(),
    };
    match run(&matches) {
        Ok(exit) => exit.into(),
        Err(error) => {
            report(&error);
            Exit::Failed.into()
        }
    }
}

/// Help and version were asked for; everything else is a mistake.
fn refuse(name: &str, error: &clap::Error) -> Exit {
    // Whoever reads it may have gone.
    let _ = error.print();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Exit::Done;
    }
    say(&format!("hint: {name} --help"));
    Exit::Usage
}

/// The error, its causes once each, and something to try.
fn report(error: &anyhow::Error) {
    let text = format!("{error:#}");
    say(&format!("error: {}", text.replace('\n', "\n       ")));
    let hint = error.chain().find_map(|it| it.downcast_ref::<managed::Error>()).map(managed::Error::hint);
    let hint = hint.or_else(|| error.chain().find_map(|it| it.downcast_ref::<Hint>()).map(|it| it.hint));
    say(&format!("hint: {}", hint.unwrap_or("see --help for every flag")));
}

/// Talk goes to standard error; if that is closed, nobody listens.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let (flags, planning) = match matches.subcommand() {
        Some(("plan", sub)) => (Flags::of(sub), Some(sub)),
        _ => (Flags::of(matches), None),
    };
    logs::start(&flags.log_level, &flags.log_format)?;
    let config = config(&flags)?;
    let options = options(&flags);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start threads")?;
    match planning {
        Some(sub) => runtime.block_on(print_plan(sub, &config, &options)),
        None => {
            let reconciler = Controller::new(config, options);
            runtime.block_on(until_told(async |shutdown| reconciler.run(shutdown).await))?;
            Ok(Exit::Done)
        }
    }
}

async fn print_plan(sub: &ArgMatches, config: &ControllerConfig, options: &Options) -> anyhow::Result<Exit> {
    let objects = manifests::read(sub.get_one::<String>("filename").map_or("-", String::as_str))?;
    let plans = managed::plan::plan(config, options, objects).await?;
    let is_json = sub.get_one::<String>("output").is_some_and(|it| it == "json");
    let text = if is_json { plan::json(&plans) } else { plan::text(&plans) };
    std::io::stdout().write_all(text.as_bytes()).context("cannot write to standard output")?;
    let is_detailed = sub.get_one("detailed-exitcode").copied().unwrap_or_default();
    Ok(if is_detailed && plan::has_changes(&plans) { Exit::Changes } else { Exit::Done })
}

/// A mistake of the command line that has its own hint.
#[derive(Debug)]
struct Hint {
    what: String,
    hint: &'static str,
}

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Hint {}

/// The file, the endpoint, or the file with another endpoint.
fn config(flags: &Flags) -> anyhow::Result<ControllerConfig> {
    let endpoint = flags.provider_endpoint.clone();
    let mut config = match (&flags.config, &endpoint) {
        (Some(path), _) => ControllerConfig::read(path).map_err(managed::Error::from)?,
        (None, Some(_)) => {
            // Its kinds are what it names itself.
            let provider = ProviderConfig { name: "default".into(), ..ProviderConfig::default() };
            ControllerConfig { providers: vec![provider] }
        }
        (None, None) => {
            let what = "no provider is declared: neither --config nor --provider-endpoint is set".to_owned();
            return Err(Hint { what, hint: "--provider-endpoint=HOST:PORT is enough to start with" }.into());
        }
    };
    if let Some(endpoint) = endpoint {
        let [provider] = &mut config.providers[..] else {
            let what = format!(
                "--provider-endpoint replaces the endpoint of the only provider, but the file declares {}",
                config.providers.len()
            );
            return Err(Hint { what, hint: "set the endpoints in the file and leave the flag out" }.into());
        };
        provider.endpoint = endpoint;
        config.check().map_err(managed::Error::from)?;
    }
    Ok(config)
}

fn options(flags: &Flags) -> Options {
    let storage = match flags.store.as_str() {
        "kubernetes" => {
            Storage::Kubernetes { kubeconfig: flags.kubeconfig.clone(), context: flags.context.clone() }
        }
        "memory" => Storage::Memory,
        path => Storage::File(path.into()),
    };
    let mut options = Options::new()
        .with_leader_election(flags.leader_election)
        .with_lease(flags.leader_election_id.clone(), flags.leader_election_namespace.clone())
        .with_restart_on_disconnect(flags.restart_on_provider_disconnect)
        .with_metrics_address(flags.metrics_bind_address.clone())
        .with_health_address(flags.health_probe_bind_address.clone())
        .with_storage(storage);
    if let Some(count) = flags.max_reconcile_rate {
        options = options.with_max_reconciles(count);
    }
    if let Some(interval) = flags.poll_interval {
        options = options.with_poll_interval(interval);
    }
    if let Some(timeout) = flags.reconcile_timeout {
        options = options.with_reconcile_timeout(timeout);
    }
    if let Some(folder) = &flags.cert_dir {
        options = options.with_cert_dir(folder);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_on_the_command_line_replaces_that_of_the_only_provider_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        let text = r#"{"providers": [{"name": "one", "endpoint": "file:1", "insecure": true,
            "resourceTypes": [{"apiVersion": "g.io/v1", "kind": "Bucket"}]}]}"#;
        std::fs::write(&path, text).unwrap();
        let file = format!("--config={}", path.display());
        let providers = |more: &[&str]| {
            let line = ["managed-reconciler", file.as_str()].into_iter().chain(more.iter().copied());
            let matches = command("managed-reconciler").try_get_matches_from(line).unwrap();
            config(&Flags::of(&matches)).unwrap().providers
        };
        let alone = providers(&[]);
        assert_eq!((alone.len(), alone[0].endpoint.as_str()), (1, "file:1"));
        let replaced = ProviderConfig { endpoint: "flag:2".into(), ..alone[0].clone() };
        assert_eq!(providers(&["--provider-endpoint=flag:2"]), [replaced]);
    }
}
