//! Syntax of names, label keys and label values, as Kubernetes defines it.
//!
//! Each check answers with the sentence that tells a user what would be right.

/// Longest DNS label, and longest name part of a label key (RFC 1123).
pub const LABEL_BYTES_MAX: usize = 63;
/// Longest DNS subdomain, and so the longest object name (RFC 1123).
pub const SUBDOMAIN_BYTES_MAX: usize = 253;

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SyntaxError(pub &'static str);

const LABEL_RULE: SyntaxError = SyntaxError(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
     and end with an alphanumeric character",
);
const LABEL_LENGTH: SyntaxError = SyntaxError("must be no more than 63 bytes");
const SUBDOMAIN_RULE: SyntaxError = SyntaxError(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
     must start and end with an alphanumeric character",
);
const SUBDOMAIN_LENGTH: SyntaxError = SyntaxError("must be no more than 253 bytes");
const QUALIFIED_RULE: SyntaxError = SyntaxError(
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', must start and end with an \
     alphanumeric character, and may have a DNS subdomain prefix and '/' (e.g. 'example.com/my-name')",
);
const VALUE_RULE: SyntaxError = SyntaxError(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
     start and end with an alphanumeric character",
);
const EMPTY: SyntaxError = SyntaxError("must not be empty");

/// A DNS label: what namespaces are called.
pub fn check_label(text: &str) -> Result<(), SyntaxError> {
    if text.is_empty() {
        return Err(EMPTY);
    }
    if text.len() > LABEL_BYTES_MAX {
        return Err(LABEL_LENGTH);
    }
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    ok_if(text.bytes().all(inside) && has_alphanumeric_ends(text), LABEL_RULE)
}

/// A DNS subdomain: what most objects are called.
pub fn check_subdomain(text: &str) -> Result<(), SyntaxError> {
    if text.is_empty() {
        return Err(EMPTY);
    }
    if text.len() > SUBDOMAIN_BYTES_MAX {
        return Err(SUBDOMAIN_LENGTH);
    }
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let part = |p: &str| !p.is_empty() && p.bytes().all(inside) && has_alphanumeric_ends(p);
    ok_if(text.split('.').all(part), SUBDOMAIN_RULE)
}

/// A label or annotation key, or a finalizer: `name` or `domain/name`.
pub fn check_qualified(text: &str) -> Result<(), SyntaxError> {
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, name)) => {
            check_subdomain(prefix)?;
            name
        }
    };
    if name.is_empty() {
        return Err(EMPTY);
    }
    if name.len() > LABEL_BYTES_MAX {
        return Err(LABEL_LENGTH);
    }
    ok_if(name.bytes().all(is_value_byte) && has_alphanumeric_ends(name), QUALIFIED_RULE)
}

/// The value of a label; may be empty.
pub fn check_label_value(text: &str) -> Result<(), SyntaxError> {
    if text.len() > LABEL_BYTES_MAX {
        return Err(LABEL_LENGTH);
    }
    let well_formed = text.bytes().all(is_value_byte) && has_alphanumeric_ends(text);
    ok_if(text.is_empty() || well_formed, VALUE_RULE)
}

/// A version of an API: `v1`, `v1beta2`, `v2024`; a DNS label in general.
pub fn check_version(text: &str) -> Result<(), SyntaxError> {
    check_label(text)
}

fn ok_if(good: bool, error: SyntaxError) -> Result<(), SyntaxError> {
    if good { Ok(()) } else { Err(error) }
}

fn is_value_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
}

fn has_alphanumeric_ends(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|b| b.is_some_and(|b| b.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_lower_case_and_start_and_end_well() {
        for good in ["a", "a-b", "0", &"a".repeat(63)] {
            assert_eq!(check_label(good), Ok(()), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ä", &"a".repeat(64)] {
            assert!(check_label(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn subdomains_are_labels_joined_by_dots() {
        for good in ["a", "a.b", "widgets.example.com"] {
            assert_eq!(check_subdomain(good), Ok(()), "{good}");
        }
        for bad in ["", ".", "a.", ".a", "a..b", "A.b", "a/b", &"a".repeat(254)] {
            assert!(check_subdomain(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn qualified_names_may_have_a_domain() {
        for good in ["a", "A_b.c", "example.com/my-name"] {
            assert_eq!(check_qualified(good), Ok(()), "{good}");
        }
        for bad in ["", "/a", "a/", "Example.com/a", "a/b/c", "-a", &"a".repeat(64)] {
            assert!(check_qualified(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn label_values_may_be_empty() {
        for good in ["", "a", "A_b.c-d"] {
            assert_eq!(check_label_value(good), Ok(()), "{good}");
        }
        for bad in ["-", "a b", "a/b", &"a".repeat(64)] {
            assert!(check_label_value(bad).is_err(), "{bad}");
        }
    }
}
