//! What a definition has served, as its status remembers: who takes an implementation out of it, or changes
//! its kinds, must not strand the claims that are bound by it.

use concert_model::{GroupVersionKind, Object};
use serde_json::{Value, json};

use super::{Definition, Implementation};

/// Where the status says it.
pub const FIELD: &str = "served";

/// One claim kind and what made it real.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// What applications ask for.
    pub claim: GroupVersionKind,
    /// Without a mapping: it makes nothing new.
    pub implementation: Implementation,
}

/// What the status of a definition remembers.
pub fn remembered(object: &Object) -> Vec<Served> {
    let listed = object.status().get(FIELD).and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(read).collect()
}

/// What is remembered, and not what the definition says now.
pub fn former(remembered: &[Served], definition: Option<&Definition>) -> Vec<Served> {
    let is_current = |it: &Served| {
        definition.is_some_and(|now| {
            let managed = &it.implementation.managed.group_kind;
            now.claim.group_kind == it.claim.group_kind
                && now.implementations.iter().any(|now| now.managed.group_kind == *managed)
        })
    };
    remembered.iter().filter(|it| !is_current(it)).cloned().collect()
}

/// What a status is to remember: what the definition says, and these.
pub fn to_remember(definition: Option<&Definition>, former: &[Served]) -> Value {
    let now =
        definition.into_iter().flat_map(|it| it.implementations.iter().map(move |by| (&it.claim, &**by)));
    let before = former.iter().map(|it| (&it.claim, &it.implementation));
    let kind = |it: &GroupVersionKind| json!({"apiVersion": it.api_version(), "kind": &*it.group_kind.kind});
    let all = now.chain(before).map(
        |(claim, by)| json!({"claim": kind(claim), "class": kind(&by.class), "managed": kind(&by.managed)}),
    );
    Value::Array(all.collect())
}

fn read(value: &Value) -> Option<Served> {
    let kind = |field: &str| {
        let text = |of: &str| value.get(field)?.get(of)?.as_str();
        GroupVersionKind::parse(text("apiVersion")?, text("kind")?).ok()
    };
    let (class, managed) = (kind("class")?, kind("managed")?);
    let (mapping, allows_external_names, unusable) = (Vec::new(), false, None);
    let implementation =
        Implementation { index: 0, class, managed, mapping, allows_external_names, unusable };
    Some(Served { claim: kind("claim")?, implementation })
}
