//! Durations as Go writes them: `1m0s`, `300ms`, `1.5h`.
//!
//! Annotations and flags that come from that world are spelt so, and must mean the same here.

use std::fmt::Write as _;
use std::time::Duration;

use crate::name::SyntaxError;

const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// Reads a duration that is not negative.
///
/// # Errors
/// Says what a duration looks like.
pub fn parse(text: &str) -> Result<Duration, SyntaxError> {
    const RULE: SyntaxError = SyntaxError("must be a duration such as 90s, 1m30s or 500ms");
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut nanos = 0.0;
    if rest.is_empty() {
        return Err(RULE);
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(RULE)?;
        let number: f64 = rest[..end].parse().map_err(|_| RULE)?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..end]).ok_or(RULE)?;
        nanos += number * unit;
        rest = &rest[end..];
    }
    // What Go can hold: 2^63 - 1 nanoseconds, some 292 years.
    if nanos > i64::MAX as f64 { Err(RULE) } else { Ok(Duration::from_nanos(nanos.round() as u64)) }
}

/// Writes a duration as Go does.
pub fn format(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".into();
    }
    if nanos < 1_000_000_000 {
        let (unit, size) = match nanos {
            0..1_000 => ("ns", 1.0),
            1_000..1_000_000 => ("µs", 1e3),
            _ => ("ms", 1e6),
        };
        return format!("{}{unit}", nanos as f64 / size);
    }
    let (seconds, fraction) = (duration.as_secs(), duration.subsec_nanos());
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = String::new();
    if hours > 0 {
        let _ = write!(text, "{hours}h");
    }
    if hours > 0 || minutes > 0 {
        let _ = write!(text, "{minutes}m");
    }
    let mut seconds = seconds.to_string();
    if fraction > 0 {
        seconds.push('.');
        seconds.push_str(format!("{fraction:09}").trim_end_matches('0'));
    }
    text + &seconds + "s"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_writes() {
        for (text, millis) in [
            ("1m0s", 60_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            ("300ms", 300),
            ("0", 0),
            ("0s", 0),
            ("+2s", 2_000),
            (".5s", 500),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "1", "-1s", "s", "1x", "1m 2s", "1..2s", "9999999h", "one"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn writes_what_go_writes() {
        for text in ["0s", "1m0s", "1h0m0s", "2h3m4.5s", "1.5s", "300ms", "1.5ms", "7ns", "10µs"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
    }
}
