//! `concert-provider-test ENDPOINT`: runs any provider through the contract.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use concert_provider::check::{self, Options};
use concert_provider::client::{self, Endpoint};
use concert_provider::{Configuration, Details, Protocol, Tls};

/// Where a provider finds credentials, as the managed reconciler gives them.
const CREDENTIALS: &str = "credentials";

/// Runs a provider through the contract. Creates, changes and removes one external thing per sample.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// `HOST:PORT`, `https://HOST:PORT` or `unix:PATH`
    endpoint: String,
    /// YAML or JSON with sample objects; a second document of the same name is the change of the first
    #[arg(long, short)]
    file: Vec<PathBuf>,
    /// YAML or JSON with the ProviderConfig to act with
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// File with the credentials that the ProviderConfig stands for
    #[arg(long, value_name = "FILE", requires = "config_file")]
    credentials: Option<PathBuf>,
    /// Send credentials in clear to another machine
    #[arg(long)]
    insecure: bool,
    /// Speak this protocol rather than finding out
    #[arg(long)]
    protocol: Option<Speak>,
    /// Use TLS
    #[arg(long)]
    tls: bool,
    /// Folder with ca.crt, and tls.crt and tls.key for mutual TLS
    #[arg(long)]
    cert_dir: Option<PathBuf>,
    /// Seconds that one call may take
    #[arg(long, default_value_t = 60)]
    timeout: u64,
    /// Seconds that a thing may take to appear or to go
    #[arg(long, default_value_t = 60)]
    patience: u64,
    /// How to print the report
    #[arg(long, short, default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Speak {
    V1,
    V1alpha1,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let endpoint = Endpoint {
        insecure: arguments.insecure,
        use_tls: arguments.tls || arguments.cert_dir.is_some(),
        tls: arguments.cert_dir.map_or_else(Tls::system, Tls::folder),
        protocol: arguments.protocol.map(|it| match it {
            Speak::V1 => Protocol::V1,
            Speak::V1alpha1 => Protocol::V1Alpha1,
        }),
        ..Endpoint::new(arguments.endpoint)
    };
    let client = client::connect(endpoint)?;
    let mut options = Options::new(format!("check-{}", started()));
    options.timeout = Duration::from_secs(arguments.timeout);
    options.patience = Duration::from_secs(arguments.patience);
    if let Some(file) = &arguments.config_file {
        options.configuration = Some(account(file, arguments.credentials.as_deref())?);
    }
    for file in &arguments.file {
        let text = String::from_utf8(read(file)?).with_context(|| file.display().to_string())?;
        options.samples.extend(check::read_samples(&text).with_context(|| file.display().to_string())?);
    }
    let report = check::run(&client, &options).await;
    let text = match arguments.output {
        Output::Text => report.to_string(),
        Output::Json => report.to_json().to_string(),
    };
    writeln!(std::io::stdout(), "{text}")?;
    Ok(if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The account that a ProviderConfig and its credentials are.
fn account(file: &Path, credentials: Option<&Path>) -> anyhow::Result<Arc<Configuration>> {
    let text = String::from_utf8(read(file)?).with_context(|| file.display().to_string())?;
    let samples = check::read_samples(&text).with_context(|| file.display().to_string())?;
    let object = samples.into_iter().next().context("there is no ProviderConfig in it")?.object;
    let credentials = match credentials {
        Some(file) => Details::new().with(CREDENTIALS, read(file)?),
        None => Details::new(),
    };
    let name = object.key().map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?.to_string();
    Ok(Arc::new(Configuration { name, fingerprint: format!("check-{}", started()), object, credentials }))
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Tells two runs apart.
#[expect(clippy::disallowed_methods, reason = "a program of its own, without a clock that is handed in")]
fn started() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |it| it.as_secs())
}
