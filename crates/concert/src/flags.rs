//! The flags of the managed reconciler.
//!
//! Names, defaults and texts are those of the program it takes the place of; so are Go's spellings of
//! booleans and durations. What has no value here was not given: then a provider's hint counts before
//! our default does.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use concert_model::duration;
use concert_server::admin::Address;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub provider_endpoint: Option<String>,
    pub leader_election: bool,
    pub leader_election_id: String,
    pub leader_election_namespace: Option<String>,
    pub restart_on_provider_disconnect: bool,
    pub max_reconcile_rate: Option<usize>,
    pub poll_interval: Option<Duration>,
    pub reconcile_timeout: Option<Duration>,
    pub metrics_bind_address: Address,
    pub health_probe_bind_address: Address,
    pub cert_dir: Option<PathBuf>,
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    pub store: String,
    pub log_level: String,
    pub log_format: String,
}

/// The command called `name`.
pub fn command(name: &'static str) -> Command {
    let plan = Command::new("plan")
        .about("Print what the providers would do about the managed resources of a file; touches nothing")
        .arg(
            text("filename", "string", "The file with the manifests, JSON or YAML, or - for standard input")
                .short('f')
                .required(true),
        )
        .arg(
            text("output", "string", "The form of the answer: text or json")
                .short('o')
                .default_value("text")
                .value_parser(["text", "json"]),
        )
        .arg(
            switch("detailed-exitcode", "Exit with 2 rather than 0 if anything would change")
                .default_value("false"),
        );
    Command::new(name)
        .version(env!("CARGO_PKG_VERSION"))
        .about("Reconciles managed resources of any kind with provider servers over gRPC")
        .disable_help_subcommand(true)
        .args(flags().into_iter().map(|it| it.global(true)))
        .subcommand(plan)
}

/// One line each, so that a flag of a manifest greps to what it does.
fn flags() -> Vec<Arg> {
    vec![
        text("config", "string", "Path to the configuration file"),
        text("provider-endpoint", "string", "gRPC endpoint for the provider (overrides config file)"),
        switch("leader-election", "Use leader election for the controller").default_value("true"),
        text("leader-election-id", "string", "The name of the lease that instances elect a leader by")
            .default_value(concert_server::managed::LEADER_ELECTION_ID),
        text(
            "leader-election-namespace",
            "string",
            "The namespace of that lease (default: that of the pod, else of the kubeconfig's context)",
        ),
        switch("restart-on-provider-disconnect", "Restart the reconciler if the provider connection is lost")
            .default_value("true"),
        text(
            "max-reconcile-rate",
            "int",
            "The maximum number of concurrent reconciliations per controller (default 10)",
        )
        .value_parser(count),
        text(
            "poll-interval",
            "duration",
            "How often a managed resource should be polled when in a steady state (default 1m0s)",
        )
        .value_parser(interval),
        text(
            "reconcile-timeout",
            "duration",
            "How long one reconcile may take, with all calls of the provider (default 1m0s)",
        )
        .value_parser(interval),
        text("metrics-bind-address", "string", "The address the metric endpoint binds to")
            .default_value(":8080")
            .value_parser(address),
        text("health-probe-bind-address", "string", "The address the probe endpoint binds to")
            .default_value(":8081")
            .value_parser(address),
        text("cert-dir", "string", "The directory containing TLS certificates"),
        text(
            "kubeconfig",
            "string",
            "Path to a kubeconfig (default: the cluster the process runs in, or what kubectl would use)",
        ),
        text("context", "string", "The context of the kubeconfig to use"),
        text("store", "string", "Where objects live: kubernetes, memory, or the path of a database file")
            .default_value("kubernetes"),
        text(
            "log-level",
            "string",
            "What to log: error, warn, info, debug or trace, also per module (info,concert_engine=debug)",
        )
        .default_value("info"),
        text("log-format", "string", "The form of log lines: text or json")
            .default_value("text")
            .value_parser(["text", "json"]),
    ]
}

/// The command line as it is meant: as in Go, one dash does for the two of a flag.
pub fn meant(command: &Command, line: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let is_flag =
        |name: &str| name.len() > 1 && command.get_arguments().any(|it| it.get_long() == Some(name));
    let meant = |word: OsString| match word.to_str().and_then(|it| it.strip_prefix('-')) {
        Some(flag) if is_flag(flag.split('=').next().unwrap_or_default()) => format!("--{flag}").into(),
        _ => word,
    };
    line.into_iter().map(meant).collect()
}

fn text(name: &'static str, kind: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(kind).help(help)
}

/// A boolean as Go has them: the bare flag means true, and a value needs an equals sign.
fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .help(help)
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .value_parser(boolean)
}

fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|it| *it > 0).ok_or_else(|| "must be a whole number above 0".to_owned())
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text).map_err(|rule| rule.to_string())?;
    if interval.is_zero() { Err("must be longer than 0s".to_owned()) } else { Ok(interval) }
}

fn address(text: &str) -> Result<Address, String> {
    text.parse().map_err(|error: concert_server::admin::AddressError| error.to_string())
}

