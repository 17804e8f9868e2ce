//! How long ago something was, in the few characters that a column has room for.

use concert_model::time::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time from `since` to `now`, with less detail the longer it is: `95s`, `5m30s`, `47h`, `2y11d`.
///
/// A time that is still to come is `<invalid>`, as kubectl's users know it; up to a second of it is
/// forgiven, because clocks differ.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - since.as_second();
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => pair(seconds, MINUTE, "m", 1, "s"),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => pair(seconds, HOUR, "h", MINUTE, "m"),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => pair(seconds, DAY, "d", HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => pair(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// Two units, or one where nothing is left for the second.
fn pair(seconds: i64, large: i64, large_name: &str, small: i64, small_name: &str) -> String {
    let (whole, rest) = (seconds / large, seconds % large / small);
    if rest == 0 { format!("{whole}{large_name}") } else { format!("{whole}{large_name}{rest}{small_name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_less_the_longer_it_is() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (330, "5m30s"),
            (10 * MINUTE + 1, "10m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 61, "3h1m"),
            (8 * HOUR + 61, "8h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY + HOUR, "8d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 11 * DAY, "2y11d"),
            (9 * YEAR + 11 * DAY, "9y"),
        ];
        let now = Timestamp::from_second(1_794_774_676).unwrap();
        for (seconds, expected) in cases {
            let since = Timestamp::from_second(now.as_second() - seconds).unwrap();
            assert_eq!(age(since, now), expected);
        }
    }
}
