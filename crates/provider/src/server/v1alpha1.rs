//! `external.proto.v1alpha1`, the serving side: sessions for callers of the prototype.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use concert_model::{GroupVersionKind, Object};
use futures_core::Stream;
use futures_util::stream;
use prost_types::Struct;
use serde_json::Value;
use tonic::{Code, Request, Response, Status, Streaming};

use super::desk::{Desk, Job};
use super::peer::Peer;
use crate::alpha::CREATE_PENDING;
use crate::alpha::delta::applied;
use crate::alpha::structs::{from_struct, to_struct};
use crate::answer::Delta;
use crate::client::status::with_retry_info;
use crate::codec::{duration_to, misbehaved};
use crate::contract::{Call, Result, Token};
use crate::details::Details;
use crate::error::{Class, Effect, Error};
use crate::handshake::Served;
use crate::wire::v1alpha1::external_service_server::ExternalService;
use crate::wire::v1alpha1::request::Op as Ask;
use crate::wire::v1alpha1::response::Op as Answer;
use crate::wire::v1alpha1::{self as wire, reconciler};

/// How long a mutation may take: these callers do not say.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Service(pub(crate) Desk);

#[tonic::async_trait]
impl ExternalService for Service {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<wire::Response, Status>> + Send>>;

    async fn discover(
        &self,
        request: Request<wire::DiscoveryRequest>,
    ) -> Result<Response<wire::DiscoveryResponse>, Status> {
        self.0.welcome(&self.0.peer(&request))?;
        let shake = self.0.host.handshake();
        let reconcilers = shake.kinds.iter().map(reconciler).collect();
        Ok(Response::new(wire::DiscoveryResponse { version: shake.version, reconcilers }))
    }

