//! Values as Python writes them: `repr` in messages, and `json.dumps` where bytes are hashed.

use serde_json::{Number, Value};

/// A value as `repr` shows it.
pub fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_repr(&mut out, value);
    out
}

/// A value as `json.dumps(value, sort_keys=True)` writes it, byte for byte.
pub fn dumps(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_repr(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => out.push_str(&digits(number)),
        Value::String(text) => quote(out, text),
        Value::Array(items) => {
            enclose(out, ('[', ']'), items.iter(), write_repr);
        }
        Value::Object(fields) => enclose(out, ('{', '}'), fields.iter(), |out, (name, value)| {
            quote(out, name);
            out.push_str(": ");
            write_repr(out, value);
        }),
    }
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&digits(number)),
        Value::String(text) => escape(out, text),
        Value::Array(items) => {
            enclose(out, ('[', ']'), items.iter(), write_json);
        }
        // The map keeps its keys in the order of their bytes, which is that of their code points.
        Value::Object(fields) => enclose(out, ('{', '}'), fields.iter(), |out, (name, value)| {
            escape(out, name);
            out.push_str(": ");
            write_json(out, value);
        }),
    }
}

fn enclose<T>(
    out: &mut String,
    (open, close): (char, char),
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write(out, item);
    }
    out.push(close);
}

/// A number as `repr` writes it: the fewest digits that read back, with an exponent of two digits below
/// 1e-4 and from 1e16 on.
fn digits(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let written = format!("{float:e}");
    let Some((mantissa, exponent)) = written.split_once('e') else { return written };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        let plain = float.to_string();
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A text in the quotes that it does not contain.
fn quote(out: &mut String, text: &str) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(mark);
}

/// A text as JSON in ASCII.
fn escape(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='\u{7f}' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_quoted_as_python_quotes_them() {
        for (text, expected) in [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("\"", "'\"'"),
            ("'\"", "'\\'\"'"),
            ("a\n\\ä\u{7}", "'a\\n\\\\ä\\x07'"),
        ] {
            assert_eq!(repr(&json!(text)), expected);
        }
        assert_eq!(repr(&json!({"a": [null, true, false]})), "{'a': [None, True, False]}");
    }

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        for (number, expected) in [
            ("1", "1"),
            ("1.0", "1.0"),
            ("-0.0", "-0.0"),
            ("1.5", "1.5"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("1.5e-7", "1.5e-07"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e100", "1e+100"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            assert_eq!(dumps(&serde_json::from_str(number).unwrap()), expected);
        }
    }

    #[test]
    fn hashed_text_is_sorted_spaced_and_ascii() {
        let spec = json!({"b": [1, 2.5, "ä😀\u{7f}\u{1}"], "a": {"y": null, "x": true}, "Z": "/\"\\"});
        let expected =
            r#"{"Z": "/\"\\", "a": {"x": true, "y": null}, "b": [1, 2.5, "\u00e4\ud83d\ude00DEL\u0001"]}"#;
        assert_eq!(dumps(&spec), expected.replace("DEL", "\u{7f}"));
        assert_eq!(dumps(&json!({})), "{}");
    }
}
