//! What a managed reconciler is told: which providers there are.
//!
//! The same as JSON or YAML, as a file or built in code. Nothing unknown is passed over: a field that
//! was misspelt would otherwise be a setting that silently does not hold.

use std::path::{Path, PathBuf};

use concert_engine::Budget;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::validate;

/// All providers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControllerConfig {
    /// In the order in which they may ask for kinds: of two that serve the same, the first keeps it.
    /// May be empty where providers are declared as objects, but not left out.
    pub providers: Vec<ProviderConfig>,
}

/// One provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderConfig {
    /// By which people know it.
    #[serde(default)]
    pub name: String,
    /// `HOST:PORT`, `http://HOST:PORT`, `https://HOST[:PORT]` or `unix:PATH`.
    #[serde(default)]
    pub endpoint: String,
    /// Whether to speak TLS. `https://` and port 443 imply it.
    #[serde(default, rename = "useSSL")]
    pub use_ssl: bool,
    /// Whether credentials may go to another machine in clear.
    #[serde(default)]
    pub insecure: bool,
    /// Exactly the kinds it is to serve; all that it names if empty.
    #[serde(default)]
    pub resource_types: Vec<ResourceType>,
    /// Most calls to it, of all processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// Most calls to it for each of its accounts, of all processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_rate_limit: Option<RateLimit>,
}

/// How often something may be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RateLimit {
    /// On average.
    pub calls_per_minute: u32,
    /// At once, after a quiet time; those of a second if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

impl RateLimit {
    /// As the engine counts it.
    pub(crate) fn budget(self) -> Budget {
        let rate = f64::from(self.calls_per_minute) / 60.0;
        Budget::new(rate, self.burst.map_or(rate, f64::from))
    }
}

/// A kind of managed resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceType {
    /// `GROUP/VERSION`.
    #[serde(default)]
    pub api_version: String,
    /// Singular, as in manifests.
    #[serde(default)]
    pub kind: String,
    /// Whether external names are known before the create, so that repeating one cannot make two. For
    /// providers whose protocol has no word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deterministic_names: Option<bool>,
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no text to read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// The text does not say what a configuration says.
    #[error("{origin}: {what}")]
    Malformed {
        /// The file.
        origin: String,
        /// With the field, and line and column.
        what: String,
    },
    /// It can be read but makes no sense: each field and the rule it breaks.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
}

impl ControllerConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Any [`enum@Error`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Unreadable { path: path.to_owned(), error })?;
        let config = Self::parse(&text, &path.display().to_string())?;
        config.check()?;
        Ok(config)
    }

    /// Reads JSON or YAML. `origin` is what errors call the text.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        parse(text).map_err(|what| Error::Malformed { origin: origin.to_owned(), what })
    }

    /// Checks every rule.
    ///
    /// # Errors
    /// [`Error::Invalid`], with everything that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        let findings = validate::check(self);
        if findings.is_empty() { Ok(()) } else { Err(Error::Invalid(findings)) }
    }
}

/// JSON if it starts like it, since its reader says more clearly what is wrong with JSON; else YAML.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    if text.trim_start().starts_with('{') { parse_json(text) } else { parse_yaml(text) }
}

fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| at(&error.path().to_string(), &error.inner().to_string()))?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

fn parse_yaml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut path = String::new();
    let read = serde_saphyr::with_deserializer_from_str(text, |reader| {
        serde_path_to_error::deserialize(reader).map_err(|error| {
            path = error.path().to_string();
            error.into_inner()
        })
    });
    read.map_err(|error| at(&path, &error.without_snippet().to_string()))
}

/// All documents of a text of JSON or YAML, as they are.
///
/// # Errors
/// Line and column, and what is wrong there.
pub fn documents(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('{') && !text.contains("\n---") {
        return Ok(vec![parse_json(text)?]);
    }
    serde_saphyr::from_multiple(text).map_err(|error| error.without_snippet().to_string())
}

/// An error of the text as a whole has no field.
fn at(path: &str, what: &str) -> String {
    if path.is_empty() || path == "." { what.to_owned() } else { format!("{path}: {what}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = r#"{"providers": [{"name": "example-provider", "endpoint": "provider-example:50051",
        "useSSL": false, "resourceTypes": [
            {"apiVersion": "example.crossplane.io/v1alpha1", "kind": "ExampleResource"},
            {"apiVersion": "example.crossplane.io/v1alpha1", "kind": "AnotherResource"}]}]}"#;

    #[test]
    fn json_and_yaml_say_the_same() {
        let json = ControllerConfig::parse(SEED, "c").unwrap();
        let yaml = "providers:\n- name: example-provider\n  endpoint: provider-example:50051\n  resourceTypes:\n  \
                    - {apiVersion: example.crossplane.io/v1alpha1, kind: ExampleResource}\n  \
                    - {apiVersion: example.crossplane.io/v1alpha1, kind: AnotherResource}\n";
        assert_eq!(ControllerConfig::parse(yaml, "c").unwrap(), json);
        json.check().unwrap();
        let written = serde_json::to_string(&json).unwrap();
        assert_eq!(ControllerConfig::parse(&written, "c").unwrap(), json);
    }

    #[test]
    fn what_cannot_be_read_says_which_field_and_where() {
        for (text, parts) in [
            (
                "{\"providers\": [{\"name\": \"a\",\n \"endpont\": \"b:1\"}]}",
                &["providers[0]", "endpont", "line 2"][..],
            ),
            ("{\"providers\": [{\"name\": 3}]}", &["providers[0].name", "line 1 column"]),
            ("{\"providers\": ", &["line 1 column"]),
            ("{\"providers\": []} x", &["line 1 column"]),
            ("{\"provider\": []}", &["unknown field `provider`", "line 1"]),
            ("providers:\n- name: a\n  endpont: b\n", &["providers[0]", "endpont", "line 3"]),
            ("providers:\n- name: [\n", &["line"]),
            ("providers: 7\n", &["providers", "line 1"]),
        ] {
            let error = ControllerConfig::parse(text, "config.json").unwrap_err().to_string();
            assert!(error.starts_with("config.json: "), "{error}");
            for part in parts {
                assert!(error.contains(part), "{part} in: {error}");
            }
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn the_deployment_brings_a_configuration_that_holds() {
        let manifests = documents(include_str!("../../../../deploy/managed-reconciler.yaml")).unwrap();
        let config = manifests.iter().find(|it| it["kind"] == "ConfigMap").unwrap();
        let text = config["data"]["config.json"].as_str().unwrap();
        ControllerConfig::parse(text, "config.json").unwrap().check().unwrap();
    }
}