    async fn session(
        &self,
        request: Request<Streaming<wire::Request>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let peer = self.0.peer(&request);
        self.0.welcome(&peer)?;
        let session = Session { desk: self.0.clone(), peer, requests: request.into_inner(), kind: None };
        // Pulled by the caller: one request, one answer, nothing runs ahead.
        let answers = stream::unfold(Some(session), |session| async move {
            let mut session = session?;
            match session.step().await {
                Ok(None) => None,
                Ok(Some(answer)) => Some((Ok(wire::Response { op: Some(answer) }), Some(session))),
                Err(status) => Some((Err(status), None)),
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

/// One kind of Discover's answer.
pub(crate) fn reconciler(served: &Served) -> wire::Reconciler {
    let reference = |kind: &GroupVersionKind, name: &str, namespace: &str| reconciler::Reference {
        api_version: kind.api_version(),
        kind: kind.group_kind.kind.to_string(),
        name: name.to_owned(),
        namespace: namespace.to_owned(),
    };
    let owned = |kind| reconciler::Owned { obj: Some(reference(kind, "", "")) };
    let watched = |it: &crate::WatchedKind| reconciler::Watch {
        obj: Some(reference(&it.kind, &it.name, &it.namespace)),
    };
    wire::Reconciler {
        named: served.kind.to_string(),
        r#for: Some(reference(&served.kind, "", "")),
        owns: served.owns.iter().map(owned).collect(),
        watches: served.watches.iter().map(watched).collect(),
        max_concurrent: served.concurrency.map_or(0, |it| i64::try_from(it).unwrap_or(i64::MAX)),
        poll_interval: served.poll.map(duration_to),
        session_timeout: served.timeout.map(duration_to),
    }
}

struct Session {
    desk: Desk,
    peer: Arc<Peer>,
    requests: Streaming<wire::Request>,
    /// The kind that was connected.
    kind: Option<GroupVersionKind>,
}

impl Session {
    /// Answers the next request; none at a clean end.
    async fn step(&mut self) -> Result<Option<Answer>, Status> {
        let next = tokio::select! {
            next = self.requests.message() => next?,
            () = self.desk.ending.cancelled() => return Err(Status::unavailable("the provider is shutting down")),
        };
        let Some(request) = next else { return Ok(None) };
        let Some(op) = request.op else { return Err(Status::invalid_argument("the request is empty")) };
        self.answer(op).await.map(Some).map_err(|error| status(&error))
    }

    async fn answer(&mut self, ask: Ask) -> Result<Answer> {
        let provider = Arc::clone(&self.desk.host.provider);
        match ask {
            Ask::Connect(ask) => {
                let object = object(ask.resource)?;
                self.desk.check_object(&self.peer, &object)?;
                self.kind = object.gvk().ok();
                let resource = reply(&object, &Delta::default());
                Ok(Answer::Connect(wire::ConnectResponse { resource, ..Default::default() }))
            }
            Ask::Observe(ask) => {
                let object = self.connected(ask.resource)?;
                let seen = provider.observe(&object, None).await?;
                Ok(Answer::Observe(wire::ObserveResponse {
                    resource: reply(&object, &seen.delta),
                    resource_exists: seen.exists,
                    resource_up_to_date: seen.is_up_to_date,
                    resource_late_initialized: seen.delta.spec.is_some(),
                    connection_details: self.details(seen.connection),
                }))
            }
            Ask::Create(ask) => {
                let object = self.connected(ask.resource)?;
                let token = token(&object);
                let work = |provider: Arc<dyn crate::Provider>, job: Job| async move {
                    provider.create(&job.object, None, &token, &job.call).await
                };
                let made = self.desk.mutate(job(&object), work).await?;
                Ok(Answer::Create(wire::CreateResponse {
                    resource: reply(&object, &made.delta),
                    connection_details: self.details(made.connection),
                    additional_details: made.notes.into_iter().collect(),
                }))
            }
            Ask::Update(ask) => {
                let object = self.connected(ask.resource)?;
                let work = |provider: Arc<dyn crate::Provider>, job: Job| async move {
                    provider.update(&job.object, None, &job.call).await
                };
                let made = self.desk.mutate(job(&object), work).await?;
                Ok(Answer::Update(wire::UpdateResponse {
                    resource: reply(&object, &made.delta),
                    connection_details: self.details(made.connection),
                    additional_details: made.notes.into_iter().collect(),
                }))
            }
            Ask::Delete(ask) => {
                let object = self.connected(ask.resource)?;
                let work = |provider: Arc<dyn crate::Provider>, job: Job| async move {
                    provider.delete(&job.object, None, &job.call).await
                };
                let gone = self.desk.mutate(job(&object), work).await?;
                Ok(Answer::Delete(wire::DeleteResponse {
                    resource: reply(&object, &gone.delta),
                    additional_details: gone.notes.into_iter().collect(),
                }))
            }
            Ask::Disconnect(_) => {
                self.kind = None;
                Ok(Answer::Disconnect(wire::DisconnectResponse {}))
            }
        }
    }

    /// The object of a request, which must be of the kind that was connected.
    fn connected(&self, resource: Option<Struct>) -> Result<Object> {
        let kind = self.kind.as_ref().ok_or_else(|| misbehaved("connect comes first"))?;
        let object = object(resource)?;
        if object.gvk().ok().as_ref() != Some(kind) {
            return Err(misbehaved(format!("the session was connected for {kind}")));
        }
        Ok(object)
    }

    fn details(&self, details: Details) -> std::collections::HashMap<String, Vec<u8>> {
        let details = self.desk.guard(&self.peer, details);
        details.iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect()
    }
}

fn object(resource: Option<Struct>) -> Result<Object> {
    let fields = from_struct(resource.unwrap_or_default());
    Object::from_value(Value::Object(fields)).map_err(|e| misbehaved(format!("not an object: {e}")))
}

fn reply(object: &Object, delta: &Delta) -> Option<Struct> {
    Some(to_struct(applied(object, delta).as_map()))
}

fn job(object: &Object) -> Job {
    Job { object: object.clone(), account: None, call: Call::within(TIMEOUT) }
}

/// These callers bring no token, but they stamp the object before each attempt: the same stamp is the
/// same attempt.
fn token(object: &Object) -> Token {
    let uid = object.uid().map(|it| it.to_string()).unwrap_or_default();
    let stamp = object.annotation(CREATE_PENDING).map(str::to_owned);
    let version = || object.resource_version().map(|it| it.to_string()).unwrap_or_default();
    Token(format!("{uid}/{}", stamp.unwrap_or_else(version)).into())
}

/// The status that the calling side reads as this error; see there for the table.
fn status(error: &Error) -> Status {
    let code = match error.class {
        _ if error.effect == Effect::Unknown => Code::Unknown,
        Class::Conflict => Code::Aborted,
        Class::Terminal | Class::Misbehaved => Code::InvalidArgument,
        Class::NeedsHuman => Code::FailedPrecondition,
        Class::Denied => Code::PermissionDenied,
        Class::NotServed => Code::Unimplemented,
        // The only code that says both "certainly not done" and "try again".
        Class::Transient | Class::Throttled | Class::Unreachable => Code::ResourceExhausted,
    };
    match error.retry_after {
        Some(wait) => with_retry_info(code, &error.message, wait),
        None => Status::new(code, &error.message),
    }
}
