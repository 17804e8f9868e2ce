//! Formats of time: `date`, `date-time` and `duration`.

/// `2006-01-02`, a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (number(text, 0, 4), number(text, 5, 2), number(text, 8, 2))
    else {
        return false;
    };
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// `2006-01-02T15:04:05.999Z` or with an offset, as RFC 3339 has it.
pub(super) fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    if !is_date(date) || time.len() < 9 || !is_clock(time.get(..8).unwrap_or_default()) {
        return false;
    }
    let rest = time.get(8..).unwrap_or_default();
    let rest = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|character: char| character.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
    };
    matches!(rest, "Z" | "z") || is_offset(rest)
}

/// `15:04:05`; a leap second counts.
fn is_clock(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 8
        && bytes[2] == b':'
        && bytes[5] == b':'
        && number(text, 0, 2).is_some_and(|hour| hour < 24)
        && number(text, 3, 2).is_some_and(|minute| minute < 60)
        && number(text, 6, 2).is_some_and(|second| second <= 60)
}

/// `+02:00`.
fn is_offset(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 6
        && matches!(bytes[0], b'+' | b'-')
        && bytes[3] == b':'
        && number(text, 1, 2).is_some_and(|hour| hour < 24)
        && number(text, 4, 2).is_some_and(|minute| minute < 60)
}

/// The number written with `length` digits at `start`.
fn number(text: &str, start: usize, length: usize) -> Option<u32> {
    let digits = text.get(start..start + length)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// `1h30m` as Go writes it, or `2 days` in words.
pub(super) fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_worded_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (amount, behind) = rest.split_at(digits);
        if amount.matches('.').count() > 1 || !amount.contains(|character: char| character.is_ascii_digit()) {
            return false;
        }
        // The longer units first: `ms` is not `m` and an `s`.
        const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
        let Some(behind) = UNITS.iter().find_map(|unit| behind.strip_prefix(unit)) else { return false };
        rest = behind;
    }
    !text.is_empty() && text.ends_with(['s', 'm', 'h'])
}

fn is_worded_duration(text: &str) -> bool {
    let mut rest = text.trim();
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let behind = rest[digits..].trim_start();
        let unit_bytes = behind.find(|character: char| !character.is_alphabetic()).unwrap_or(behind.len());
        if digits == 0 || !is_unit(&behind[..unit_bytes]) {
            return false;
        }
        rest = behind[unit_bytes..].trim_start();
    }
    true
}

fn is_unit(word: &str) -> bool {
    let singular = if word.len() > 2 { word.strip_suffix('s').unwrap_or(word) } else { word };
    matches!(
        singular,
        "ns" | "nano"
            | "nanosecond"
            | "us"
            | "µs"
            | "micro"
            | "microsecond"
            | "ms"
            | "milli"
            | "millisecond"
            | "s"
            | "sec"
            | "second"
            | "m"
            | "min"
            | "minute"
            | "h"
            | "hr"
            | "hour"
            | "d"
            | "day"
            | "w"
            | "wk"
            | "week"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_a_day_that_exists() {
        assert!(is_date("2024-02-29"));
        for text in
            ["2023-02-29", "2024-13-01", "2024-00-01", "2024-01-32", "2024-1-1", "2024-01-01T", "é024-01-1"]
        {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn a_date_time_has_a_zone() {
        for text in [
            "2014-12-15T19:30:20Z",
            "2014-12-15t19:30:20z",
            "2014-12-15T19:30:20.000Z",
            "2014-12-15T19:30:20.123456789+02:00",
        ] {
            assert!(is_date_time(text), "{text}");
        }
        for text in [
            "",
            "2014-12-15",
            "2014-12-15T19:30:20",
            "2014-12-15 19:30:20Z",
            "2014-12-15T24:00:00Z",
            "2014-12-15T19:30:20.Z",
            "2014-12-15T19:30:20+2:00",
            "2014-12-15T19:30:2éZ",
        ] {
            assert!(!is_date_time(text), "{text}");
        }
    }

    #[test]
    fn a_duration_is_written_as_in_go_or_in_words() {
        for text in
            ["0", "1h30m", "1.5h", "-10ms", "22 ns", "300µs", "2 days", "1 week 3 days", "5min", ".5s"]
        {
            assert!(is_duration(text), "{text}");
        }
        for text in ["", "1", "h", "1y", "1h 30", "1..5h", "PT1H", "-", "two days", "."] {
            assert!(!is_duration(text), "{text}");
        }
    }
}
