//! What Concert has and Kubernetes has not: `explain`, `history` and `plan`.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::{Encoded, Object, ObjectKey, Revision, time};
use concert_store::local::Past;
use http::request::Parts as Head;
use http::{HeaderMap, Uri};
use serde_json::{Value, json};

use super::answer::Answer;
use super::api::{Call, Inner};
use super::content;
use super::params::Params;
use super::path::Address;
use crate::auth::{Access, User};
use crate::error::{Error, Naming};

/// Answers that need more than the store.
#[async_trait]
pub trait Extensions: Send + Sync + 'static {
    /// Why an object is not ready, as JSON.
    async fn explain(&self, key: &ObjectKey) -> Result<Value, Error>;

    /// The same from another replica that knows more of this object, asked as this one was; none if this one
    /// is to answer.
    async fn explained_elsewhere(&self, _key: &ObjectKey, _uri: &Uri, _headers: &HeaderMap) -> Option<Value> {
        None
    }

    /// What would happen if these objects were applied, as JSON. Touches nothing.
    async fn plan(&self, objects: Vec<Object>) -> Result<Value, Error>;
}

/// Nobody there to answer.
#[async_trait]
impl Extensions for () {
    async fn explain(&self, _key: &ObjectKey) -> Result<Value, Error> {
        Err(Error::unknown_path())
    }

    async fn plan(&self, _objects: Vec<Object>) -> Result<Value, Error> {
        Err(Error::unknown_path())
    }
}

/// Most objects of one plan.
const PLAN_OBJECTS_MAX: usize = 1_000;
/// Writes shown at once if the client does not say, and at most.
const HISTORY_DEFAULT: u64 = 50;
const HISTORY_MAX: u64 = 500;

/// `GET …/NAME/explain`.
pub(crate) async fn explain(call: &Call<'_>) -> Result<Answer, Error> {
    call.params.check(&[])?;
    let (key, extensions) = (call.key(), &call.api.extensions);
    if let Some(told) = extensions.explained_elsewhere(&key, call.uri, call.headers).await {
        return Ok(Answer::value(&told));
    }
    Ok(Answer::value(&extensions.explain(&key).await?))
}

/// `GET …/NAME/history`: who wrote what and when, newest first.
pub(crate) async fn history(call: &Call<'_>) -> Result<Answer, Error> {
    call.params.check(&["limit", "before"])?;
    let before = call.params.number("before")?.map(Revision);
    let limit = call.params.number("limit")?.unwrap_or(HISTORY_DEFAULT);
    if !(1..=HISTORY_MAX).contains(&limit) {
        let rule = format!("query parameter limit={limit} must be from 1 to {HISTORY_MAX}");
        return Err(Error::bad_request(format!("{rule}; go on with before=REVISION")));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let past = call.api.store.history(&call.key(), before, limit).await;
    let past = past.map_err(|error| Error::of_read(error, &call.naming()))?;
    if past.is_empty() && before.is_none() {
        return Err(Error::not_found(&call.naming()));
    }
    let items: Vec<Value> = past.iter().map(|past| written(call, past)).collect();
    Ok(Answer::value(&json!({"kind": "History", "apiVersion": "concert.dev/v1alpha1", "items": items})))
}

fn written(call: &Call<'_>, past: &Past) -> Value {
    json!({
        "revision": past.revision.0.to_string(), "act": format!("{:?}", past.act),
        "time": time::micros(past.stamp.at), "actor": &*past.stamp.actor, "reason": &*past.stamp.reason,
        "manager": &*past.stamp.manager, "uid": &*past.uid.0, "generation": past.generation,
        "object": past.object.as_ref().map(|object| shown(call, object)),
    })
}

/// A past state, without what a secret held.
fn shown(call: &Call<'_>, encoded: &Encoded) -> Value {
    let mut object = encoded.decode();
    object.set("apiVersion", json!(&*call.resource.api_version));
    if call.resource.is_core("Secret") {
        // kubectl keeps a copy of the whole there.
        object.remove_annotation("kubectl.kubernetes.io/last-applied-configuration");
        if let Value::Object(data) = object.get_mut("data") {
            data.values_mut().for_each(|value| *value = json!("REDACTED"));
        }
    }
    object.into_value()
}

/// `POST /apis/concert.dev/v1alpha1/plan`.
pub(crate) fn is_plan(address: &Address<'_>) -> bool {
    address.resource == "plan"
        && address.api_version == "concert.dev/v1alpha1"
        && address.namespace.is_none()
        && address.name.is_none()
}

/// What a List of objects would change.
pub(crate) async fn plan(
    api: &Arc<Inner>,
    user: &User,
    head: &Head,
    params: &Params<'_>,
    body: &[u8],
) -> Result<Answer, Error> {
    if head.method != http::Method::POST {
        return Err(Error::method_not_allowed());
    }
    params.check(&[])?;
    let mut list = content::read_sent(&head.headers, body)?.value;
    let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) else {
        return Err(Error::bad_request("a plan is asked for with a List: its items are the objects"));
    };
    if items.len() > PLAN_OBJECTS_MAX {
        return Err(Error::bad_request(format!("a plan takes at most {PLAN_OBJECTS_MAX} objects")));
    }
    let read = |(i, item)| {
        Object::from_value(item).map_err(|error| Error::bad_request(format!("items[{i}]: {error}")))
    };
    let objects = items.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    for object in &objects {
        check_plan(api, user, object).await?;
    }
    Ok(Answer::value(&api.extensions.plan(objects).await?))
}

/// A plan shows what is there and what would be written: both must be allowed.
async fn check_plan(api: &Inner, user: &User, object: &Object) -> Result<(), Error> {
    let key = object.key().map_err(|error| Error::bad_request(error.to_string()))?;
    let Ok(card) = api.store.card(&key.kind) else {
        return Err(Error::bad_request(format!("there is no kind {}", key.kind)));
    };
    let plural = &*card.kind.plural;
    for verb in ["get", "patch"] {
        let access = Access::Resource {
            verb,
            group: &key.kind.group,
            resource: plural,
            subresource: "",
            namespace: &key.namespace,
            name: &key.name,
        };
        let naming = Naming { kind: &key.kind, plural, name: &key.name };
        api.gate.authorise(user, &access).await.map_err(|refusal| Error::refused(refusal, Some(&naming)))?;
    }
    Ok(())
}
