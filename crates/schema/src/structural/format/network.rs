//! Formats of addresses and names in networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `192.0.2.1`.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
}

/// `2001:db8::1`, without a zone.
pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

/// `192.0.2.0/24` or `2001:db8::/32`; host bits may be set.
pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    if bits.len() > 3 || !bits.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    match (address.parse(), bits.parse::<u8>()) {
        (Ok(IpAddr::V4(_)), Ok(bits)) => bits <= 32,
        (Ok(IpAddr::V6(_)), Ok(bits)) => bits <= 128,
        _ => false,
    }
}

/// 6, 8 or 20 bytes in hexadecimal, in pairs with `:` or `-` or in fours with `.`.
pub(super) fn is_mac(text: &str) -> bool {
    let Some(separator) = text.chars().find(|character| matches!(character, ':' | '-' | '.')) else {
        return false;
    };
    let digits = if separator == '.' { 4 } else { 2 };
    let mut groups = 0;
    for group in text.split(separator) {
        if group.len() != digits || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        groups += 1;
    }
    matches!(groups * digits / 2, 6 | 8 | 20)
}

/// Labels of letters, digits and inner hyphens. Letters of any script will do.
pub(super) fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|character| character == '-' || character.is_alphanumeric())
    };
    // In a name with dots the last label has at least two characters.
    let last_is_fine = text.rsplit_once('.').is_none_or(|(_, last)| last.chars().count() >= 2);
    text.len() <= 255 && last_is_fine && text.split('.').all(is_label)
}

/// A name of at most 63 lower-case letters, digits and inner hyphens.
pub(super) fn is_short_name(text: &str) -> bool {
    text.len() <= 63 && is_name_part(text)
}

/// Short names with dots in between, 253 characters at most.
pub(super) fn is_long_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_name_part)
}

fn is_name_part(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// `a@example.com`, or with a name in front: `Ada <a@example.com>`.
pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    match text.strip_suffix('>') {
        None => is_address(text),
        Some(rest) => rest.split_once('<').is_some_and(|(name, address)| {
            !name.contains(['>', '@', ',', ';', '\n', '\r']) && is_address(address)
        }),
    }
}

fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    (is_dotted_atoms(local) || is_quoted(local)) && (is_dotted_atoms(domain) || is_domain_literal(domain))
}

fn is_dotted_atoms(text: &str) -> bool {
    let is_atom_character = |character: char| {
        character.is_ascii_alphanumeric()
            || "!#$%&'*+-/=?^_`{|}~".contains(character)
            || !character.is_ascii()
    };
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_character))
}

fn is_quoted(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let mut escaped = false;
    for character in inside.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return false,
            other if other.is_control() => return false,
            _ => {}
        }
    }
    !escaped && !inside.is_empty()
}

fn is_domain_literal(text: &str) -> bool {
    let inside = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inside.is_some_and(|inside| inside.strip_prefix("IPv6:").unwrap_or(inside).parse::<IpAddr>().is_ok())
}

/// A URI with a scheme, or an absolute path: what may stand in an HTTP request line.
pub(super) fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|character| character.is_ascii_control()) {
        return false;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split('?').next().unwrap_or_default();
    match (scheme, rest.strip_prefix("//")) {
        ("", _) => (rest == "*" || rest.starts_with('/')) && has_valid_escapes(rest),
        (_, Some(rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(authority) && has_valid_escapes(path)
        }
        (_, None) => !rest.starts_with('/') || has_valid_escapes(rest),
    }
}

/// The scheme, empty if there is none, and what is behind it. None for a colon without a scheme.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|character: char| !character.is_ascii_alphanumeric() && !"+-.".contains(character));
    match end {
        Some(0) if text.starts_with(':') => None,
        Some(end)
            if text[end..].starts_with(':')
                && text.starts_with(|first: char| first.is_ascii_alphabetic()) =>
        {
            Some((&text[..end], &text[end + 1..]))
        }
        _ => Some(("", text)),
    }
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    if !has_valid_escapes(user) || user.contains([' ', '/', '[', ']', '<', '>', '"']) {
        return false;
    }
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            let address = address.split('%').next().unwrap_or_default();
            return is_ipv6(address) && is_port(port);
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    is_port(port)
        && has_valid_escapes(name)
        && !name.contains([' ', '<', '>', '"', '^', '`', '{', '|', '}', '\\', '#'])
}

/// Nothing, or a colon and digits.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn has_valid_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|part| {
        let bytes = part.as_bytes();
        bytes.len() >= 2 && bytes[0].is_ascii_hexdigit() && bytes[1].is_ascii_hexdigit()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(accepts: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(accepts(text), "{text} should be accepted");
        }
        for text in bad {
            assert!(!accepts(text), "{text} should be refused");
        }
    }

    #[test]
    fn addresses_are_complete() {
        all(is_ipv4, &["192.0.2.1"], &["", "192.0.2", "192.0.2.256", "::1", "1.2.3.4 "]);
        all(is_ipv6, &["::1", "2001:db8::1"], &["", "192.0.2.1", "fe80::1%eth0", ":::"]);
        all(
            is_cidr,
            &["192.0.2.0/24", "10.0.0.1/0", "2001:db8::/128"],
            &["192.0.2.0", "192.0.2.0/33", "::/129", "192.0.2.0/+8", "192.0.2.0/", "/8"],
        );
    }

    #[test]
    fn a_mac_address_has_one_kind_of_separator() {
        all(
            is_mac,
            &["00:00:5e:00:53:01", "02-00-5E-10-00-00-00-01", "0000.5e00.5301"],
            &["", "00005e005301", "00:00:5e:00:53", "00:00-5e:00:53:01", "00:00:5e:00:53:0g"],
        );
    }

    #[test]
    fn a_hostname_has_proper_labels() {
        all(
            is_hostname,
            &["localhost", "a", "example.com", "a-b.example.com", "1.example.com", "bücher.example"],
            &["", ".", "-a.example", "a-.example", "a..b", "a_b", "example.c", "example.com."],
        );
        assert!(!is_hostname(&"a".repeat(64)));
        assert!(!is_hostname(&format!("{}com", "abcdefg.".repeat(32))));
    }

    #[test]
    fn names_of_objects_are_lower_case() {
        all(is_short_name, &["a", "a-1"], &["", "A", "a.b", "-a", "a-"]);
        all(is_long_name, &["a", "a.b-c"], &["", "a..b", "a.B"]);
    }

    #[test]
    fn an_email_address_may_have_a_name() {
        all(
            is_email,
            &[
                "a@example.com",
                "a.b+c@example",
                "Ada <a@example.com>",
                "\"a b\"@example.com",
                "a@[192.0.2.1]",
            ],
            &["", "a", "@example.com", "a@", "a..b@example.com", "a b@example.com", "<a@example.com", "\"@b"],
        );
    }

    #[test]
    fn a_uri_has_a_scheme_or_starts_with_a_slash() {
        all(
            is_uri,
            &[
                "https://example.com",
                "https://user:pw@example.com:8080/a%20b?q=1",
                "http://[::1]:80/",
                "/path",
                "mailto:a@example.com",
                "urn:isbn:0321751043",
            ],
            &[
                "",
                "example.com",
                "a/b",
                "://example.com",
                "http://example.com/%zz",
                "http://exa mple.com",
                "http://example.com:http",
                "http://[::1",
                "http://a\nb",
            ],
        );
    }
}
