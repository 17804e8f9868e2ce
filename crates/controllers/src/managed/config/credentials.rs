//! What the credentials of a configuration point at.

use std::fs::File;
use std::io::Read;

use concert_engine::Wait;
use concert_model::{GroupKind, Object, ObjectKey, base64};
use concert_provider::Details;
use concert_store::{Error, Store};
use serde_json::Value;

use super::ConfigError;

/// The name under which a provider finds them.
pub const CREDENTIALS: &str = "credentials";

/// Largest file that is read: what a Secret may hold.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Looks up a variable of the process.
pub(super) type Environment = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Credentials and where they came from.
pub(super) struct Found {
    pub details: Details,
    pub secret: Option<ObjectKey>,
}

/// Reads the credentials of `config`.
pub(super) async fn read(
    store: &dyn Store,
    environment: &Environment,
    config: &Object,
) -> Result<Found, ConfigError> {
    let Some(credentials) = config.spec().get("credentials").filter(|it| !it.is_null()) else {
        return Ok(Found { details: Details::new(), secret: None });
    };
    let source = text(credentials, "source");
    // Who may write into a namespace may not read what belongs to the process.
    if matches!(source, "Environment" | "Filesystem") && !config.namespace().is_empty() {
        return Err(invalid(format!("source {source} is only for cluster-scoped configurations")));
    }
    let mut secret = None;
    let bytes = match source {
        "None" | "InjectedIdentity" => None,
        "Environment" => Some(variable(environment, credentials)?),
        "Filesystem" => Some(file(credentials)?),
        "Secret" => {
            let key = secret_key(credentials, config.namespace())?;
            let bytes = entry(store, &key, required(credentials, "secretRef", "key")?).await?;
            secret = Some(key);
            Some(bytes)
        }
        "" => return Err(invalid("source must not be empty".to_owned())),
        other => return Err(invalid(format!("source {other:?} is not supported"))),
    };
    let details = bytes.map(|it| Details::new().with(CREDENTIALS, it)).unwrap_or_default();
    Ok(Found { details, secret })
}

fn variable(environment: &Environment, credentials: &Value) -> Result<Vec<u8>, ConfigError> {
    let name = required(credentials, "env", "name")?;
    match environment(name) {
        Some(value) => Ok(value.into_bytes()),
        None => Err(invalid(format!("variable {name} is not set"))),
    }
}

/// Reads a file. On the thread of the caller: it is small, local, and read once a minute at most.
fn file(credentials: &Value) -> Result<Vec<u8>, ConfigError> {
    let path = required(credentials, "fs", "path")?;
    let failed = |why: &dyn std::fmt::Display| invalid(format!("cannot read {path}: {why}"));
    // A pipe would make us wait for who writes to it.
    let metadata = std::fs::metadata(path).map_err(|error| failed(&error))?;
    if !metadata.is_file() {
        return Err(failed(&"it is not a file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| failed(&error))?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(&format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

fn secret_key(credentials: &Value, own_namespace: &str) -> Result<ObjectKey, ConfigError> {
    let name = required(credentials, "secretRef", "name")?;
    let kind = GroupKind::new("", "Secret");
    if own_namespace.is_empty() {
        let namespace = required(credentials, "secretRef", "namespace")?;
        return Ok(ObjectKey::namespaced(kind, namespace, name));
    }
    // Otherwise who may write into one namespace could use the secrets of all.
    match text(&credentials["secretRef"], "namespace") {
        "" => {}
        namespace if namespace == own_namespace => {}
        _ => return Err(invalid("secretRef.namespace must be that of the configuration".to_owned())),
    }
    Ok(ObjectKey::namespaced(kind, own_namespace, name))
}

async fn entry(store: &dyn Store, key: &ObjectKey, name: &str) -> Result<Vec<u8>, ConfigError> {
    let stored = match store.get(key).await {
        Ok(stored) => stored,
        Err(error @ Error::NotFound { .. }) => {
            let message = format!("cannot get credentials: {error}");
            return Err(ConfigError::NotReady { message, waits: vec![Wait::existence_of(key.clone())] });
        }
        Err(other) => return Err(other.into()),
    };
    let secret = stored.decode();
    let value = secret.get("data").get(name).and_then(Value::as_str).and_then(base64::decode);
    value.ok_or_else(|| {
        let message = format!("cannot get credentials: {key} has no key {name:?}");
        ConfigError::NotReady { message, waits: vec![Wait::change_of(&stored)] }
    })
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn required<'v>(credentials: &'v Value, part: &str, field: &str) -> Result<&'v str, ConfigError> {
    match text(&credentials[part], field) {
        "" => Err(invalid(format!("{part}.{field} must not be empty"))),
        text => Ok(text),
    }
}

fn invalid(why: String) -> ConfigError {
    ConfigError::Invalid(format!("cannot get credentials: {why}"))
}
