//! Text from outside must not steer a terminal.

/// `text` with control characters escaped, and those that make a terminal show text in another order
/// than it is in.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if is_harmful(character) {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

pub fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_but_text() {
        assert_eq!(plain("a\x1b[31mb\nc\u{202e}\u{9b}"), "a\\u{1b}[31mb\\nc\\u{202e}\\u{9b}");
        assert_eq!(plain("größer – 東京"), "größer – 東京");
    }
}
