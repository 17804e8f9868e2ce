//! No drawers: a folder or module called `common` or `utils` says nothing about what is in it.
//!
//! Put the function where its noun lives.

use crate::{Tree, tokens};

const DRAWERS: &[&str] = &["common", "helper", "helpers", "misc", "util", "utils"];

/// Findings for folders, files of code and inline modules with such a name.
#[must_use]
pub fn check(tree: &Tree) -> Vec<String> {
    let mut findings: Vec<String> = Vec::new();
    for (path, text) in tree.files() {
        if let Some(name) = drawer_in(path) {
            findings.push(format!("{path}: `{name}` says nothing: name it after what is in it"));
        }
        if path.ends_with(".rs") {
            for module in tokens::modules(text).iter().filter(|it| DRAWERS.contains(&it.name.as_str())) {
                findings.push(format!("{path}: module `{}` says nothing", module.name));
            }
        }
    }
    findings
}

fn drawer_in(path: &str) -> Option<&str> {
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    folders.split('/').chain([stem]).find(|name| DRAWERS.contains(&name.to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_things_pass() {
        let tree = Tree::from([
            ("crates/engine/src/queue/mod.rs", "mod order;\nmod tests { use super::*; }"),
            ("crates/model/src/commonality.rs", "// utils, helpers and misc in prose are fine"),
            ("docs/guides/utilities.md", ""),
        ]);
        assert_eq!(check(&tree), [""; 0]);
    }

    #[test]
    fn drawers_are_found_as_folder_and_as_file() {
        for path in [
            "crates/common/Cargo.toml",
            "crates/api/src/utils/mod.rs",
            "crates/api/tests/common/mod.rs",
            "crates/api/src/helpers.rs",
            "sdk/python/concert/Misc.py",
            "scripts/util.sh",
        ] {
            assert_eq!(check(&Tree::from([(path, "")])).len(), 1, "{path}");
        }
    }

    #[test]
    fn drawers_are_found_as_modules() {
        let tree = Tree::from([("crates/api/src/lib.rs", "mod kube {\n    pub(crate) mod utils {}\n}")]);
        assert_eq!(check(&tree), ["crates/api/src/lib.rs: module `utils` says nothing"]);
    }
}
