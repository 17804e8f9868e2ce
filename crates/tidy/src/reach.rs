//! Every Rust file is part of a crate.
//!
//! A file that no `mod` line reaches compiles in nobody's build, so it rots and its tests never run.

use std::collections::BTreeSet;

use crate::Tree;
use crate::tokens::{self, Module};

/// Findings for the Rust files of every package that nothing reaches, and for `mod` lines without a
/// file.
#[must_use]
pub fn check(tree: &Tree) -> Vec<String> {
    tree.packages().into_iter().flat_map(|folder| check_package(tree, folder)).collect()
}

fn check_package(tree: &Tree, folder: &str) -> Vec<String> {
    let prefix = format!("{folder}/");
    let files: Vec<&str> =
        tree.ending(".rs").map(|(path, _)| path).filter(|path| path.starts_with(&prefix)).collect();
    let mut waiting: Vec<String> =
        files.iter().filter(|path| is_root(&path[prefix.len()..])).map(|path| (*path).to_owned()).collect();
    let roots: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut reached = BTreeSet::new();
    let mut findings = Vec::new();
    while let Some(path) = waiting.pop() {
        // A file may be reached twice, and one that includes itself must not go on forever.
        if !reached.insert(path.clone()) {
            continue;
        }
        let text = tree.text(&path).unwrap_or_default();
        for module in tokens::modules(text).into_iter().filter(|it| !it.inline) {
            let places = places(&path, roots.contains(&path), &module);
            match places.iter().find(|place| tree.text(place).is_some()) {
                Some(place) => waiting.push(place.clone()),
                None => findings.push(format!("{path}: `mod {};` has no file", module.name)),
            }
        }
    }
    let dead = files.into_iter().filter(|path| !reached.contains(*path));
    findings.extend(dead.map(|path| format!("{path}: no `mod` line reaches this file")));
    findings
}

/// Whether cargo takes the file, given by its path inside the package, for the root of a crate.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
        ["src", "bin", ref rest @ ..] | ["tests" | "benches" | "examples", ref rest @ ..] => {
            matches!(rest, [_] | [_, "main.rs"])
        }
        _ => false,
    }
}

/// Where the file of `module`, declared in `path`, may be.
fn places(path: &str, is_root: bool, module: &Module) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    // `queue/mod.rs` has its modules beside it; `queue.rs` has them in `queue/`.
    let own = if is_root || file == "mod.rs" {
        folder.to_owned()
    } else {
        format!("{folder}/{}", file.trim_end_matches(".rs"))
    };
    let around: String = module.inside.iter().map(|name| format!("/{name}")).collect();
    match &module.path {
        Some(given) if module.inside.is_empty() => vec![normal(&format!("{folder}/{given}"))],
        Some(given) => vec![normal(&format!("{own}{around}/{given}"))],
        None => ["", "/mod"].map(|end| format!("{own}{around}/{}{end}.rs", module.name)).into(),
    }
}

/// The path without `.` and `..`.
pub(crate) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
        let mut all = vec![("Cargo.toml", "")];
        all.extend(files);
        let named: Vec<(String, &str)> =
            all.into_iter().map(|(path, text)| (format!("crates/a/{path}"), text)).collect();
        let borrowed: Vec<(&str, &str)> = named.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        check(&borrowed.into_iter().collect())
    }

    #[test]
    fn files_that_are_reached_pass() {
        let tree = [
            ("src/lib.rs", "mod queue; #[path = \"odd/place.rs\"] mod odd; mod inline { mod deep; }"),
            ("src/queue/mod.rs", "mod order;\n#[cfg(test)]\nmod tests;"),
            ("src/queue/order.rs", "mod heap;"),
            ("src/queue/order/heap.rs", ""),
            ("src/queue/tests.rs", ""),
            ("src/odd/place.rs", ""),
            ("src/inline/deep.rs", ""),
        ];
        assert_eq!(findings(tree), [""; 0]);
    }

    #[test]
    fn roots_need_no_mod_line() {
        let tree = [
            ("build.rs", ""),
            ("src/main.rs", "mod cli;"),
            ("src/cli.rs", ""),
            ("src/bin/other.rs", "mod more;"),
            ("src/bin/more/mod.rs", ""),
            ("src/bin/big/main.rs", "mod part;"),
            ("src/bin/big/part.rs", ""),
            ("tests/one.rs", "mod support;"),
            ("tests/support/mod.rs", ""),
            ("benches/fast.rs", ""),
            ("examples/toy/main.rs", ""),
        ];
        assert_eq!(findings(tree), [""; 0]);
    }

    #[test]
    fn a_file_nothing_reaches_is_found() {
        let tree = [("src/lib.rs", "// mod dead;\nmod live;"), ("src/live.rs", ""), ("src/dead.rs", "")];
        assert_eq!(findings(tree), ["crates/a/src/dead.rs: no `mod` line reaches this file"]);
    }

    #[test]
    fn a_file_reached_only_from_a_dead_file_is_dead() {
        let tree = [("src/lib.rs", ""), ("src/x/mod.rs", "mod y;"), ("src/x/y.rs", "")];
        assert_eq!(findings(tree).len(), 2);
    }

    #[test]
    fn a_file_in_the_wrong_folder_is_found_with_its_mod_line() {
        let tree = [("src/lib.rs", "mod a;"), ("src/a.rs", "mod b;"), ("src/b.rs", "")];
        assert_eq!(
            findings(tree),
            ["crates/a/src/a.rs: `mod b;` has no file", "crates/a/src/b.rs: no `mod` line reaches this file"]
        );
    }

    #[test]
    fn a_file_below_tests_that_no_test_uses_is_found() {
        let tree = [("src/lib.rs", ""), ("tests/one.rs", ""), ("tests/support/mod.rs", "")];
        assert_eq!(findings(tree).len(), 1);
    }

    #[test]
    fn a_path_that_leads_back_ends() {
        let tree = [("src/lib.rs", "mod a;"), ("src/a.rs", "#[path = \"../src/a.rs\"] mod a;")];
        assert_eq!(findings(tree), [""; 0]);
    }
}
