//! Asks all webhooks that a write concerns, one after the other.

use std::sync::Arc;

use async_trait::async_trait;
use concert_store::{Clock, Error, Local, PageRequest, Query, Store};
use http::StatusCode;
use serde_json::{Value, json};

use super::address::Address;
use super::client::{Client, NoAnswer};
use super::declared::{Webhook, webhook_kind};
use super::patch;
use crate::auth::User;
use crate::rest::admit::Webhooks;
use crate::write::{Act, Denied};

/// Most of a webhook's own words that are passed on.
const MESSAGE_CHARACTERS_MAX: usize = 4096;

/// All webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Chain {
    store: Local,
    client: Arc<Client>,
}

/// What a webhook answers.
struct Answer {
    is_allowed: bool,
    message: String,
    patches: Value,
}

impl Chain {
    /// The webhooks that `store` holds.
    pub fn new(store: Local, clock: Arc<dyn Clock>) -> Self {
        Self::with_client(store, Client::new(clock))
    }

    pub(super) fn with_client(store: Local, client: Client) -> Self {
        Self { store, client: Arc::new(client) }
    }

    /// Those to ask, in order. Read anew each time: one that was taken away is not asked.
    async fn concerned(&self, operation: &str, resource: &Value) -> Result<Vec<Webhook>, Denied> {
        let page = match self.store.list(&Query::all(webhook_kind()), &PageRequest::whole()).await {
            Ok(page) => page,
            Err(Error::UnknownKind { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let text = |field: &str| resource.get(field).and_then(Value::as_str).unwrap_or_default();
        let (resource_type, version) = (text("resource_type_name"), text("resource_type_version"));
        let all = page.items.iter().map(|encoded| Webhook::read(&encoded.decode()));
        let mut webhooks: Vec<_> = all.filter(|it| it.concerns(operation, resource_type, version)).collect();
        webhooks.sort_by_key(Webhook::rank);
        Ok(webhooks)
    }

    /// The answer of one; none if it has none and needs none.
    async fn ask(&self, webhook: &Webhook, question: &Value) -> Result<Option<Answer>, Denied> {
        match self.call(webhook, question).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if webhook.is_optional => {
                tracing::warn!(webhook = %webhook.name, %error, "webhook failed and is ignored");
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(webhook = %webhook.name, %error, "webhook failed and the request is refused");
                Err(Denied::Forbidden(format!("Admission webhook {} failed: {error}", webhook.name)))
            }
        }
    }

    async fn call(&self, webhook: &Webhook, question: &Value) -> Result<Answer, NoAnswer> {
        let address = Address::parse(&webhook.url).map_err(|error| NoAnswer(error.to_string()))?;
        let body = question.to_string().into_bytes();
        let (code, bytes) = self.client.post(&address, body, webhook.timeout).await?;
        read(&webhook.name, code, &bytes)
    }
}

#[async_trait]
impl Webhooks for Chain {
    /// Mutating webhooks may change `new["spec"]`; a refusal leaves it as it was.
    async fn admit(
        &self,
        user: &User,
        act: Act,
        old: Option<&Value>,
        new: &mut Value,
        is_dry_run: bool,
    ) -> Result<(), Denied> {
        let operation = match act {
            Act::Create => "CREATE",
            Act::Update => "UPDATE",
            Act::Delete => "DELETE",
        };
        let webhooks = self.concerned(operation, new).await?;
        if webhooks.is_empty() {
            return Ok(());
        }
        let mut resource = json!({});
        for field in ["name", "resource_type_name", "resource_type_version", "spec"] {
            resource[field] = new.get(field).cloned().unwrap_or_default();
        }
        let mut question = json!({
            "operation": operation, "resource": resource, "old_resource": old,
            "user": {"username": &*user.name}, "dry_run": is_dry_run,
        });
        for webhook in webhooks {
            let Some(answer) = self.ask(&webhook, &question).await? else { continue };
            if !answer.is_allowed {
                return Err(Denied::Forbidden(answer.message));
            }
            if webhook.is_mutating && act != Act::Delete {
                let spec = patch::apply(&question["resource"]["spec"], &answer.patches);
                question["resource"]["spec"] = spec.map_err(|error| {
                    let name = &webhook.name;
                    Denied::Forbidden(format!("Admission webhook {name} returned an invalid patch: {error}"))
                })?;
            }
        }
        new["spec"] = question["resource"]["spec"].take();
        Ok(())
    }
}

fn read(name: &str, code: StatusCode, bytes: &[u8]) -> Result<Answer, NoAnswer> {
    if code.is_server_error() || code.is_redirection() || code.is_informational() {
        return Err(NoAnswer(format!("HTTP {code}")));
    }
    let answer: Value =
        serde_json::from_slice(bytes).map_err(|_| NoAnswer(format!("HTTP {code}, and no JSON in it")))?;
    let odd = |what: &str| NoAnswer(format!("HTTP {code}, and {what}"));
    let fields = answer.as_object().ok_or_else(|| odd("no object in it"))?;
    let is_allowed = match fields.get("allowed") {
        None | Some(Value::Null) => false,
        Some(allowed) => allowed.as_bool().ok_or_else(|| odd("allowed is neither true nor false"))?,
    };
    let message = fields.get("message").and_then(Value::as_str).filter(|it| !it.is_empty());
    let message = match message {
        Some(message) => message.chars().take(MESSAGE_CHARACTERS_MAX).collect(),
        None => format!("Admission webhook {name} denied the request"),
    };
    Ok(Answer { is_allowed, message, patches: fields.get("patches").cloned().unwrap_or_default() })
}
