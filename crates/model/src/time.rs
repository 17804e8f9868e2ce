//! Times as objects carry them.
//!
//! `metadata` and conditions have a resolution of one second (`2026-11-15T20:31:16Z`); leases and
//! history have microseconds (`2026-11-15T20:31:16.710423Z`).

pub use jiff::{SignedDuration, Timestamp};

/// `2026-11-15T20:31:16Z`: what Kubernetes writes in `metadata` and conditions.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2026-11-15T20:31:16.710423Z`: Kubernetes' MicroTime.
pub fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Reads either form, with any offset.
pub fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_survive_a_round_trip() {
        let time = Timestamp::from_microsecond(1_794_774_676_710_423).unwrap();
        assert_eq!(parse(&micros(time)), Some(time));
        assert_eq!(seconds(time), "2026-11-15T20:31:16Z");
        assert_eq!(parse("2026-11-15T21:31:16+01:00"), parse("2026-11-15T20:31:16Z"));
        assert_eq!(parse("yesterday"), None);
    }
}
