//! Usages: objects that say who uses a configuration, so that it is not deleted under them.

use concert_model::{GroupVersionKind, Object, ObjectKey, Patch};
use concert_store::{By, Error, Part, Store};
use serde_json::{Value, json};

use super::super::connection::controller_reference;
use super::super::vocabulary::config::{LABEL_CONFIG, LABEL_CONFIG_KIND};
use super::ConfigError;
use super::target::Target;

/// Makes sure that the usage of `target` by `object` is on record.
pub(super) async fn track(
    store: &dyn Store,
    object: &Object,
    target: &Target,
    kind: &GroupVersionKind,
    by: &By,
) -> Result<(), ConfigError> {
    let usage = usage(store, object, target, kind).await?;
    let key = usage.key().map_err(|error| ConfigError::Invalid(error.to_string()))?;
    let stored = match store.get(&key).await {
        Ok(stored) => stored.decode(),
        Err(Error::NotFound { .. }) => {
            return match store.create(usage, by).await {
                Ok(_) => Ok(()),
                // Not ours to fix in this pass: the next one reads what somebody else wrote.
                Err(Error::AlreadyExists { key }) => Err(Error::Conflict { key }.into()),
                Err(other) => Err(other.into()),
            };
        }
        Err(other) => return Err(other.into()),
    };
    if is_current(&stored, &usage) {
        return Ok(());
    }
    store.patch(&key, Part::Main, &correction(&key, &stored, &usage)?, by).await?;
    Ok(())
}

async fn usage(
    store: &dyn Store,
    object: &Object,
    target: &Target,
    kind: &GroupVersionKind,
) -> Result<Object, ConfigError> {
    let unstored = || ConfigError::Invalid("an object without a uid cannot use a configuration".into());
    let owner = controller_reference(object).ok_or_else(unstored)?;
    let namespace = match store.kind(&kind.group_kind).await?.is_namespaced {
        true if object.namespace().is_empty() => {
            let why = format!("{kind} lives in namespaces, but {} does not", object.kind());
            return Err(ConfigError::Invalid(why));
        }
        true => object.namespace(),
        false => "",
    };
    let mut usage = Object::new(kind, namespace, &owner.uid.0);
    usage.set_label(LABEL_CONFIG, &target.key.name);
    let mut reference = json!({"name": &*target.key.name});
    if target.is_modern {
        usage.set_label(LABEL_CONFIG_KIND, &target.key.kind.kind);
        reference["kind"] = json!(&*target.key.kind.kind);
    }
    let resource = json!({"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name});
    usage.set_metadata("ownerReferences", json!([owner]));
    usage.set("providerConfigRef", reference);
    usage.set("resourceRef", resource);
    Ok(usage)
}

fn is_current(stored: &Object, wanted: &Object) -> bool {
    let labels = stored.labels();
    wanted.labels().iter().all(|(key, value)| labels.get(key) == Some(value))
        && ["name", "kind"].iter().all(|it| text(stored, it) == text(wanted, it))
        && stored.owners().iter().any(|it| it.is_controller() && it.uid == wanted.owners()[0].uid)
}

fn text<'o>(usage: &'o Object, field: &str) -> Option<&'o str> {
    usage.get("providerConfigRef").get(field).and_then(Value::as_str)
}

/// What makes the stored usage the wanted one.
fn correction(key: &ObjectKey, stored: &Object, wanted: &Object) -> Result<Patch, ConfigError> {
    let is_foreign =
        |it: &concert_model::OwnerReference| it.is_controller() && it.uid != wanted.owners()[0].uid;
    if stored.owners().iter().any(is_foreign) {
        return Err(ConfigError::Invalid(format!("{key} is controlled by another object")));
    }
    let owners = stored.owners().into_iter().filter(|it| it.uid != wanted.owners()[0].uid);
    let owners: Vec<_> = owners.chain(wanted.owners()).collect();
    let version = stored.resource_version().map(|it| it.0.to_string());
    Ok(Patch::Merge(json!({
        "metadata": {"resourceVersion": version, "labels": wanted.labels(), "ownerReferences": owners},
        "providerConfigRef": wanted.get("providerConfigRef"),
        "resourceRef": wanted.get("resourceRef"),
    })))
}