impl Flags {
    /// Takes what was parsed.
    pub fn of(matches: &ArgMatches) -> Self {
        let text = |name: &str| matches.get_one::<String>(name).filter(|it| !it.is_empty()).cloned();
        let is = |name: &str| matches.get_one::<bool>(name).copied().unwrap_or_default();
        let address = |name: &str| matches.get_one::<Address>(name).cloned().unwrap_or(Address::Nowhere);
        Self {
            config: text("config").map(PathBuf::from),
            provider_endpoint: text("provider-endpoint"),
            leader_election: is("leader-election"),
            leader_election_id: text("leader-election-id").unwrap_or_default(),
            leader_election_namespace: text("leader-election-namespace"),
            restart_on_provider_disconnect: is("restart-on-provider-disconnect"),
            max_reconcile_rate: matches.get_one("max-reconcile-rate").copied(),
            poll_interval: matches.get_one("poll-interval").copied(),
            reconcile_timeout: matches.get_one("reconcile-timeout").copied(),
            metrics_bind_address: address("metrics-bind-address"),
            health_probe_bind_address: address("health-probe-bind-address"),
            cert_dir: text("cert-dir").map(PathBuf::from),
            kubeconfig: text("kubeconfig").map(PathBuf::from),
            context: text("context"),
            store: text("store").unwrap_or_default(),
            log_level: text("log-level").unwrap_or_default(),
            log_format: text("log-format").unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Flags, clap::Error> {
        let command = command("managed-reconciler");
        let line = ["managed-reconciler"].iter().chain(arguments).map(OsString::from);
        let line = meant(&command, line);
        command.try_get_matches_from(line).map(|it| Flags::of(&it))
    }

    #[test]
    fn defaults_are_those_of_the_seed() {
        let flags = parse(&[]).unwrap();
        assert!(flags.leader_election && flags.restart_on_provider_disconnect);
        assert_eq!(flags.metrics_bind_address, Address::Everywhere(8080));
        assert_eq!(flags.health_probe_bind_address, Address::Everywhere(8081));
        assert_eq!(flags.leader_election_id, "managed-reconciler-leader-election");
        // Not given: a provider's hint would count.
        assert_eq!((flags.max_reconcile_rate, flags.poll_interval), (None, None));
        assert_eq!((flags.config, flags.provider_endpoint, flags.cert_dir), (None, None, None));
    }

    #[test]
    fn booleans_are_spelt_as_in_go() {
        for (text, expected) in [
            ("--leader-election", true),
            ("--leader-election=true", true),
            ("--leader-election=1", true),
            ("--leader-election=false", false),
            ("--leader-election=F", false),
            ("--leader-election=0", false),
        ] {
            assert_eq!(parse(&[text]).unwrap().leader_election, expected, "{text}");
        }
        assert!(!parse(&["--restart-on-provider-disconnect=false"]).unwrap().restart_on_provider_disconnect);
        // As in Go, a value needs an equals sign: this would be an argument, and there are none.
        assert!(parse(&["--leader-election", "false"]).is_err());
        assert!(parse(&["--leader-election=maybe"]).is_err());
    }

    #[test]
    fn one_dash_does_for_two() {
        let flags = parse(&["-config", "/a", "-leader-election=false", "-poll-interval=2m0s"]).unwrap();
        assert_eq!((flags.config, flags.leader_election), (Some("/a".into()), false));
        assert_eq!(flags.poll_interval, Some(Duration::from_secs(120)));
        assert!(parse(&["-no-such-flag"]).is_err());
    }

    #[test]
    fn values_come_with_an_equals_sign_or_without() {
        let flags = parse(&["--config=/a", "--max-reconcile-rate", "3", "--poll-interval=1m30s"]).unwrap();
        assert_eq!(flags.config, Some("/a".into()));
        assert_eq!(flags.max_reconcile_rate, Some(3));
        assert_eq!(flags.poll_interval, Some(Duration::from_secs(90)));
        let flags = parse(&["--metrics-bind-address", "0", "--health-probe-bind-address="]).unwrap();
        assert_eq!(flags.metrics_bind_address, Address::Nowhere);
        assert_eq!(flags.health_probe_bind_address, Address::Nowhere);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_rule() {
        for (arguments, rule) in [
            (&["--max-reconcile-rate=0"][..], "above 0"),
            (&["--max-reconcile-rate=ten"], "above 0"),
            (&["--poll-interval=60"], "must be a duration"),
            (&["--poll-interval=0s"], "longer than 0s"),
            (&["--metrics-bind-address=8080"], ":PORT"),
            (&["--log-format=xml"], "text, json"),
            (&["--no-such-flag"], "--no-such-flag"),
            (&["surplus"], "surplus"),
            (&["plan"], "--filename"),
        ] {
            let error = parse(arguments).unwrap_err().to_string();
            assert!(error.contains(rule), "{rule} in: {error}");
        }
    }

    #[test]
    fn a_plan_takes_the_same_flags_on_either_side() {
        for line in [&["plan", "-f", "x", "--config=c"][..], &["--config=c", "plan", "-f", "x"]] {
            let line = ["managed-reconciler"].iter().chain(line);
            let matches = command("managed-reconciler").try_get_matches_from(line).unwrap();
            let (_, plan) = matches.subcommand().unwrap();
            assert_eq!(Flags::of(plan).config, Some("c".into()));
        }
    }
}
