//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use concert_model::duration;
use concert_provider::Protocol;

use crate::cloud::{Quota, Settings};

/// A provider with a simulated cloud behind it.
///
/// Prints the addresses it listens on as one line of JSON, then serves until it is told to stop.
/// Durations are written as 250ms, 5s or 1m30s.
#[derive(Debug, Parser)]
#[command(name = "concert-provider-example")]
pub struct Flags {
    /// Where to serve the provider; port 0 for any.
    #[arg(long, default_value = "127.0.0.1:50051")]
    pub address: String,
    /// Where to serve the cloud itself and the way to change it; port 0 for any. There is no
    /// authentication, so it must be a loopback address.
    #[arg(long, value_parser = loopback)]
    pub control: Option<SocketAddr>,
    /// File to keep the truth in: every create, update and delete. Read at start.
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// How long a call of the cloud takes.
    #[arg(long, value_parser = duration::parse, default_value = "0s")]
    pub latency: Duration,
    /// How long a new thing stays invisible.
    #[arg(long, value_parser = duration::parse, default_value = "0s")]
    pub visible_after: Duration,
    /// How long reads show what was before an update. As --visible-after where it is left out.
    #[arg(long, value_parser = duration::parse)]
    pub stale_for: Option<Duration>,
    /// How long a new thing is being made.
    #[arg(long, value_parser = duration::parse, default_value = "0s")]
    pub ready_after: Duration,
    /// Calls per second that an account may make, or RATE/BURST.
    #[arg(long, value_parser = quota)]
    pub quota: Option<Quota>,
    /// The share of calls that fail before they have any effect, from 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    pub error_rate: f64,
    /// The share of changes that happen while the answer is lost, from 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    pub lost_answers: f64,
    /// Makes ids, errors and losses come out the same every time.
    #[arg(long)]
    pub seed: Option<u64>,
    /// What to speak.
    #[arg(long, value_enum, default_value_t = Speaks::Both)]
    pub protocol: Speaks,
    /// How long to say that a new thing may stay invisible. Nothing is said where it is left out.
    #[arg(long, value_parser = duration::parse)]
    pub creation_grace: Option<Duration>,
    /// Serve the managed kinds too that portable claims are bound to.
    #[arg(long)]
    pub claims: bool,
    /// How long calls under way may take after the process was told to stop.
    #[arg(long, value_parser = duration::parse, default_value = "30s")]
    pub drain: Duration,
}

/// What the provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Speaks {
    /// `concert.provider.v1`.
    V1,
    /// `external.proto.v1alpha1`.
    #[value(name = "v1alpha1")]
    V1Alpha1,
    /// Either.
    Both,
}

impl Speaks {
    /// As the server wants it.
    pub fn protocols(self) -> &'static [Protocol] {
        match self {
            Self::V1 => &[Protocol::V1],
            Self::V1Alpha1 => &[Protocol::V1Alpha1],
            Self::Both => &[Protocol::V1, Protocol::V1Alpha1],
        }
    }
}

impl Flags {
    /// How the cloud is to behave.
    ///
    /// # Errors
    /// Names what is out of range.
    pub fn settings(&self) -> Result<Settings, String> {
        let settings = Settings {
            latency: self.latency,
            visible_after: self.visible_after,
            stale_for: self.stale_for.unwrap_or(self.visible_after),
            ready_after: self.ready_after,
            quota: self.quota,
            error_rate: self.error_rate,
            lost_answers: self.lost_answers,
        };
        settings.check()?;
        Ok(settings)
    }
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "must be ADDRESS:PORT".to_owned())?;
    if address.ip().is_loopback() { Ok(address) } else { Err("must be a loopback address".to_owned()) }
}

fn quota(text: &str) -> Result<Quota, String> {
    const RULE: &str = "must be RATE or RATE/BURST";
    let (rate, burst) = text.split_once('/').unwrap_or((text, ""));
    let per_second: f64 = rate.parse().map_err(|_| RULE)?;
    let burst = match burst {
        // A second's worth, as most clouds have it.
        "" => (per_second.ceil() as u32).max(1),
        burst => burst.parse().map_err(|_| RULE)?,
    };
    let quota = Quota { per_second, burst };
    quota.check()?;
    Ok(quota)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(flags: &[&str]) -> Result<Flags, clap::Error> {
        Flags::try_parse_from(["example"].iter().chain(flags))
    }

    #[test]
    fn staleness_follows_visibility_unless_it_is_given() {
        let settings = |flags: &[&str]| parse(flags).unwrap().settings().unwrap();
        assert_eq!(settings(&["--visible-after", "5s"]).stale_for, Duration::from_secs(5));
        assert_eq!(settings(&["--visible-after", "5s", "--stale-for", "0s"]).stale_for, Duration::ZERO);
    }

    #[test]
    fn quotas_are_a_rate_with_or_without_a_burst() {
        let quota = |text| parse(&["--quota", text]).unwrap().quota.unwrap();
        assert_eq!(quota("10"), Quota { per_second: 10.0, burst: 10 });
        assert_eq!(quota("0.5/3"), Quota { per_second: 0.5, burst: 3 });
    }

    #[test]
    fn bad_values_are_refused() {
        for flags in [
            ["--quota", "0"],
            ["--quota", "many"],
            ["--control", "0.0.0.0:0"],
            ["--control", "localhost"],
            ["--latency", "5"],
            ["--protocol", "v2"],
        ] {
            assert!(parse(&flags).is_err(), "{flags:?}");
        }
        assert!(parse(&["--error-rate", "2"]).unwrap().settings().is_err());
    }
}
