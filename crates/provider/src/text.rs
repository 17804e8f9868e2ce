//! Text from outside, made fit for logs, conditions and terminals.

/// Longest message that is passed on.
const MESSAGE_CHARS_MAX: usize = 1024;

/// `text` with control characters escaped and of bounded length.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len().min(MESSAGE_CHARS_MAX));
    for (index, character) in text.trim().chars().enumerate() {
        if index == MESSAGE_CHARS_MAX {
            clean.push('…');
            break;
        }
        if is_harmful(character) {
            clean.extend(character.escape_default());
        } else {
            clean.push(character);
        }
    }
    clean
}

/// Control characters, and those that make a terminal show text in another order than it is in.
fn is_harmful(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_length_is_bounded() {
        assert_eq!(clean(" a\x1b[31mb\nc\u{202e} "), "a\\u{1b}[31mb\\nc\\u{202e}");
        assert_eq!(clean(&"é".repeat(5000)).chars().count(), MESSAGE_CHARS_MAX + 1);
        assert_eq!(clean("größer"), "größer");
    }
}
