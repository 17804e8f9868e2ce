//! Links in Markdown that lead to files of the repository lead somewhere.
//!
//! Only paths are checked: what is on other hosts changes without us, and a test must not need them.

use crate::Tree;

/// Findings for every relative link whose target is not in the tree.
#[must_use]
pub fn check(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".md") {
        for (line, target) in links(text) {
            let Some(file) = file_part(target) else { continue };
            match resolve(path, file) {
                Some(found) if tree.has(&found) => {}
                _ => findings.push(format!("{path}:{line}: the link to `{target}` leads nowhere")),
            }
        }
    }
    findings
}

/// The lines of a Markdown text that are not in fenced code, with their numbers from 1.
pub(crate) fn outside_fences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, None) => return Some((index + 1, line)),
            (None, Some(_)) => fence = mark,
            (Some(open), Some(close)) if open == close => fence = None,
            (Some(_), _) => {}
        }
        None
    })
}

/// Link targets with their line numbers: `[text](target)` and `[name]: target`.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in outside_fences(text) {
        let prose = outside_code(line);
        found.extend(prose.iter().flat_map(|part| inline_targets(part)).map(|target| (number, target)));
        found.extend(definition_target(line).map(|target| (number, target)));
    }
    found
}

/// A link's text is often code, as in [`name`](file), so only code before the `](` ends a part: the
/// pieces between code spans are kept apart, and each target lies within one piece.
fn outside_code(line: &str) -> Vec<&str> {
    line.split('`').step_by(2).collect()
}

fn inline_targets(part: &str) -> impl Iterator<Item = &str> {
    part.match_indices("](").filter_map(|(at, mark)| {
        let rest = &part[at + mark.len()..];
        rest.split_once(')').map(|(target, _)| without_title(target))
    })
}

fn definition_target(line: &str) -> Option<&str> {
    let (name, target) = line.strip_prefix('[')?.split_once("]:")?;
    (!name.contains(']')).then(|| without_title(target.trim()))
}

/// `path "Title"` and `<path>` both mean `path`.
fn without_title(target: &str) -> &str {
    let path = target.split_whitespace().next().unwrap_or_default();
    path.trim_start_matches('<').trim_end_matches('>')
}

/// The part of a target that is a file here, without the anchor; none for other hosts and for
/// anchors of the same page.
fn file_part(target: &str) -> Option<&str> {
    let file = target.split('#').next().unwrap_or_default();
    let elsewhere = file.contains("://") || file.starts_with("mailto:");
    (!file.is_empty() && !elsewhere).then_some(file)
}

/// The path from the root, or none if the link leaves the repository.
fn resolve(from: &str, link: &str) -> Option<String> {
    if link.starts_with('/') {
        return None;
    }
    let mut folders: Vec<&str> = from.split('/').collect();
    folders.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(folders.pop()?),
            name => folders.push(name),
        }
    }
    Some(folders.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        check(&Tree::from([
            ("docs/guides/start.md", text),
            ("docs/decisions/0001-workspace.md", ""),
            ("README.md", ""),
        ]))
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        for text in [
            "[one](../decisions/0001-workspace.md)",
            "[`one`](../decisions/0001-workspace.md#use \"Title\") and [two](../../README.md)",
            "[folder](../decisions/) [self](start.md) [root](../..)",
            "[there]: <../../README.md>",
        ] {
            assert_eq!(findings(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for text in [
            "[one](0001-workspace.md)",
            "[`one`](gone.md#anchor)",
            "[a](start.md) [b](gone.md)",
            "[there]: gone.md",
            "[outside](../../../README.md)",
            "[from the root](/README.md)",
        ] {
            assert_eq!(findings(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_finding_says_where() {
        assert_eq!(
            findings("\n[b](gone.md)"),
            ["docs/guides/start.md:2: the link to `gone.md` leads nowhere"]
        );
    }

    #[test]
    fn other_hosts_anchors_and_code_are_left_alone() {
        for text in [
            "[a](https://example.com/x.md) [b](mailto:someone@example.com) [c](#below)",
            "`[a](gone.md)`",
            "```\n[a](gone.md)\n```",
            "~~~\n```\n[a](gone.md)\n~~~",
        ] {
            assert_eq!(findings(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn text_after_a_code_block_is_checked_again() {
        assert_eq!(findings("```\ncode\n```\n[a](gone.md)").len(), 1);
    }
}
