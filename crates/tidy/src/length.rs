//! Source files stay short enough to be read.
//!
//! Most files land between 100 and 300 lines because one idea fits there. The limit is where a file
//! has certainly found a second noun.

use crate::Tree;

const LINES_MAX: usize = 600;

const SOURCES: &[&str] = &[".rs", ".py", ".sh", ".sql", ".proto", ".ts", ".tsx"];

/// Files that are one flat thing, such as a table, each with a comment that says which.
const EXCEPTIONS: &[&str] = &[];

/// Findings for files of code that are too long.
#[must_use]
pub fn check(tree: &Tree) -> Vec<String> {
    check_except(tree, EXCEPTIONS)
}

fn check_except(tree: &Tree, exceptions: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| SOURCES.iter().any(|end| path.ends_with(end))) {
        let lines = text.lines().count();
        if lines > LINES_MAX && !exceptions.contains(&path) {
            findings
                .push(format!("{path}: {lines} lines, at most {LINES_MAX}: look for the second noun in it"));
        }
    }
    for path in exceptions {
        if tree.text(path).is_none_or(|text| text.lines().count() <= LINES_MAX) {
            findings.push(format!("{path}: needs no exception from the length limit any more"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_at_the_limit_passes_and_one_past_it_is_found() {
        let limit = "line\n".repeat(LINES_MAX);
        let past = "line\n".repeat(LINES_MAX + 1);
        let tree = Tree::from([
            ("Cargo.lock", past.as_str()),
            ("crates/a/src/lib.rs", limit.as_str()),
            ("crates/b/src/lib.rs", past.as_str()),
        ]);
        assert_eq!(
            check(&tree),
            ["crates/b/src/lib.rs: 601 lines, at most 600: look for the second noun in it"]
        );
    }

    #[test]
    fn an_exception_holds_only_while_it_is_needed() {
        let past = "line\n".repeat(LINES_MAX + 1);
        let tree = Tree::from([("a.rs", past.as_str()), ("b.rs", "")]);
        assert_eq!(
            check_except(&tree, &["a.rs", "b.rs", "gone.rs"]),
            [
                "b.rs: needs no exception from the length limit any more",
                "gone.rs: needs no exception from the length limit any more"
            ]
        );
    }
}
