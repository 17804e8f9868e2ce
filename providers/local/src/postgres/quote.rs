//! Names and texts in SQL that takes no parameters: all that creates, alters, grants and drops.

/// A name, whatever is in it.
pub(super) fn name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A text, whatever is in it. Holds for servers with either meaning of the backslash.
pub(super) fn text(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if doubled.contains('\\') {
        format!(" E'{}'", doubled.replace('\\', "\\\\"))
    } else {
        format!("'{doubled}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out() {
        assert_eq!(name(r#"a"; DROP DATABASE b; --"#), r#""a""; DROP DATABASE b; --""#);
        assert_eq!(text("it's"), "'it''s'");
        assert_eq!(text(r"\'; DROP"), r" E'\\''; DROP'");
    }
}
