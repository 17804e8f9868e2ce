//! `/grants`, and what they come to.
//!
//! A section has one writer: who would be the second is refused. Should two grants be made at the very same
//! time, the older one counts, and of two that are as old the one whose name comes first.

use concert_model::inventory::{Grant, Right, names, shared_writer};
use concert_model::no8s::names::worker_object;
use concert_model::{Encoded, Object};
use concert_store::{By, Delete, Error as StoreError, PageRequest, Query, Store};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::caller::Caller;
use super::door::{Inner, commit};
use super::sent::Sent;
use super::types::verb;
use crate::auth::{Access, Gate, User};
use crate::kube::Body;
use crate::rest::call::{answer, no_content};
use crate::rest::{Call, Error};
use crate::write::Operation;

const RESOURCE: &str = "grants";

fn shown(object: &Object) -> Value {
    let grant = Grant::of(object);
    json!({"name": object.name(), "read": grant.read, "write": grant.write})
}

fn spec(grant: &Grant) -> Value {
    json!({"read": grant.read, "write": grant.write})
}

/// All grants, the ones that count most first.
pub(super) async fn all(store: &dyn Store) -> Result<Vec<Object>, StoreError> {
    let page = store.list(&Query::all(names::grant_kind()), &PageRequest::whole()).await?;
    let mut all: Vec<Object> = page.items.iter().map(Encoded::decode).collect();
    all.sort_by(|one, other| (one.created_at(), one.name()).cmp(&(other.created_at(), other.name())));
    Ok(all)
}

/// Who else writes a section that `grant` would have `reconciler` write, and which.
pub(super) fn other_writer<'a>(
    all: &'a [Object],
    reconciler: &str,
    grant: &Grant,
) -> Option<(&'a str, String)> {
    all.iter().filter(|it| it.name() != reconciler).find_map(|other| {
        let theirs = Grant::of(other);
        shared_writer(grant, &theirs).map(|section| (other.name(), section.to_owned()))
    })
}

/// What somebody is told who would be the second writer of a section.
pub(super) fn second_writer((writer, section): (&str, String)) -> String {
    format!("section '{section}' is written by reconciler '{writer}', and each section has one writer")
}

impl Inner {
    /// Whether a reconciler may do this with a section, by the grants as they are now.
    pub async fn permit_reconciler(
        &self,
        reconciler: &str,
        right: Right,
        section: &str,
    ) -> Result<(), Error> {
        let key = names::grant_key(reconciler);
        let grant = self.find(&key).await?.filter(|it| it.head().deleted_at.is_none());
        let is_granted = grant.is_some_and(|it| Grant::of(&it.decode()).allows(right, section));
        let is_writer = right == Right::Read || is_granted && self.is_first(&key.name, section).await?;
        if is_granted && is_writer {
            return Ok(());
        }
        let what = if right == Right::Read { "read" } else { "write" };
        Err(Error::forbidden(format!("reconciler '{reconciler}' has no grant to {what} section '{section}'")))
    }

    /// Whether, of all grants to write a section, that of `reconciler` is the one that counts.
    async fn is_first(&self, reconciler: &str, section: &str) -> Result<bool, Error> {
        let all = all(&self.parts.store).await?;
        let first = all.iter().find(|it| Grant::of(it).write.contains(section));
        Ok(first.is_some_and(|it| it.name() == reconciler))
    }

    /// `GET /grants`.
    pub async fn grants(&self, call: &Call<'_>, caller: &Caller<'_>) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        self.permit_user(caller, "list", RESOURCE, "").await?;
        let items: Vec<Value> = all(&self.parts.store).await?.iter().map(shown).collect();
        Ok(answer(StatusCode::OK, &json!({"items": items})))
    }

    /// One grant.
    pub async fn grant(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        name: &str,
    ) -> Result<Response<Body>, Error> {
        call.query(&[]).check()?;
        let key = names::grant_key(name);
        let known = self.find(&key).await?;
        let verb = verb(call, known.is_some());
        self.permit_user(caller, verb, RESOURCE, &key.name).await?;
        match verb {
            "get" | "delete" if known.is_none() => Err(Error::not_found("Grant not found")),
            "delete" => {
                commit(call, Operation::Delete(key, Delete::default())).await?;
                Ok(no_content())
            }
            "get" => Ok(answer(StatusCode::OK, &known.map(|it| shown(&it.decode())).unwrap_or_default())),
            _ => {
                let mut sent = Sent::read(call, &["read", "write"])?;
                let mut set = |field: &str| Ok::<_, Error>(sent.texts(field)?.unwrap_or_default());
                let (read, write) = (set("read")?, set("write")?);
                let grant = Grant { read: read.into_iter().collect(), write: write.into_iter().collect() };
                let all = all(&self.parts.store).await?;
                if let Some(second) = other_writer(&all, &key.name, &grant) {
                    return Err(Error::conflict(second_writer(second)));
                }
                let fresh = Object::new(&names::versioned(&names::grant_kind()), "", &key.name);
                self.replace(call, known.map(|it| it.decode()).unwrap_or(fresh), spec(&grant), shown).await
            }
        }
    }
}

/// What became of the grant that a registration asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ensured {
    /// It was there.
    Same,
    /// It was made or changed.
    Written,
}

/// Sees to it that `reconciler` has exactly this grant. Who may write grants writes it; for everybody else
/// it must be there already. `inventory` is where the grants are, in this process or elsewhere.
///
/// # Errors
/// 403 for somebody who may not and whose reconciler has another grant or none, 409 for a section that has a
/// writer, and those of the store.
pub async fn ensure(
    inventory: &dyn Store,
    gate: &Gate,
    user: &User,
    reconciler: &str,
    wanted: &Grant,
) -> Result<Ensured, Error> {
    let all = all(inventory).await?;
    let name = worker_object(reconciler);
    let known = all.iter().find(|it| it.name() == name);
    if known.is_some_and(|it| Grant::of(it).is_same_as(wanted)) {
        return Ok(Ensured::Same);
    }
    let access = Access::Resource {
        verb: if known.is_some() { "update" } else { "create" },
        group: names::GROUP,
        resource: RESOURCE,
        subresource: "",
        namespace: "",
        name: &name,
    };
    gate.authorise(user, &access).await.map_err(|refusal| {
        let what = if known.is_some() { "has another grant" } else { "has no grant" };
        let detail = format!(
            "reconciler '{reconciler}' {what}, and you may not write grants: register without grants, or \
             have somebody write 'grants.inventory.concert.dev/{name}' first"
        );
        Error::refused(refusal, &detail)
    })?;
    if let Some(second) = other_writer(&all, &name, wanted) {
        return Err(Error::conflict(second_writer(second)));
    }
    for section in wanted.read.iter().chain(&wanted.write) {
        super::sections::check_name(section)?;
    }
    let by = By { manager: "inventory".into(), ..By::actor(user.name.clone()) }.because("registered");
    match known {
        Some(known) => {
            let mut object = known.clone();
            object.set("spec", spec(wanted));
            inventory.update(object, &by).await?;
        }
        None => {
            let mut object = Object::new(&names::versioned(&names::grant_kind()), "", &name);
            object.set("spec", spec(wanted));
            inventory.create(object, &by).await?;
        }
    }
    Ok(Ensured::Written)
}
