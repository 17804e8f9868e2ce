//! Logs go to standard error, as text or as JSON lines.

use anyhow::Context as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts to log.
///
/// # Errors
/// `level` is none.
pub fn start(level: &str, format: &str) -> anyhow::Result<()> {
    // A word that is no level would be taken for a module and log nothing.
    let is_known = |part: &str| part.rsplit('=').next().is_some_and(|it| it.parse::<LevelFilter>().is_ok());
    anyhow::ensure!(
        level.split(',').all(is_known),
        "--log-level: {level:?} must be a level such as info, or levels of modules such as info,concert_engine=debug"
    );
    let targets: Targets = level.parse().context("--log-level")?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let lines = if format == "json" { lines.json().flatten_event(true).boxed() } else { lines.boxed() };
    // Somebody who embeds this may log already.
    let _ = tracing_subscriber::registry().with(lines.with_filter(targets)).try_init();
    Ok(())
}
