//! Hosts ask for work and say that they live.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use concert_engine::workers::{Ask, Claimed};
use concert_model::time;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::batch::under;
use super::door::{Inner, answer};
use super::entry;
use crate::auth::User;
use crate::kube::Body;
use crate::rest::{Error, Fields};

/// Most items of one claim: what a host can start on before its leases end.
const LIMIT_MAX: i64 = 1000;
/// Longest wait: what idle connections survive on most ways.
const WAIT_MAX: f64 = 60.0;
/// Longest name of a claim: more than any sort of random number takes.
const CLAIM_ID_MAX: usize = 128;
/// Most items of one heartbeat.
const BEATS_MAX: usize = 10_000;

impl Inner {
    pub async fn claim(&self, user: &User, worker: &str, body: &Value) -> Result<Response<Body>, Error> {
        self.permit(user, "update", worker).await?;
        let mut fields = Fields::of_optional(body)?;
        let limit = fields.bounded_integer("limit", 0, LIMIT_MAX).unwrap_or(10);
        let wait = fields.number("wait_seconds").unwrap_or_default().clamp(0.0, WAIT_MAX);
        let host = fields.text("host_id").unwrap_or("unnamed");
        let kinds = fields.texts("resource_types");
        let id = fields.text("claim_id").filter(|it| !it.is_empty());
        if id.is_some_and(|it| it.len() > CLAIM_ID_MAX) {
            fields.refuse("claim_id", "claim_id must have at most 128 characters");
        }
        fields.check()?;
        self.worker(worker).await?;
        let kinds: Option<BTreeSet<Arc<str>>> = kinds.map(|it| it.into_iter().map(Arc::from).collect());
        // Nothing of anything is there at once.
        if limit == 0 || kinds.as_ref().is_some_and(BTreeSet::is_empty) {
            return Ok(answer(StatusCode::OK, &json!({"items": []})));
        }
        let ask = Ask {
            host: host.into(),
            limit: usize::try_from(limit).unwrap_or(1),
            wait: Duration::from_secs_f64(wait),
            kinds,
            id: id.map(Arc::from),
        };
        let claimed = self.parts.board.claim(worker, ask).await;
        let (entries, resources): (Vec<Claimed>, Vec<Claimed>) =
            claimed.into_iter().partition(|it| entry::is_meant(&it.item));
        let mut items: Vec<Value> = resources.iter().map(|it| self.lent(it)).collect();
        items.extend(self.lent_entries(worker, &entries).await?);
        Ok(answer(StatusCode::OK, &json!({"items": items})))
    }

    pub async fn heartbeat(&self, user: &User, worker: &str, body: &Value) -> Result<Response<Body>, Error> {
        self.permit(user, "update", worker).await?;
        let mut fields = Fields::of_optional(body)?;
        let host: Arc<str> = fields.text("host_id").unwrap_or("unnamed").into();
        let list = fields.list("items").unwrap_or_default();
        if list.len() > BEATS_MAX {
            fields.refuse("items", "too many items for one heartbeat");
        }
        fields.check()?;
        // One that is passed over would look as if it was renewed.
        let items = list.iter().map(under).collect::<Result<Vec<_>, _>>()?;
        self.worker(worker).await?;
        let answers = self.parts.board.heartbeat(worker, &host, &items);
        let (mut kept, mut lost) = (Vec::new(), Vec::new());
        for ((item, fence), answer) in items.iter().zip(answers) {
            match answer {
                Ok(expires) => {
                    kept.push(json!({"item": item, "fence": fence, "expires_at": time::micros(expires)}));
                }
                Err(stale) => lost.push(json!({"item": item, "fence": fence, "reason": stale.to_string()})),
            }
        }
        Ok(answer(StatusCode::OK, &json!({"items": kept, "lost": lost})))
    }

    fn lent(&self, it: &Claimed) -> Value {
        lent(it, (self.parts.show)(&it.object))
    }
}

/// An item as its host is told of it.
pub(super) fn lent(it: &Claimed, object: Value) -> Value {
    let reasons = it.reasons.to_string();
    let reasons: Vec<&str> = reasons.split(", ").filter(|it| !it.is_empty()).collect();
    json!({
            "item": it.item,
            "object": object,
            "lease": {
                "token": format!("{}-{}", it.item, it.fence),
                "fence": it.fence,
                "expires_at": time::micros(it.expires_at),
            },
            "attempt": it.attempt,
            "reasons": reasons,
    })
}

/// What an item is called; a number is as good as its text.
pub(super) fn item(value: &Value) -> Option<Arc<str>> {
    match &value["item"] {
        Value::String(text) => Some(text.as_str().into()),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    }
}
