//! Where the programs are that play along.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub use concert_testbed::workspace;

/// The reconcilers of this example.
pub fn fleet() -> &'static str {
    env!("CARGO_BIN_EXE_concert-fleet")
}

/// The control plane.
pub fn concert() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| concert_testbed::program("concert").unwrap())
}

/// The simulated cloud.
pub fn example_provider() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| concert_testbed::program("concert-provider-example").unwrap())
}

/// A Python with what the package needs. None where there can be none, which was said.
pub fn python() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let script = workspace().join("scripts/python");
        let output = Command::new(&script).stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "{} failed: {}", script.display(), output.status);
        String::from_utf8(output.stdout).unwrap().lines().last().map(PathBuf::from)
    };
    PROGRAM.get_or_init(find).as_deref()
}
