//! Words that must not be in any file.
//!
//! A path of somebody's machine works nowhere else. A note without a name for the problem is never
//! picked up. An ignored test is a test that cannot fail.

use crate::Tree;

/// This file lists the words, so it contains them.
const LIST: &str = "crates/tidy/src/words.rs";

/// Absolute folders that exist on one machine only.
const MACHINE_PATHS: &[&str] = &["/work/", "/root/", "/home/", "/Users/"];

/// Notes that must name the problem in parentheses: `TODO(watch-resume)`.
const NOTES: &[&str] = &["TODO", "FIXME"];

const IGNORED_TEST: &str = "#[ignore";

/// Findings for all text files.
#[must_use]
pub fn check(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| *path != LIST) {
        for (index, line) in text.lines().enumerate() {
            findings.extend(check_line(line).map(|it| format!("{path}:{}: {it}", index + 1)));
        }
    }
    findings
}

fn check_line(line: &str) -> Option<String> {
    let machine_path = MACHINE_PATHS.iter().find(|path| has_absolute(line, path));
    if let Some(path) = machine_path {
        return Some(format!("`{path}` is a folder of one machine"));
    }
    if let Some(note) = NOTES.iter().find(|note| has_unnamed(line, note)) {
        return Some(format!("a {note} needs a name for the problem: `{note}(name)`"));
    }
    line.contains(IGNORED_TEST).then(|| "an ignored test cannot fail: repair it or remove it".to_owned())
}

/// Whether `path` starts a path in `line`: `a/work/b` and `host/work/b` are something else.
fn has_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|it| !it.is_alphanumeric() && !"/.-_})>$*".contains(it))
    })
}

/// Whether `note` stands in `line` as a word of its own and without `(name)` after it.
fn has_unnamed(line: &str, note: &str) -> bool {
    line.match_indices(note).any(|(at, _)| {
        let is_word = |it: char| it.is_alphanumeric() || it == '_';
        let rest = &line[at + note.len()..];
        let inside_word = line[..at].ends_with(is_word) || rest.starts_with(is_word);
        let named = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        !inside_word && named.is_none_or(|(name, _)| name.trim().is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_lines_pass() {
        for line in [
            "see https://example.com/work/plan and crates/work/src",
            "let path = root.join(\"home/user\");",
            "cd ~/work && ls ${HOME}/work/x",
            "// TODO(watch-resume): keep the bookmark",
            "const TODOS: u8 = 1; // FIXMEs, mastodonTODO",
            "#[cfg(test)] // ignore",
        ] {
            assert_eq!(check_line(line), None, "{line}");
        }
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        for line in ["cd /work/main", "/root/.cargo", "open(\"/home/jo/x\")", "path=/Users/jo/x", "(/root/x)"]
        {
            assert!(check_line(line).is_some_and(|it| it.contains("one machine")), "{line}");
        }
    }

    #[test]
    fn notes_without_a_name_are_found() {
        for line in ["// TODO: later", "TODO", "# FIXME this", "// TODO() empty", "// TODO(a): ok, TODO: not"]
        {
            assert!(check_line(line).is_some_and(|it| it.contains("needs a name")), "{line}");
        }
    }

    #[test]
    fn ignored_tests_are_found() {
        for line in ["#[ignore]", "    #[ignore = \"slow\"]"] {
            assert!(check_line(line).is_some_and(|it| it.contains("cannot fail")), "{line}");
        }
    }

    #[test]
    fn a_finding_says_where() {
        let tree = Tree::from([("a.md", "fine\ncd /root/x\n"), (LIST, "/root/x")]);
        assert_eq!(check(&tree), ["a.md:2: `/root/` is a folder of one machine"]);
    }
}
