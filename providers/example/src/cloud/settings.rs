//! How the cloud behaves; can be changed while it runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::quota::Quota;

/// The knobs. As JSON, durations are whole milliseconds (`latencyMs`), so that any client can write
/// them; a field that is not given keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// How long a call takes: half before its effect, half after.
    #[serde(rename = "latencyMs", with = "millis")]
    pub latency: Duration,
    /// How long a new thing stays invisible to reads, lists and deletes.
    #[serde(rename = "visibleAfterMs", with = "millis")]
    pub visible_after: Duration,
    /// How long reads show what was before an update.
    #[serde(rename = "staleForMs", with = "millis")]
    pub stale_for: Duration,
    /// How long a new thing is `creating`.
    #[serde(rename = "readyAfterMs", with = "millis")]
    pub ready_after: Duration,
    /// Calls that an account may make; none for any number.
    pub quota: Option<Quota>,
    /// The share of calls that fail before they have any effect, from 0 to 1.
    pub error_rate: f64,
    /// The share of mutations that have their effect while the answer is lost, from 0 to 1.
    pub lost_answers: f64,
}

impl Settings {
    /// These settings with the fields of a JSON object in their place.
    ///
    /// # Errors
    /// Names the field that is unknown, of the wrong type or out of range.
    pub fn with(&self, fields: &serde_json::Map<String, serde_json::Value>) -> Result<Self, String> {
        let Ok(serde_json::Value::Object(mut whole)) = serde_json::to_value(self) else {
            unreachable!("settings are written as an object")
        };
        whole.extend(fields.clone());
        let settings: Self = serde_json::from_value(whole.into()).map_err(|e| e.to_string())?;
        settings.check()?;
        Ok(settings)
    }

    /// Whether the numbers make sense.
    ///
    /// # Errors
    /// Names the field and its range.
    pub fn check(&self) -> Result<(), String> {
        for (field, rate) in [("errorRate", self.error_rate), ("lostAnswers", self.lost_answers)] {
            if !(0.0..=1.0).contains(&rate) {
                return Err(format!("{field} must be from 0 to 1"));
            }
        }
        self.quota.as_ref().map_or(Ok(()), Quota::check)
    }
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(duration.as_millis().try_into().unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(fields: serde_json::Value) -> Result<Settings, String> {
        Settings { error_rate: 0.5, ..Settings::default() }.with(fields.as_object().unwrap())
    }

    #[test]
    fn fields_that_are_not_given_keep_their_values() {
        let settings = changed(json!({"latencyMs": 20, "quota": {"perSecond": 5.0, "burst": 10}})).unwrap();
        assert_eq!(settings.error_rate, 0.5);
        assert_eq!(settings.latency, Duration::from_millis(20));
        assert_eq!(settings.quota, Some(Quota { per_second: 5.0, burst: 10 }));
    }

    #[test]
    fn bad_fields_are_named() {
        for (fields, word) in [
            (json!({"latency": 1}), "`latency`"),
            (json!({"errorRate": 1.5}), "errorRate"),
            (json!({"lostAnswers": -0.1}), "lostAnswers"),
            (json!({"quota": {"perSecond": 0.0, "burst": 1}}), "perSecond"),
            (json!({"quota": {"perSecond": 1.0, "burst": 0}}), "burst"),
        ] {
            let error = changed(fields.clone()).unwrap_err();
            assert!(error.contains(word), "{fields}: {error}");
        }
    }
}
