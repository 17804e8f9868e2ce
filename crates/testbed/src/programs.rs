//! Where the programs are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The directory of the servers' programs, built first if need be. None if they cannot be built here;
/// the script has said why.
pub(crate) fn servers() -> Result<Option<PathBuf>> {
    let script = workspace().join("scripts/testbed");
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
fn workspace() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let is_root = |it: &&Path| it.join("Cargo.lock").exists() && it.join("scripts/testbed").exists();
    let built_in = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    here.ancestors().find(is_root).map_or_else(built_in, Path::to_owned)
}

/// The program of this crate. Cargo builds it along with the whole workspace but not for the tests of
/// another crate alone, so it is asked to make sure.
#[expect(clippy::disallowed_methods, reason = "Cargo tells by its variables where it is")]
pub(crate) fn own() -> Result<PathBuf> {
    if let Some(cargo) = std::env::var_os("CARGO") {
        return build(Path::new(&cargo));
    }
    let test = std::env::current_exe()?;
    let beside = test.ancestors().skip(1).take(2).map(|folder| folder.join("concert-testbed"));
    let mut existing = beside.filter(|path| path.is_file());
    existing.next().context("run `cargo build -p concert-testbed` first: the servers need a parent")
}

#[expect(clippy::disallowed_methods, reason = "what Cargo told this process is not meant for another Cargo")]
fn build(cargo: &Path) -> Result<PathBuf> {
    let mut command = Command::new(cargo);
    // Build scripts run again when these change, and they are different for each package.
    let is_ours = |name: &str| {
        ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_ours)) {
        command.env_remove(name);
    }
    command.args(["build", "--quiet", "--package", "concert-testbed", "--bin", "concert-testbed"]);
    command.args(["--message-format", "json"]);
    command.current_dir(workspace()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo cannot build concert-testbed: {}", output.status);
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        if let Some(path) = message["executable"].as_str() {
            return Ok(path.into());
        }
    }
    bail!("cargo does not say where it put concert-testbed")
}
