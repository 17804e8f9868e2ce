//! The map and the house: `ARCHITECTURE.md` has one heading for each crate, and no others.

use std::collections::BTreeSet;

use crate::{Tree, links, tree};

const MAP: &str = "ARCHITECTURE.md";

/// Findings for crates without a heading, headings without a crate, and headings said twice.
#[must_use]
pub fn check(tree: &Tree) -> Vec<String> {
    let Some(text) = tree.text(MAP) else {
        return vec![format!("{MAP} does not exist")];
    };
    let packages: BTreeSet<&str> = tree.packages().into_iter().collect();
    let mut named = BTreeSet::new();
    let mut findings = Vec::new();
    for folder in headings(text) {
        if !named.insert(folder) {
            findings.push(format!("{MAP}: `{folder}` has two headings"));
        }
        if !packages.contains(folder) {
            findings.push(format!("{MAP}: the heading `{folder}` names no crate that exists"));
        }
    }
    for folder in packages.difference(&named) {
        findings.push(format!("{MAP}: a heading \"### `{folder}`\" is missing"));
    }
    findings
}

/// The folders in headings of the form "### `crates/NAME`", "### `providers/NAME`" and "### `bench`".
fn headings(text: &str) -> impl Iterator<Item = &str> {
    links::outside_fences(text)
        .filter_map(|(_, line)| line.strip_prefix("### `")?.trim_end().strip_suffix('`'))
        .filter(|folder| *folder == "bench" || tree::PARENTS.iter().any(|parent| folder.starts_with(parent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(map: &str) -> Vec<String> {
        check(&Tree::from([
            ("ARCHITECTURE.md", map),
            ("bench/Cargo.toml", ""),
            ("crates/model/Cargo.toml", ""),
        ]))
    }

    #[test]
    fn a_map_that_names_every_crate_once_passes() {
        assert_eq!(findings("# Map\n### `crates/model`\ntext\n### `bench`\n### Errors\n"), [""; 0]);
    }

    #[test]
    fn a_missing_heading_is_found() {
        assert_eq!(
            findings("### `crates/model`\n`bench` in passing"),
            ["ARCHITECTURE.md: a heading \"### `bench`\" is missing"]
        );
    }

    #[test]
    fn a_heading_for_a_crate_that_is_gone_or_still_planned_is_found() {
        assert_eq!(
            findings("### `crates/model`\n### `bench`\n### `crates/server`\n"),
            ["ARCHITECTURE.md: the heading `crates/server` names no crate that exists"]
        );
    }

    #[test]
    fn providers_have_headings_as_crates_have() {
        let tree = |map| Tree::from([("ARCHITECTURE.md", map), ("providers/example/Cargo.toml", "")]);
        assert_eq!(check(&tree("### `providers/example`\n")), [""; 0]);
        assert_eq!(check(&tree("")), ["ARCHITECTURE.md: a heading \"### `providers/example`\" is missing"]);
        assert_eq!(check(&tree("### `providers/example`\n### `providers/gone`\n")).len(), 1);
    }

    #[test]
    fn examples_that_are_packages_have_headings() {
        let tree = |map| Tree::from([("ARCHITECTURE.md", map), ("examples/fleet/Cargo.toml", "")]);
        assert_eq!(check(&tree("### `examples/fleet`\n")), [""; 0]);
        assert_eq!(check(&tree("")).len(), 1);
    }

    #[test]
    fn a_heading_said_twice_is_found() {
        assert_eq!(
            findings("### `crates/model`\n### `bench`\n### `bench`\n"),
            ["ARCHITECTURE.md: `bench` has two headings"]
        );
    }

    #[test]
    fn a_heading_inside_a_code_block_does_not_count() {
        assert_eq!(findings("### `crates/model`\n```\n### `bench`\n```\n").len(), 1);
    }

    #[test]
    fn no_map_at_all_is_found() {
        assert_eq!(check(&Tree::default()), ["ARCHITECTURE.md does not exist"]);
    }
}
