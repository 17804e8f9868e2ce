//! The format `quantity`: amounts of resources such as `10Gi`, `500m` and `1e3`.

/// A signed decimal number with a decimal exponent, a decimal suffix or a binary suffix.
pub(super) fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = unsigned.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, suffix) = unsigned.split_at(number);
    number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1 && is_suffix(suffix)
}

fn is_suffix(suffix: &str) -> bool {
    const SUFFIXES: [&str; 16] =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    SUFFIXES.contains(&suffix)
        || suffix.strip_prefix(['e', 'E']).is_some_and(|exponent| {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_has_a_known_suffix() {
        for text in ["0", "10Gi", "500m", "1.5", ".5", "5.", "-1k", "+1e3", "1E-3", "1E"] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", "Gi", "1 Gi", "1GB", "1.2.3", "1e", "1ee3", "0x10", "-"] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
