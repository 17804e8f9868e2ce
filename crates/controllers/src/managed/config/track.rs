//! Usages: objects that say who uses a configuration, so that it is not deleted under them.

use concert_model::{GroupVersionKind, Object, ObjectKey, Patch};
use concert_store::{By, Error, Part, Store};
use serde_json::{Value, json};

use super::super::connection::controller_reference;
use super::super::vocabulary::config::{LABEL_CONFIG, LABEL_CONFIG_KIND, USAGE_FINALIZER};
use super::ConfigError;
use super::target::Target;

/// How often a usage is let go of while others write it: each of them does so once.
const TRIES: usize = 3;

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

/// Lets the usage of kind `kind` by `object` go, if there is one: the object needs no account any more.
///
/// # Errors
/// As the store's.
pub(super) async fn release(
    store: &dyn Store,
    object: &Object,
    kind: &GroupVersionKind,
    by: &By,
) -> Result<(), Error> {
    let Some(uid) = object.uid() else { return Ok(()) };
    let key = match store.kind(&kind.group_kind).await {
        Ok(it) if it.is_namespaced => {
            ObjectKey::namespaced(kind.group_kind.clone(), object.namespace(), &*uid.0)
        }
        Ok(_) => ObjectKey::cluster(kind.group_kind.clone(), &*uid.0),
        Err(Error::UnknownKind { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    // Its owner has just gone, so whoever collects may be about to mark it: then it is another one to write.
    for _ in 1..TRIES {
        match let_go(store, &key, by).await {
            Err(Error::Conflict { .. }) => {}
            other => return other,
        }
    }
    let_go(store, &key, by).await
}

async fn let_go(store: &dyn Store, key: &ObjectKey, by: &By) -> Result<(), Error> {
    let mut usage = match store.get(key).await {
        Ok(usage) => usage.decode(),
        Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    if !usage.remove_finalizer(USAGE_FINALIZER) {
        return Ok(());
    }
    match store.update(usage, by).await {
        Ok(_) | Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn usage(
    store: &dyn Store,
    object: &Object,
    target: &Target,
    kind: &GroupVersionKind,
) -> Result<Object, ConfigError> {
    let unstored = || ConfigError::Invalid("an object without a uid cannot use a configuration".into());
    let mut owner = controller_reference(object).ok_or_else(unstored)?;
    // Let go only once the external thing is gone, which nobody sees to before a deletion in the foreground has
    // taken what blocks it: a usage that did would wait for its owner, and its owner for it.
    owner.block_owner_deletion = None;
    let namespace = match store.kind(&kind.group_kind).await?.is_namespaced {
        true if object.namespace().is_empty() => {
            let why = format!("{kind} lives in namespaces, but {} does not", object.kind());
            return Err(ConfigError::Invalid(why));
        }
        true => object.namespace(),
        false => "",
    };
    let mut usage = Object::new(kind, namespace, &owner.uid.0);
    // A deletion that takes what is owned first must not take this first.
    usage.add_finalizer(USAGE_FINALIZER);
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
        && stored.owners().iter().any(|it| {
            it.is_controller() && it.uid == wanted.owners()[0].uid && it.block_owner_deletion != Some(true)
        })
        // One that is to go takes no finalizer any more.
        && (stored.deleted_at().is_some() || stored.finalizers().iter().any(|it| it == USAGE_FINALIZER))
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
    let mut finalizers = stored.clone();
    if stored.deleted_at().is_none() {
        finalizers.add_finalizer(USAGE_FINALIZER);
    }
    Ok(Patch::Merge(json!({
        "metadata": {"resourceVersion": version, "labels": wanted.labels(), "ownerReferences": owners,
            "finalizers": finalizers.finalizers()},
        "providerConfigRef": wanted.get("providerConfigRef"),
        "resourceRef": wanted.get("resourceRef"),
    })))
}
