//! `GET /entries/{id}/sections/{name}/history`.

use std::collections::HashMap;

use concert_model::inventory::{Entry, Right, Section, names};
use concert_model::{Encoded, Revision, Uid, time};
use concert_store::backend::Act;
use concert_store::local::Past;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::caller::Caller;
use super::door::Inner;
use super::sections::code_of;
use crate::kube::Body;
use crate::rest::call::answer;
use crate::rest::{Call, Error};

/// Versions of one answer, unless another number is asked for, and at most.
const PAGE: i64 = 100;
const PAGE_MAX: i64 = 1_000;

impl Inner {
    /// The versions of a section, newest first: who wrote each, when, and what, unless it is secret. It
    /// outlives the section, and goes with the history of the store.
    pub async fn history(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        id: &str,
        name: &str,
    ) -> Result<Response<Body>, Error> {
        let answered = self.past(call, caller, id, name).await;
        self.note(call, caller, "get", (id, name), code_of(&answered)).await;
        answered
    }

    async fn past(
        &self,
        call: &Call<'_>,
        caller: &Caller<'_>,
        id: &str,
        name: &str,
    ) -> Result<Response<Body>, Error> {
        self.permit_section(caller, (Right::Read, "get"), id, name).await?;
        let mut query = call.query(&["limit", "before"]);
        let limit = query.integer("limit", PAGE, 1, PAGE_MAX);
        let before = match query.text("before").map(str::parse) {
            None => None,
            Some(Ok(before)) => Some(Revision(before)),
            Some(Err(_)) => {
                query.refuse("before", "before must be the position of an item");
                None
            }
        };
        query.check()?;
        let entry = self.entry(caller, id).await?;
        let past = self.parts.store.history(&names::section_key(id, name), before, limit).await?;
        if past.is_empty() && before.is_none() {
            return Err(Error::not_found("Section not found"));
        }
        let (uid, since, owners) = (Entry(&entry).uid(), entry.created_at(), owners(&past));
        // Those of an entry that had the name before are not this entry's. Of what is no longer kept only
        // the time tells.
        let is_ours = |it: &&Past| match owners.get(&it.uid) {
            Some(owner) => *owner == uid,
            None => since.is_none_or(|at| it.stamp.at >= at),
        };
        let ours: Vec<&Past> = past.iter().filter(is_ours).collect();
        let offsets = offsets(&ours);
        let items: Vec<Value> = ours.iter().map(|it| shown(it, &offsets)).collect();
        Ok(answer(StatusCode::OK, &json!({"items": items})))
    }
}

/// By incarnation of the section, the incarnation of the entry that it is a part of.
fn owners(past: &[Past]) -> HashMap<Uid, Uid> {
    let owner = |it: &Past| Some((it.uid.clone(), Section(&it.object.as_ref()?.decode()).entry_uid()?));
    past.iter().filter_map(owner).collect()
}

/// By incarnation of the section, what its versions are ahead of its generations: each version is one
/// generation, so that the version is known of states that are no longer kept.
fn offsets(past: &[&Past]) -> HashMap<Uid, i64> {
    let offset = |it: &&Past| {
        let version = i64::try_from(Section(&it.object.as_ref()?.decode()).version()).ok()?;
        Some((it.uid.clone(), version - it.generation))
    };
    past.iter().filter_map(offset).collect()
}

fn shown(past: &Past, offsets: &HashMap<Uid, i64>) -> Value {
    let version = offsets.get(&past.uid).map(|offset| past.generation + offset);
    let mut shown = json!({
        "version": version, "position": past.revision.0, "at": time::micros(past.stamp.at),
        "writer": &*past.stamp.actor, "act": act(past.act),
    });
    if let Some(object) = past.object.as_ref().map(Encoded::decode) {
        let section = Section(&object);
        match section.is_secret() {
            true => shown["secret"] = json!(true),
            false => shown["data"] = section.data().clone(),
        }
    }
    shown
}

fn act(act: Act) -> &'static str {
    match act {
        Act::Created => "created",
        Act::Updated => "written",
        Act::Removed => "removed",
    }
}
