//! Results in the words of workers that are no plugins: one entry says all.

use std::time::Duration;

use concert_engine::workers::Report;
use concert_engine::{Seen, Wait};
use concert_model::no8s::resolve::LEFT_AT;
use concert_model::no8s::{self, Phase};
use concert_model::{Object, ResourceVersion};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::batch::{list, under};
use super::door::{Inner, answer};
use super::entry;
use super::op::Op;
use crate::auth::User;
use crate::kube::Body;
use crate::rest::{Error, Fields};

impl Inner {
    pub async fn results(&self, user: &User, worker: &str, body: &Value) -> Result<Response<Body>, Error> {
        self.permit(user, "update", worker).await?;
        let list = list(body, "results")?;
        let object = self.worker(worker).await?;
        let object = &object;
        let answers = self.side_by_side(list, |result| self.result(user, worker, object, result)).await;
        Ok(answer(StatusCode::OK, &json!({"results": answers})))
    }

    async fn result(
        &self,
        user: &User,
        worker: &str,
        object: &Object,
        result: &Value,
    ) -> Result<Value, Error> {
        let (item, fence) = under(result)?;
        if entry::is_meant(&item) {
            let report = entry::report(result)?;
            self.permit_waiting(object, &item, &report).await?;
            return self.act(user, worker, &item, fence, Op::Result(report)).await;
        }
        let mut fields = Fields::of(result)?;
        let outcome = fields.choice("outcome", &["ready", "requeue", "not_ready", "failed"]);
        if outcome.is_none() && !fields.is_noted("outcome") {
            fields.required_text("outcome");
        }
        let message = fields.text("message").unwrap_or_default().to_owned();
        let observed = fields.integer("observed_generation");
        let class = fields.choice("error_class", &["transient", "terminal"]);
        let after = fields.number("retry_after").filter(|it| *it >= 0.0);
        let phase = phase(&mut fields, outcome);
        let outputs = fields.object("outputs").cloned();
        let conditions = fields.list("conditions").unwrap_or_default();
        let waits_for = fields.list("waits_for").unwrap_or_default();
        let mut ops = Vec::new();
        if let Some(outputs) = outputs {
            ops.push(Op::Outputs(json!(outputs)));
        }
        for condition in conditions {
            let mut inner = Fields::of(condition)?;
            let kind = inner.bounded_text("type", 1, 316).to_owned();
            ops.push(Op::condition(&mut inner, kind));
            fields.absorb(inner);
        }
        fields.check()?;
        // The answer to the first time was lost: what it wrote came before its end, and is not written again.
        if self.parts.board.has_ended(worker, &item, fence) {
            return Ok(json!({}));
        }
        // Before anything is written: what makes no sense changes nothing.
        let waits =
            if outcome == Some("not_ready") { self.waits(waits_for).await? } else { Some(Vec::new()) };
        let said = Some(message.clone()).filter(|it| !it.is_empty());
        ops.push(Op::Status(no8s::Report { phase, message: said, observed_generation: observed }));
        for op in ops {
            self.act(user, worker, &item, fence, op).await?;
        }
        let requeue_after = match &waits {
            Some(_) => after.and_then(|it| Duration::try_from_secs_f64(it).ok()),
            None => Some(Duration::ZERO),
        };
        let waits = waits.unwrap_or_default();
        let class = class.map(|it| ("error_class".to_owned(), json!(it)));
        // What is done or has failed says so by its phase.
        let is_open = matches!(phase, Phase::Reconciling | Phase::Pending);
        let left = is_open.then(|| (LEFT_AT.to_owned(), json!(phase.as_str())));
        let details = class.into_iter().chain(left).collect();
        let success = Some(phase != Phase::Failed);
        let report = Report { success, message, requeue_after, waits, details };
        self.act(user, worker, &item, fence, Op::Result(report)).await
    }

    /// What is waited for, as the worker says it read it, or else as it is now: a change from there on wakes
    /// the item, and one that has been already does so at once. None if some of it is gone, which is a change
    /// that has been.
    async fn waits(&self, list: &[Value]) -> Result<Option<Vec<Wait>>, Error> {
        let (mut waits, mut is_whole) = (Vec::new(), true);
        for wait in list {
            let id = wait["object"].as_str().and_then(|it| it.parse().ok()).or(wait["object"].as_u64());
            let Some(id) = id else {
                return Err(Error::unprocessable("waits_for: object must be the id of a resource"));
            };
            let Some(object) = self.find(id).await? else {
                is_whole = false;
                continue;
            };
            waits.push(match (wait["condition"].as_str(), wait["resource_version"].as_str()) {
                (Some(condition), _) => Wait::condition_of(&object, condition),
                (None, None) => Wait::change_of(&object),
                (None, Some(read)) => {
                    let (uid, resource_version) = (object.head().uid.clone(), ResourceVersion(read.into()));
                    let key = object.key().clone();
                    Wait::Object { key, seen: Seen::At { uid, resource_version }, condition: None }
                }
            });
        }
        Ok(is_whole.then_some(waits))
    }
}

/// The phase that a result leads to: the usual one of its outcome, unless it names another that the outcome
/// leaves open.
fn phase(fields: &mut Fields<'_>, outcome: Option<&str>) -> Phase {
    let open: &[Phase] = match outcome {
        Some("ready") => &[Phase::Ready],
        Some("requeue") => &[Phase::Reconciling, Phase::Ready, Phase::Pending],
        Some("not_ready") => &[Phase::Reconciling, Phase::Pending],
        Some("failed") => &[Phase::Failed],
        // It is refused for its outcome.
        _ => return Phase::Reconciling,
    };
    let Some(said) = fields.value("status") else { return open[0] };
    let said = said.as_str().and_then(|it| it.parse::<Phase>().ok());
    if let Some(phase) = said.filter(|it| open.contains(it)) {
        return phase;
    }
    let words: Vec<&str> = open.iter().map(|it| it.as_str()).collect();
    let outcome = outcome.unwrap_or_default();
    fields.refuse("status", &format!("status after outcome {outcome} must be {}", words.join(" or ")));
    open[0]
}
