//! Formats of codes: identifiers, encodings and numbers with check digits.

/// Standard base64 with padding. Kubernetes refuses the empty text, and so do we: a schema must not
/// accept here what it refuses there.
pub(super) fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - data.len() <= 2
        && data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// 24 hexadecimal digits.
pub(super) fn is_bson_object_id(text: &str) -> bool {
    text.len() == 24 && is_hex(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Any version; upper case is fine and the hyphens may be missing.
pub(super) fn is_uuid(text: &str) -> bool {
    uuid_digits(text).is_some()
}

/// Version 3.
pub(super) fn is_uuid3(text: &str) -> bool {
    uuid_digits(text).is_some_and(|digits| digits[12] == b'3')
}

/// Version 4.
pub(super) fn is_uuid4(text: &str) -> bool {
    uuid_digits(text).is_some_and(|digits| digits[12] == b'4' && is_variant(digits[16]))
}

/// Version 5.
pub(super) fn is_uuid5(text: &str) -> bool {
    uuid_digits(text).is_some_and(|digits| digits[12] == b'5' && is_variant(digits[16]))
}

fn is_variant(digit: u8) -> bool {
    matches!(digit, b'8' | b'9' | b'a' | b'b' | b'A' | b'B')
}

/// The 32 digits of a UUID whose hyphens, each optional, are in the right places.
fn uuid_digits(text: &str) -> Option<[u8; 32]> {
    let mut digits = [0; 32];
    let mut count = 0;
    let mut hyphen_seen = false;
    for byte in text.bytes() {
        if byte == b'-' && matches!(count, 8 | 12 | 16 | 20) && !hyphen_seen {
            hyphen_seen = true;
            continue;
        }
        if !byte.is_ascii_hexdigit() {
            return None;
        }
        *digits.get_mut(count)? = byte;
        count += 1;
        hyphen_seen = false;
    }
    (count == 32).then_some(digits)
}

/// ISBN of 10 or 13 digits.
pub(super) fn is_isbn(text: &str) -> bool {
    is_isbn10(text) || is_isbn13(text)
}

/// `0321751043`; hyphens and spaces are skipped.
pub(super) fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    let Some((last, first)) = digits.as_bytes().split_last() else { return false };
    if first.len() != 9 || !first.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let check = match last {
        b'X' => 10,
        digit if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    let sum: u32 = (1..).zip(first).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    (sum + 10 * check).is_multiple_of(11)
}

/// `978-0321751041`; hyphens and spaces are skipped.
pub(super) fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    if digits.len() != 13 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = weights.zip(digits.bytes()).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    sum.is_multiple_of(10)
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|character| !matches!(character, '-' | ' ')).collect()
}

/// The length of a card number with the right check digit; hyphens and spaces are skipped.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits = without_separators(text);
    (13..=16).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) && luhn(&digits)
}

/// Every second digit from the right is doubled; the sum of all digits ends in 0.
fn luhn(digits: &str) -> bool {
    let weights = [1, 2].into_iter().cycle();
    let sum: u32 = weights
        .zip(digits.bytes().rev())
        .map(|(weight, digit)| weight * u32::from(digit - b'0'))
        .map(|product| product / 10 + product % 10)
        .sum();
    sum.is_multiple_of(10)
}

/// `123-45-6789`; each separator may be a hyphen, a space or missing.
pub(super) fn is_ssn(text: &str) -> bool {
    let mut rest = text;
    for (index, length) in [3, 2, 4].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(['-', ' ']).unwrap_or(rest);
        }
        let Some((digits, behind)) = rest.split_at_checked(length) else { return false };
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

/// `#ffffff`, `#fff`, or without the hash.
pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

/// `rgb(255, 0, 10)`.
pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(inside) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let is_part = |part: &str| {
        let part = part.trim();
        !part.starts_with('+') && part.parse::<u8>().is_ok_and(|number| number.to_string() == part)
    };
    inside.split(',').count() == 3 && inside.split(',').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded_and_not_empty() {
        assert!(is_base64("aGVsbG8="));
        assert!(is_base64("+/+/"));
        for text in ["", "aGVsbG8", "a===", "aGVs bG8=", "_-_-", "====", "a=bc"] {
            assert!(!is_base64(text), "{text}");
        }
    }

    #[test]
    fn a_uuid_may_lack_hyphens_but_not_digits() {
        assert!(is_uuid("6BA7B810-9dad-11d1-80b4-00c04fd430c8"));
        assert!(is_uuid("6ba7b8109dad11d180b400c04fd430c8"));
        for text in ["", "6ba7b810-9dad-11d1-80b4-00c04fd430c", "6ba7b810--9dad-11d1-80b4-00c04fd430c8", "g"]
        {
            assert!(!is_uuid(text), "{text}");
        }
    }

    #[test]
    fn a_uuid_of_a_version_has_that_version() {
        assert!(is_uuid3("bcd02e22-68f0-3046-a512-327cca9def8f"));
        assert!(is_uuid4("025b0d74-00a2-4048-bf57-227c5111bb34"));
        assert!(is_uuid5("886313e1-3b8a-5372-9b90-0c9aee199e5d"));
        assert!(!is_uuid3("025b0d74-00a2-4048-bf57-227c5111bb34"));
        assert!(!is_uuid4("025b0d74-00a2-4048-1f57-227c5111bb34"));
        assert!(!is_uuid5("025b0d74-00a2-4048-bf57-227c5111bb34"));
    }

    #[test]
    fn check_digits_are_checked() {
        assert!(is_isbn("0321751043") && is_isbn("978-0321751041") && is_isbn10("080442957X"));
        assert!(!is_isbn("0321751044") && !is_isbn13("978-0321751042") && !is_isbn(""));
        assert!(is_credit_card("4111-1111-1111-1111"));
        assert!(!is_credit_card("4111-1111-1111-1112") && !is_credit_card("0"));
    }

    #[test]
    fn other_codes_have_their_form() {
        assert!(is_bson_object_id("507f1f77bcf86cd799439011") && !is_bson_object_id("507f"));
        assert!(is_ssn("111-11-1111") && is_ssn("111111111") && !is_ssn("1-1-1") && !is_ssn("1é1-11-1111"));
        assert!(is_hex_color("#FFFFFF") && is_hex_color("abc") && !is_hex_color("#ffff"));
        assert!(is_rgb_color("rgb(255, 0,10)") && !is_rgb_color("rgb(256,0,0)") && !is_rgb_color("rgb(1,2)"));
    }
}
