//! Regular expressions with the meaning they have in Kubernetes.
//!
//! Schemas are written for Go's dialect. Ours is close but differs in a few places, where it would
//! accept more (`\d` is any Unicode digit) or refuse what Go takes (`[[]`, a literal `{`). Those are
//! rewritten before compiling; messages show the pattern as it was written.

use regex::{Regex, RegexBuilder};

/// Largest compiled pattern and largest cache of one, in bytes: a tenth of what the crate would allow.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// A compiled pattern. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: String,
    regex: Regex,
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("must be a regular expression that compiles to at most {COMPILED_BYTES_MAX} bytes")]
    TooLarge,
    #[error("must be a valid regular expression, but isn't: {0}")]
    Syntax(String),
}

impl Pattern {
    pub(crate) fn new(source: &str) -> Result<Self, Error> {
        let regex = RegexBuilder::new(&translate(source))
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => Error::TooLarge,
                other => Error::Syntax(last_line(&other.to_string())),
            })?;
        Ok(Self { source: source.to_owned(), regex })
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// How much more than a plain comparison it takes to try the pattern at one place, told from how
    /// large it is compiled; none when it is very large.
    pub(crate) fn effort(&self) -> Option<usize> {
        let source = translate(&self.source);
        let fits = |kib: &usize| RegexBuilder::new(&source).size_limit(kib << 10).build().is_ok();
        // A state takes about 32 bytes, and sixteen of them as long as one step.
        [2, 8, 32, 128].into_iter().find(fits).map(|kib| (kib << 10) / 32 / 16)
    }

    /// The pattern as it was written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }
}

/// A syntax error is a drawing of several lines; the last one says it in words.
fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ").to_owned()
}

/// Rewrites what means something else here than in Go.
fn translate(source: &str) -> String {
    let mut translated = String::with_capacity(source.len() + 16);
    let mut rest = source;
    let mut in_class = false;
    while let Some(character) = rest.chars().next() {
        let taken = match character {
            '\\' => escape(rest, in_class, &mut translated),
            '[' if !in_class => {
                in_class = true;
                open_class(rest, &mut translated)
            }
            '[' => bracket_in_class(rest, &mut translated),
            ']' if in_class => {
                in_class = false;
                copy(rest, 1, &mut translated)
            }
            // Doubled, these are set operations here and plain characters in Go.
            '&' | '~' | '-' if in_class && translated.ends_with(character) => {
                translated.push('\\');
                copy(rest, 1, &mut translated)
            }
            '{' if !in_class && !is_repetition(rest) => {
                translated.push('\\');
                copy(rest, 1, &mut translated)
            }
            other => copy(rest, other.len_utf8(), &mut translated),
        };
        rest = &rest[taken..];
    }
    translated
}

fn copy(rest: &str, bytes: usize, translated: &mut String) -> usize {
    translated.push_str(&rest[..bytes]);
    bytes
}

/// Copies an escape; the ASCII classes are spelled out, with their braces those of Unicode are not.
fn escape(rest: &str, in_class: bool, translated: &mut String) -> usize {
    let Some(escaped) = rest[1..].chars().next() else {
        return copy(rest, 1, translated);
    };
    let class = match escaped {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        'b' if !in_class => r"(?-u:\b)",
        'p' | 'P' | 'x' if rest[2..].starts_with('{') => {
            let end = rest.find('}').map_or(rest.len(), |end| end + 1);
            return copy(rest, end, translated);
        }
        _ => return copy(rest, 1 + escaped.len_utf8(), translated),
    };
    translated.push_str(class);
    2
}

/// Copies `[`, `[^` and a `]` right behind, which is a member and not the end.
fn open_class(rest: &str, translated: &mut String) -> usize {
    let mut taken = 1;
    if rest[taken..].starts_with('^') {
        taken += 1;
    }
    copy(rest, taken, translated);
    if rest[taken..].starts_with(']') {
        translated.push_str(r"\]");
        taken += 1;
    }
    taken
}

/// `[:alpha:]` is a class in both; any other bracket within brackets is a plain character in Go.
fn bracket_in_class(rest: &str, translated: &mut String) -> usize {
    if rest.starts_with("[:")
        && let Some(end) = rest.find(":]")
    {
        return copy(rest, end + 2, translated);
    }
    translated.push('\\');
    copy(rest, 1, translated)
}

/// True for `{2}`, `{2,}` and `{2,3}`.
fn is_repetition(rest: &str) -> bool {
    let Some(end) = rest.find('}') else { return false };
    let inside = &rest[1..end];
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    !low.is_empty() && low.bytes().chain(high.bytes()).all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().is_match(text)
    }

    #[test]
    fn digits_words_and_spaces_are_ascii() {
        assert!(matches(r"^\d+$", "42"));
        assert!(!matches(r"^\d+$", "٤٢"));
        assert!(matches(r"^[\w.]+$", "a_b.c"));
        assert!(!matches(r"^[\w.]+$", "é"));
        assert!(matches(r"^[^\s]+$", "\u{a0}"));
        assert!(matches(r"^\D\W\S$", "a-é"));
    }

    #[test]
    fn brackets_and_doubled_operators_in_a_class_are_plain_characters() {
        assert!(matches(r"^[[]$", "["));
        assert!(matches(r"^[]a]+$", "]a"));
        assert!(matches(r"^[^]]$", "a"));
        assert!(matches(r"^[a&&b]+$", "a&b"));
        assert!(matches(r"^[a~~]+$", "~a"));
        assert!(matches(r"^[[:alpha:]_]+$", "a_b"));
    }

    #[test]
    fn a_brace_that_repeats_nothing_is_a_plain_character() {
        assert!(matches(r"^{a}$", "{a}"));
        assert!(matches(r"^a{2,3}$", "aaa"));
        assert!(!matches(r"^a{2}$", "a"));
        assert!(matches(r"^\p{L}+$", "é"));
        assert!(matches(r"^\x{41}$", "A"));
    }

    #[test]
    fn a_pattern_is_not_anchored() {
        assert!(matches("b", "abc"));
        assert!(!matches("a$", "a\n"));
    }

    #[test]
    fn refuses_what_is_malformed_or_too_large() {
        assert!(matches!(Pattern::new("(").unwrap_err(), Error::Syntax(text) if text.contains("unclosed")));
        assert_eq!(Pattern::new(r"(\p{L}{1000}){1000}").unwrap_err(), Error::TooLarge);
        assert!(matches!(Pattern::new(r"a\").unwrap_err(), Error::Syntax(_)));
        assert!(matches!(Pattern::new(r"(?=a)").unwrap_err(), Error::Syntax(_)));
    }
}
