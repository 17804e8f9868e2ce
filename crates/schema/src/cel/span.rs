//! Durations as CEL writes them: `1h30m`, `-1.5s`, `300ms`.

const UNITS: [(&str, i128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The nanoseconds that `text` stands for.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() || rest.len() > 64 {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let length = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == &after[..length])?;
        total = total.checked_add(scaled(number, unit)?)?;
        rest = &after[length..];
    }
    i64::try_from(sign * total).ok()
}

/// `number`, which may have a fraction, times `unit`.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let read = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i128>().ok() };
    let whole = read(whole)?.checked_mul(unit)?;
    let digits = &fraction[..fraction.len().min(12)];
    let part = read(digits)?.checked_mul(unit)? / 10_i128.pow(u32::try_from(digits.len()).ok()?);
    whole.checked_add(part)
}

/// As CEL prints durations: in seconds.
pub(super) fn print(nanoseconds: i64) -> String {
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    if rest == 0 {
        return format!("{seconds}s");
    }
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let fraction = format!("{:09}", rest.unsigned_abs());
    format!("{sign}{}.{}s", seconds.unsigned_abs(), fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, printed) in [
            ("1h30m", "5400s"),
            ("-1.5s", "-1.5s"),
            ("300ms", "0.3s"),
            ("0", "0s"),
            ("1m1ns", "60.000000001s"),
        ] {
            assert_eq!(print(parse(text).unwrap()), printed);
        }
        for text in ["", "1", "h", "1x", "1.h.", "é", "9999999999999h", ".s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
