//! Objects as JSON and YAML, harmless to a terminal.

use serde_json::Value;

use super::escape::is_harmful;

/// Pretty JSON in which no character can steer a terminal.
pub fn json(value: &Value) -> String {
    // A value can always be written.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut safe = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        // Outside strings there are no other control characters, and inside JSON has escapes for all.
        if character != '\n' && is_harmful(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(character);
        }
    }
    safe + "\n"
}

/// YAML; where that would need characters that can steer a terminal, JSON, which is YAML too.
pub fn yaml(value: &Value) -> String {
    match serde_saphyr::to_string(value) {
        Ok(text) if !text.chars().any(|it| it != '\n' && is_harmful(it)) => {
            if text.ends_with('\n') {
                text
            } else {
                text + "\n"
            }
        }
        _ => json(value),
    }
}

#[cfg(test)]
mod tests {
    use concert_server::managed::config::documents;
    use serde_json::json;

    use super::*;

    fn odd() -> Value {
        json!({"text": ["yes", "null", "1e3", "0x1f", " a", "a: b", "- x", "#c", "", "two\nlines\n", "'\"", "~",
            "2026-01-01", "1_000", "é", "x\u{2028}", "\u{1b}[31m", "\u{9b}31m", "tab\t", "!a", "&a", "*a", "%"],
            "number": [1, -2.5, 9_223_372_036_854_775_807_i64, 1e300], "empty": [{}, [], null, true]})
    }

    #[test]
    fn what_is_printed_reads_back_the_same() {
        for text in [json(&odd()), yaml(&odd())] {
            assert_eq!(documents(&text).unwrap(), [odd()], "{text}");
        }
        let every: Vec<Value> = odd()["text"].as_array().unwrap().clone();
        for value in every.into_iter().map(|it| json!({"a": [it.clone()], "b": it})) {
            let text = yaml(&value);
            assert_eq!(documents(&text).unwrap(), [value], "{text}");
        }
    }

    #[test]
    fn nothing_steers_the_terminal() {
        for text in [json(&odd()), yaml(&odd())] {
            assert!(!text.chars().any(|it| it != '\n' && is_harmful(it)), "{text:?}");
        }
    }
}
