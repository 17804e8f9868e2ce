//! The command line.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use concert_model::duration;

/// A cloud on this machine: Redis servers, and databases in a PostgreSQL server, that one can connect to.
///
/// Prints the address it listens on as one line of JSON, then serves until it is told to stop. Redis servers
/// run on without it, and the next provider with the same data folder knows them again.
#[derive(Debug, Parser)]
#[command(name = "concert-provider-local", version)]
pub struct Flags {
    /// Where to serve the provider; port 0 for any
    #[arg(long, default_value = "127.0.0.1:50052")]
    pub address: String,
    /// Folder for all that outlives the provider: records and data of Redis servers, passwords
    #[arg(long, value_name = "FOLDER", default_value = "concert-local")]
    pub data_dir: PathBuf,
    /// The redis-server to start, by its path or to be found on the PATH
    #[arg(long, value_name = "PROGRAM", default_value = "redis-server")]
    pub redis_server: PathBuf,
    /// Ports for Redis servers that ask for none
    #[arg(long, value_name = "FIRST-LAST", value_parser = ports, default_value = "16379-17378")]
    pub redis_ports: RangeInclusive<u16>,
    /// Stop the Redis servers too when the provider is told to stop
    #[arg(long)]
    pub stop_instances: bool,
    /// How long calls under way may take after the provider was told to stop, as in 30s
    #[arg(long, value_parser = duration::parse, default_value = "30s")]
    pub drain: Duration,
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    const RULE: &str = "must be FIRST-LAST, both from 1024 to 65535";
    let (first, last) = text.split_once('-').ok_or(RULE)?;
    let port = |text: &str| text.parse::<u16>().ok().filter(|it| *it >= 1024).ok_or(RULE);
    let (first, last) = (port(first)?, port(last)?);
    if first > last { Err(RULE.to_owned()) } else { Ok(first..=last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_listens_on_loopback_unless_told_otherwise() {
        let flags = Flags::try_parse_from(["local"]).unwrap();
        assert!(flags.address.starts_with("127.0.0.1:"));
        assert!(!flags.stop_instances);
    }

    #[test]
    fn ports_are_a_range() {
        assert_eq!(ports("2000-2001").unwrap(), 2000..=2001);
        for text in ["", "2000", "2001-2000", "80-90", "2000-70000", "a-b"] {
            assert!(ports(text).is_err(), "{text}");
        }
    }
}
