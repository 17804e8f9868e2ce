//! Where the programs are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The program of this crate.
const OWN: &str = "concert-testbed";

/// The directory of the servers' programs, built first if need be. None if they cannot be built here;
/// the script has said why.
pub(crate) fn servers() -> Result<Option<PathBuf>> {
    built_by("scripts/testbed")
}

/// The program that renders a chart as Helm does: it is given the chart, a release and a namespace, and reads
/// values from stdin. None if it cannot be built here, which was said.
///
/// # Errors
/// It could be built and was not.
pub fn helm() -> Result<Option<PathBuf>> {
    built_by("scripts/helm")
}

/// What a script says on its last line that it has built, or had.
fn built_by(script: &str) -> Result<Option<PathBuf>> {
    let script = workspace().join(script);
    let mut command = Command::new(&script);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot run {}", script.display()))?;
    ensure!(output.status.success(), "{} failed: {}", script.display(), output.status);
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().last().map(PathBuf::from))
}

/// The program kubectl, for tests of servers that are none of ours to start. None if it cannot be built
/// here, which was said.
///
/// # Errors
/// It could be built and was not.
pub fn kubectl() -> Result<Option<PathBuf>> {
    Ok(servers()?.map(|folder| folder.join("kubectl")))
}

/// The clone that this runs in, which need not be the one it was built in: they may share their build cache.
pub fn workspace() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let is_root = |it: &&Path| it.join("Cargo.lock").exists() && it.join("scripts/testbed").exists();
    let built_in = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    here.ancestors().find(is_root).map_or_else(built_in, Path::to_owned)
}

/// The program of this crate. Whoever runs it has it: nothing needs to be built for that.
pub(crate) fn own() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    if this.file_stem().is_some_and(|it| it == OWN) { Ok(this) } else { program(OWN) }
}

/// A program of this workspace, by its name.
///
/// `CONCERT_PROGRAMS` names the folder where all of them have been built along with the tests. Without it
/// Cargo is asked to make sure that there is one and that it is of today: it builds no other package's
/// programs for the tests of one package.
///
/// # Errors
/// There is none, and it cannot be built.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests tells by a variable what is there")]
pub fn program(name: &str) -> Result<PathBuf> {
    match std::env::var_os("CONCERT_PROGRAMS") {
        Some(folder) => existing(PathBuf::from(folder).join(name)),
        None => build("--bin", name),
    }
}

/// The same for an example.
///
/// # Errors
/// There is none, and it cannot be built.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests tells by a variable what is there")]
pub fn example(name: &str) -> Result<PathBuf> {
    match std::env::var_os("CONCERT_PROGRAMS") {
        Some(folder) => existing(PathBuf::from(folder).join("examples").join(name)),
        None => build("--example", name),
    }
}

fn existing(path: PathBuf) -> Result<PathBuf> {
    ensure!(path.is_file(), "{} is not there, and CONCERT_PROGRAMS says that it is", path.display());
    Ok(path)
}

#[expect(clippy::disallowed_methods, reason = "what Cargo told this process is not meant for another Cargo")]
fn build(kind: &str, name: &str) -> Result<PathBuf> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Build scripts run again when these change, and they are different for each package.
    let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
    let is_ours = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_ours)) {
        command.env_remove(name);
    }
    command.args(["build", "--quiet", "--workspace", kind, name, "--message-format", "json"]);
    command.current_dir(workspace()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo cannot build {name}: {}", output.status);
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        if let Some(path) = message["executable"].as_str() {
            return Ok(path.into());
        }
    }
    bail!("cargo does not say where it put {name}")
}
