//! What a server is meant to be, as an object says it and as Redis says it.

use concert_model::Object;
use concert_provider::Change;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Result;
use crate::fields;
use crate::plan::change;

const MIB: u64 = 1 << 20;

/// The first of each is what holds where nothing is said.
const EVICTION: &[&str] = &[
    "noeviction",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];
const PERSISTENCE: &[&str] = &["AppendOnly", "Snapshot", "None"];

/// Redis' own default: after an hour if anything changed, sooner if much did.
const SNAPSHOTS: &str = "3600 1 300 100 60 10000";

/// The names of the settings that matter, at Redis.
pub(super) const NAMES: [&str; 4] = ["maxmemory", "maxmemory-policy", "appendonly", "save"];

/// What can be changed while a server runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wanted {
    /// 0 for no limit.
    max_memory_mb: u64,
    max_memory_policy: String,
    persistence: String,
}

/// The settings of a server, in the order of [`NAMES`].
pub(super) type Pairs = [String; 4];

impl Wanted {
    pub(super) fn of(object: &Object) -> Result<Self> {
        // Up to a pebibyte: as bytes it fits into what Redis keeps it in.
        let max_memory_mb = fields::whole(object, "maxMemoryMb", 1, 1 << 30)?.unwrap_or(0);
        Ok(Self {
            max_memory_mb: max_memory_mb.unsigned_abs(),
            max_memory_policy: fields::choice(object, "maxMemoryPolicy", EVICTION)?.to_owned(),
            persistence: fields::choice(object, "persistence", PERSISTENCE)?.to_owned(),
        })
    }

    /// As Redis says it.
    pub(super) fn pairs(&self) -> Pairs {
        let (append, save) = match self.persistence.as_str() {
            "AppendOnly" => ("yes", ""),
            "Snapshot" => ("no", SNAPSHOTS),
            _ => ("no", ""),
        };
        let bytes = self.max_memory_mb * MIB;
        [bytes.to_string(), self.max_memory_policy.clone(), append.to_owned(), save.to_owned()]
    }

    /// What is not as wanted at a server with these settings.
    pub(super) fn differences(&self, is: &Pairs) -> Vec<Change> {
        let want = self.pairs();
        let mut changes = Vec::new();
        if is[0] != want[0] {
            changes.push(change("maxMemoryMb", memory(&is[0]), memory(&want[0])));
        }
        if is[1] != want[1] {
            changes.push(change("maxMemoryPolicy", json!(is[1]), json!(want[1])));
        }
        if is[2..] != want[2..] {
            changes.push(change("persistence", json!(persistence(is)), json!(self.persistence)));
        }
        changes
    }

    /// The fields of a server that is to be made.
    pub(super) fn fresh(&self) -> Vec<Change> {
        let limit = if self.max_memory_mb == 0 { Value::Null } else { json!(self.max_memory_mb) };
        let all = [
            change("maxMemoryMb", Value::Null, limit),
            change("maxMemoryPolicy", Value::Null, json!(self.max_memory_policy)),
            change("persistence", Value::Null, json!(self.persistence)),
        ];
        all.into_iter().filter(|it| it.to.is_some()).collect()
    }
}

/// Bytes as the field has them: in mebibytes, and absent without a limit.
fn memory(bytes: &str) -> Value {
    match bytes.parse::<u64>() {
        Ok(0) => Value::Null,
        Ok(bytes) if bytes % MIB == 0 => json!(bytes / MIB),
        _ => json!(format!("{bytes} bytes")),
    }
}

fn persistence(is: &Pairs) -> &str {
    match (is[2].as_str(), is[3].as_str()) {
        ("yes", "") => "AppendOnly",
        ("no", "") => "None",
        ("no", _) => "Snapshot",
        _ => "AppendOnly and Snapshot",
    }
}

/// The file that a server starts with.
pub(super) fn configuration(port: u16, password: &str, data: &str, pairs: &Pairs) -> String {
    let mut text = format!(
        "bind 127.0.0.1\nport {port}\nprotected-mode yes\ndaemonize no\nsupervised no\nlogfile \"\"\n\
         dir {}\nrequirepass {}\n",
        quoted(data),
        quoted(password)
    );
    for (name, value) in NAMES.iter().zip(pairs) {
        match *name {
            "save" if !value.is_empty() => snapshots(value, &mut text),
            _ => text.push_str(&format!("{name} {}\n", quoted(value))),
        }
    }
    text
}

/// One line for each pair, which Redis understands in every version.
fn snapshots(pairs: &str, text: &mut String) {
    let words: Vec<&str> = pairs.split(' ').collect();
    for pair in words.chunks(2) {
        text.push_str(&format!("save {}\n", pair.join(" ")));
    }
}

/// One argument in a Redis configuration, whatever is in it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(fields: Value) -> Result<Wanted> {
        let whole = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"},
            "spec": {"forProvider": fields}});
        Wanted::of(&Object::from_value(whole).unwrap())
    }

    #[test]
    fn what_is_as_wanted_shows_no_difference() {
        for fields in [
            json!({}),
            json!({"maxMemoryMb": 64, "maxMemoryPolicy": "allkeys-lru"}),
            json!({"persistence": "Snapshot"}),
            json!({"persistence": "None"}),
        ] {
            let wanted = wanted(fields).unwrap();
            assert_eq!(wanted.differences(&wanted.pairs()), []);
        }
    }

    #[test]
    fn differences_are_told_in_the_words_of_the_object() {
        let wanted = wanted(json!({"maxMemoryMb": 64})).unwrap();
        let is = ["1000".into(), "allkeys-lru".into(), "no".into(), SNAPSHOTS.to_owned()];
        let told: Vec<_> = wanted
            .differences(&is)
            .into_iter()
            .map(|it| (it.path.replace("spec.forProvider.", ""), it.from.unwrap(), it.to.unwrap()))
            .collect();
        assert_eq!(
            told,
            [
                ("maxMemoryMb".to_owned(), json!("1000 bytes"), json!(64)),
                ("maxMemoryPolicy".to_owned(), json!("allkeys-lru"), json!("noeviction")),
                ("persistence".to_owned(), json!("Snapshot"), json!("AppendOnly")),
            ]
        );
    }

    #[test]
    fn bad_values_are_refused() {
        for fields in [
            json!({"maxMemoryMb": 0}),
            json!({"maxMemoryMb": "64mb"}),
            json!({"maxMemoryPolicy": "yes"}),
            json!({"persistence": "appendonly"}),
        ] {
            assert!(wanted(fields.clone()).is_err(), "{fields}");
        }
    }

    #[test]
    fn nothing_breaks_out_of_the_configuration() {
        let pairs = wanted(json!({})).unwrap().pairs();
        let text = configuration(1, "a\" b\\\nport 2", "/a folder/ü", &pairs);
        assert_eq!(text.lines().filter(|line| line.starts_with("port")).count(), 1, "{text}");
        assert!(text.contains(r#"requirepass "a\" b\\\x0aport 2""#), "{text}");
        assert!(text.contains(r#"dir "/a folder/\xc3\xbc""#), "{text}");
        let pairs = wanted(json!({"persistence": "Snapshot"})).unwrap().pairs();
        let text = configuration(1, "a", "/", &pairs);
        assert!(text.ends_with("save 3600 1\nsave 300 100\nsave 60 10000\n"), "{text}");
    }
}
