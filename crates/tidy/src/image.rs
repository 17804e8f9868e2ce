//! The image is built from a copy of a part of the tree: everything that the build reads must be in it.
//!
//! Nobody builds the image as often as the code, so a folder that is missing there would be found by
//! whoever wants to install a release.

use std::collections::BTreeSet;

use crate::reach::normal;
use crate::{Tree, tokens};

/// What the build reads besides packages, and what is said to read it.
const ALSO: [&str; 3] = ["Cargo.toml", "Cargo.lock", ".cargo/config.toml"];

/// Findings for the packages, and the files that sources include, that the image is built without.
#[must_use]
pub fn check(tree: &Tree) -> Vec<String> {
    let places = [(".dockerignore", let_through(tree)), ("Earthfile", copied(tree))];
    let wanted = wanted(tree);
    let mut findings = Vec::new();
    for (file, entries) in places.iter().filter(|(file, _)| tree.has(file)) {
        let is_in = |path: &str| {
            let is_it = |entry: &String| path == entry || path.starts_with(&format!("{entry}/"));
            entries.iter().any(is_it)
        };
        let missing = wanted.iter().filter(|(path, _)| !is_in(path));
        findings.extend(missing.map(|(path, why)| format!("{file}: lacks {path}, {why}")));
    }
    findings
}

/// What the build reads, and why.
fn wanted(tree: &Tree) -> BTreeSet<(String, String)> {
    let also = ALSO.iter().filter(|path| tree.has(path));
    let mut wanted: BTreeSet<(String, String)> =
        also.map(|path| ((*path).to_owned(), "which cargo reads".to_owned())).collect();
    for package in tree.packages() {
        wanted.insert((package.to_owned(), "which is a package".to_owned()));
    }
    for (path, text) in tree.ending(".rs") {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for file in tokens::includes(text) {
            wanted.insert((normal(&format!("{folder}/{file}")), format!("which {path} includes")));
        }
    }
    wanted
}

/// The exceptions of a `.dockerignore` that leaves out everything else.
fn let_through(tree: &Tree) -> Vec<String> {
    let lines = tree.text(".dockerignore").unwrap_or_default().lines();
    lines.filter_map(|line| line.strip_prefix('!')).map(str::to_owned).collect()
}

/// What the Earthfile copies into the build.
fn copied(tree: &Tree) -> Vec<String> {
    let lines = tree.text("Earthfile").unwrap_or_default().lines();
    let copies = lines.filter_map(|line| line.trim_start().strip_prefix("COPY --dir "));
    let words = |line: &str| {
        let (sources, _) = line.rsplit_once(' ').unwrap_or((line, ""));
        sources.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    copies.flat_map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "const A: &str = include_str!(\"../../../deploy/a.yaml\"); // include_str!(\"b\")";

    fn findings(ignore: &str, earth: &str) -> Vec<String> {
        check(&Tree::from([
            (".dockerignore", ignore),
            ("Earthfile", earth),
            ("Cargo.toml", ""),
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", SOURCE),
            ("deploy/a.yaml", ""),
        ]))
    }

    #[test]
    fn what_is_copied_whole_passes() {
        let earth = "build:\n    COPY --dir Cargo.toml crates deploy .\n";
        assert_eq!(findings("**\n!Cargo.toml\n!crates\n!deploy\n", earth), [""; 0]);
    }

    #[test]
    fn a_package_and_an_included_file_that_are_left_out_are_found() {
        let found = findings("**\n!Cargo.toml\n!crates\n", "    COPY --dir Cargo.toml deploy /src\n");
        assert_eq!(
            found,
            [
                ".dockerignore: lacks deploy/a.yaml, which crates/a/src/lib.rs includes",
                "Earthfile: lacks crates/a, which is a package"
            ]
        );
    }

    #[test]
    fn a_name_that_only_begins_the_same_is_another() {
        let found = findings("**\n!Cargo.toml\n!crate\n!deploy\n", "COPY --dir Cargo.toml crates deploy .");
        assert_eq!(found, [".dockerignore: lacks crates/a, which is a package"]);
    }
}
