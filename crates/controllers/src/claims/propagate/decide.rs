//! What may be copied where. Touches nothing: `run.rs`, and `bind`, have the hands.

use concert_model::{GroupKind, Object, ObjectKey, OwnerReference, Uid};
use serde_json::{Value, json};

use super::super::reference::named;
use super::super::vocabulary::{annotation, message};
use crate::managed::vocabulary::connection::SECRET_TYPE;

/// The kind of secrets.
pub fn secret_kind() -> GroupKind {
    GroupKind::new("", "Secret")
}

/// The secrets that a managed resource and its claim name, if both do.
pub fn route(claim: &Object, managed: &Object) -> Option<(ObjectKey, ObjectKey)> {
    let text = |object: &Object, field: &str| {
        let reference = object.spec().get("writeConnectionSecretToRef")?;
        reference.get(field).and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned)
    };
    let from = ObjectKey::namespaced(secret_kind(), text(managed, "namespace")?, text(managed, "name")?);
    // Whatever else a claim says: its secret is in its own namespace.
    let to = ObjectKey::namespaced(secret_kind(), claim.namespace(), text(claim, "name")?);
    Some((from, to))
}

/// One write on the way to a copy.
#[derive(Clone, Debug, PartialEq)]
pub enum Copying {
    /// Write the claim's secret like this.
    Put(Object),
    /// Write the source like this: it agrees to be copied there.
    Agree(Object),
    /// The two agree, and are the same.
    Done,
}

/// What to write next: an empty secret of the claim, the consent of the source to go there, and only then
/// what the source holds. So whatever happens in between, nothing is where nobody has agreed to.
///
/// # Errors
/// In words, if the source is not the managed resource's own, or what is there is not the claim's.
pub fn copying(
    claim: &Object,
    managed: &Object,
    source: &Object,
    stored: Option<&Object>,
    key: &ObjectKey,
) -> Result<Copying, String> {
    Ok(match target(claim, managed, source, stored, key)? {
        Some(secret) => Copying::Put(secret),
        None => stored.and_then(|it| consenting(source, it)).map_or(Copying::Done, Copying::Agree),
    })
}

fn target(
    claim: &Object,
    managed: &Object,
    source: &Object,
    stored: Option<&Object>,
    key: &ObjectKey,
) -> Result<Option<Object>, String> {
    if !is_controlled_by(source, managed) {
        return Err(format!(
            "{}: secret {}/{} is not controlled by {}",
            message::NOT_OURS,
            source.namespace(),
            source.name(),
            named(managed)
        ));
    }
    if let Some(stored) = stored.filter(|it| !is_controlled_by(it, claim)) {
        return Err(format!(
            "{}: secret {} is there already and not of this claim: name another in spec.writeConnectionSecretToRef",
            message::NOT_OURS,
            stored.name()
        ));
    }
    let mut secret = stored.cloned().unwrap_or_else(|| new(claim, key));
    secret.set_annotation(annotation::FROM_NAMESPACE, source.namespace());
    secret.set_annotation(annotation::FROM_NAME, source.name());
    secret.set_annotation(annotation::FROM_UID, &uid_of(source));
    if stored.is_some_and(|it| consenting(source, it).is_none()) {
        secret.set("data", source.get("data").clone());
    }
    Ok(Some(secret).filter(|it| Some(it) != stored))
}

/// The source with its consent to go to `target`; none if it has given that already.
fn consenting(source: &Object, target: &Object) -> Option<Object> {
    let name = format!("{}{}", annotation::TO_PREFIX, uid_of(target));
    let place = format!("{}/{}", target.namespace(), target.name());
    if source.annotation(&name) == Some(place.as_str()) {
        return None;
    }
    let mut source = source.clone();
    source.set_annotation(&name, &place);
    Some(source)
}

/// Where a secret says that its data is from; none if it does not say all of it.
pub fn source_of(target: &Object) -> Option<(ObjectKey, Uid)> {
    let text = |name| target.annotation(name).filter(|it: &&str| !it.is_empty());
    let key =
        ObjectKey::namespaced(secret_kind(), text(annotation::FROM_NAMESPACE)?, text(annotation::FROM_NAME)?);
    Some((key, Uid(text(annotation::FROM_UID)?.into())))
}

/// Where a secret says that its data may go.
pub fn targets_of(source: &Object) -> Vec<ObjectKey> {
    let annotations = source.annotations();
    let consents = annotations.iter().filter(|(name, _)| name.starts_with(annotation::TO_PREFIX));
    let places = consents.filter_map(|(_, place)| place.split_once('/'));
    places.map(|(namespace, name)| ObjectKey::namespaced(secret_kind(), namespace, name)).collect()
}

/// The target with what the source has now; none if it has that already.
///
/// # Errors
/// In words, if one of the two has not agreed.
pub fn follow(target: &Object, source: &Object) -> Result<Option<Object>, String> {
    let Some((_, from)) = source_of(target) else { return Ok(None) };
    if Some(&from) != source.uid().as_ref() {
        return Err(format!("unexpected propagate from uid {from}: the source is {}", uid_of(source)));
    }
    let consent = format!("{}{}", annotation::TO_PREFIX, uid_of(target));
    if source.annotation(&consent).is_none() {
        return Err(format!("unexpected propagate to uid {}: the source does not name it", uid_of(target)));
    }
    let mut followed = target.clone();
    followed.set("data", source.get("data").clone());
    Ok(Some(followed).filter(|it| it != target))
}

/// The owner that controls an object.
pub fn controller_of(object: &Object) -> Option<OwnerReference> {
    object.owners().into_iter().find(OwnerReference::is_controller)
}

/// The kind of the owner that controls an object.
pub fn controller_kind(object: &Object) -> Option<GroupKind> {
    let owner = controller_of(object)?;
    let (group, _) = owner.api_version.split_once('/').unwrap_or_default();
    Some(GroupKind::new(group, owner.kind))
}

fn is_controlled_by(secret: &Object, owner: &Object) -> bool {
    controller_of(secret).is_some_and(|it| Some(&it.uid) == owner.uid().as_ref())
}

fn uid_of(object: &Object) -> String {
    object.uid().map(|it| it.to_string()).unwrap_or_default()
}

fn new(claim: &Object, key: &ObjectKey) -> Object {
    let mut secret = Object::new(&secret_kind().at_version("v1"), &key.namespace, &key.name);
    let owner = json!({"apiVersion": claim.api_version(), "kind": claim.kind(), "name": claim.name(),
        "uid": uid_of(claim), "controller": true, "blockOwnerDeletion": true});
    secret.set_metadata("ownerReferences", json!([owner]));
    secret.set("type", json!(SECRET_TYPE));
    secret
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
