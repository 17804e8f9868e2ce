//! Texts of expressions as tokens.

use super::Fault;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    /// A name in backticks: a field, never a keyword or a function.
    Quoted(String),
    Int(i64),
    /// The one number whose sign decides whether it fits: 2^63.
    IntMinimum,
    Uint(u64),
    Double(f64),
    Text(String),
    Sign(&'static str),
    End,
}

/// Longer ones first.
const SIGNS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")",
    "[", "]", "{", "}", "@",
];

pub(super) fn tokens(source: &str) -> Result<Vec<Token>, Fault> {
    let mut rest = source;
    let mut tokens = Vec::new();
    loop {
        rest = skip(rest);
        let Some(first) = rest.chars().next() else { break };
        let (token, after) = if first.is_ascii_digit() || starts_with_point(rest) {
            number(rest)?
        } else if let Some(found) = text(rest)? {
            found
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            (Token::Name(rest[..end].to_owned()), &rest[end..])
        } else if first == '`' {
            let end = rest[1..].find('`').ok_or_else(|| Fault::error("a backtick is not closed"))?;
            (Token::Quoted(rest[1..=end].to_owned()), &rest[end + 2..])
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| Fault::error(format!("unexpected character {first:?}")))?;
            (Token::Sign(sign), &rest[sign.len()..])
        };
        tokens.push(token);
        rest = after;
    }
    tokens.push(Token::End);
    Ok(tokens)
}

fn skip(mut rest: &str) -> &str {
    loop {
        rest = rest.trim_start();
        match rest.strip_prefix("//") {
            Some(comment) => rest = comment.find('\n').map_or("", |end| &comment[end..]),
            None => return rest,
        }
    }
}

fn starts_with_point(rest: &str) -> bool {
    let mut characters = rest.chars();
    characters.next() == Some('.') && characters.next().is_some_and(|c| c.is_ascii_digit())
}

fn number(rest: &str) -> Result<(Token, &str), Fault> {
    let bad = |text: &str| Fault::error(format!("invalid number {text}"));
    if let Some(hex) = rest.strip_prefix("0x").or(rest.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let value = u64::from_str_radix(&hex[..end], 16).map_err(|_| bad(&hex[..end]))?;
        return whole(value, &hex[end..]).ok_or_else(|| bad(&hex[..end]));
    }
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut end = digits(rest);
    let mut is_double = false;
    if starts_with_point(&rest[end..]) {
        is_double = true;
        end += 1 + digits(&rest[end + 1..]);
    }
    if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let length = digits(&exponent[sign..]);
        if length > 0 {
            is_double = true;
            end += 1 + sign + length;
        }
    }
    let (text, after) = rest.split_at(end);
    if is_double {
        return Ok((Token::Double(text.parse().map_err(|_| bad(text))?), after));
    }
    whole(text.parse().map_err(|_| bad(text))?, after).ok_or_else(|| bad(text))
}

fn whole(value: u64, after: &str) -> Option<(Token, &str)> {
    if let Some(after) = after.strip_prefix(['u', 'U']) {
        return Some((Token::Uint(value), after));
    }
    match i64::try_from(value) {
        Ok(value) => Some((Token::Int(value), after)),
        Err(_) if value == 1 << 63 => Some((Token::IntMinimum, after)),
        Err(_) => None,
    }
}

/// A text literal, if there is one: `'…'`, `"…"`, three quotes, with `r` in front for one without escapes.
fn text(rest: &str) -> Result<Option<(Token, &str)>, Fault> {
    let raw = rest.strip_prefix(['r', 'R']).filter(|after| after.starts_with(['\'', '"']));
    let body = raw.unwrap_or(rest);
    if rest.starts_with(['b', 'B']) && rest[1..].starts_with(['\'', '"']) {
        return Err(Fault::error("bytes are not supported"));
    }
    let quotes = ["'''", "\"\"\"", "'", "\""];
    let Some(quote) = quotes.into_iter().find(|quote| body.starts_with(quote)) else { return Ok(None) };
    let inner = &body[quote.len()..];
    let mut found = String::new();
    let mut at = 0;
    while at < inner.len() {
        let here = &inner[at..];
        if let Some(after) = here.strip_prefix(quote) {
            return Ok(Some((Token::Text(found), after)));
        }
        let Some(character) = here.chars().next() else { break };
        if character == '\\' && raw.is_none() {
            let (escaped, length) = escape(&here[1..])?;
            found.push(escaped);
            at += 1 + length;
        } else {
            found.push(character);
            at += character.len_utf8();
        }
    }
    Err(Fault::error("a text is not closed"))
}

/// The character after a backslash, and how many bytes say it.
fn escape(rest: &str) -> Result<(char, usize), Fault> {
    let bad = || Fault::error("invalid escape in a text");
    let code = |from: usize, length: usize, radix: u32| {
        let digits = rest.get(from..from + length).ok_or_else(bad)?;
        let code = u32::from_str_radix(digits, radix).map_err(|_| bad())?;
        Ok((char::from_u32(code).ok_or_else(bad)?, from + length))
    };
    match rest.chars().next().ok_or_else(bad)? {
        'n' => Ok(('\n', 1)),
        't' => Ok(('\t', 1)),
        'r' => Ok(('\r', 1)),
        'a' => Ok(('\u{7}', 1)),
        'b' => Ok(('\u{8}', 1)),
        'f' => Ok(('\u{c}', 1)),
        'v' => Ok(('\u{b}', 1)),
        same @ ('\\' | '\'' | '"' | '`' | '?') => Ok((same, 1)),
        'x' | 'X' => code(1, 2, 16),
        'u' => code(1, 4, 16),
        'U' => code(1, 8, 16),
        '0'..='3' => code(0, 3, 8),
        _ => Err(bad()),
    }
}
