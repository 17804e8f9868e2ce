//! `external.proto.v1alpha1`, the calling side: one session for each reconcile.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use prost::Message;
use prost_types::Struct;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Streaming};

use super::Inner;
use super::deadline::Deadline;
use super::status::{self, Verb};
use super::v1::Wire;
use crate::alpha::delta::{received, sent};
use crate::alpha::structs::to_struct;
use crate::answer::{Created, Deleted, Lookup, Observation, Plan, Updated};
use crate::codec::{misbehaved, readable};
use crate::contract::{Call, External, Result, Token};
use crate::details::Details;
use crate::error::Error;
use crate::handshake::{Capabilities, Handshake, Protocol, Served, WatchedKind};
use crate::text;
use crate::wire::v1alpha1::external_service_client::ExternalServiceClient;
use crate::wire::v1alpha1::request::Op as Ask;
use crate::wire::v1alpha1::response::Op as Answer;
use crate::wire::v1alpha1::{self as wire, reconciler};

fn client(wire: &Wire) -> ExternalServiceClient<Channel> {
    ExternalServiceClient::new(wire.channel.clone()).max_decoding_message_size(wire.message_bytes_max)
}

/// Discover, as a handshake.
pub(crate) async fn handshake(wire: &Wire, deadline: Deadline) -> Result<Handshake> {
    let request = deadline.request(wire::DiscoveryRequest {});
    let found = deadline.answer(Verb::Read, client(wire).discover(request)).await?;
    let (kinds, refused) = readable(found.reconcilers.into_iter().map(served));
    Ok(Handshake {
        protocol: Protocol::V1Alpha1,
        name: String::new(),
        version: text::clean(&found.version),
        capabilities: Capabilities::default(),
        kinds,
        refused,
    })
}

/// One kind of Discover's answer.
pub(crate) fn served(found: wire::Reconciler) -> Result<Served> {
    let kind = kind_of(found.r#for.as_ref())?;
    let broken =
        |error: Error| misbehaved(format!("what is said of {kind} makes no sense: {}", error.message));
    declared(kind.clone(), found).map_err(broken)
}

/// What is said of `kind`.
fn declared(kind: GroupVersionKind, found: wire::Reconciler) -> Result<Served> {
    let mut served = Served::new(kind);
    served.owns = found.owns.iter().map(|it| kind_of(it.obj.as_ref())).collect::<Result<_>>()?;
    served.watches = found.watches.iter().map(|it| watched(it.obj.as_ref())).collect::<Result<_>>()?;
    served.concurrency = usize::try_from(found.max_concurrent).ok().filter(|it| *it > 0);
    served.poll = positive(found.poll_interval);
    served.timeout = positive(found.session_timeout);
    Ok(served)
}

fn watched(reference: Option<&reconciler::Reference>) -> Result<WatchedKind> {
    let kind = kind_of(reference)?;
    let (name, namespace) = reference.map(|it| (it.name.clone(), it.namespace.clone())).unwrap_or_default();
    Ok(WatchedKind { kind, name, namespace })
}

fn kind_of(reference: Option<&reconciler::Reference>) -> Result<GroupVersionKind> {
    let reference = reference.ok_or_else(|| misbehaved("a kind is missing in Discover's answer"))?;
    GroupVersionKind::parse(&reference.api_version, &reference.kind)
        .map_err(|e| misbehaved(format!("kind {:?} of {:?}: {e}", reference.kind, reference.api_version)))
}

fn positive(duration: Option<prost_types::Duration>) -> Option<Duration> {
    duration.and_then(|it| Duration::try_from(it).ok()).filter(|it| !it.is_zero())
}

/// One object at a provider. The stream is opened when first needed and again after an error, since
/// any error ends it.
pub(crate) struct Session {
    inner: Arc<Inner>,
    named: String,
    streams: Option<Streams>,
}

struct Streams {
    requests: mpsc::Sender<wire::Request>,
    answers: Streaming<wire::Response>,
}

impl Session {
    pub(crate) async fn open(inner: Arc<Inner>, object: &Object, deadline: Deadline) -> Result<Self> {
        let kind = object.gvk().map_err(|e| misbehaved(e.to_string()))?;
        let mut session = Self { inner, named: kind.to_string(), streams: None };
        let streams = session.begin(object, deadline).await?;
        session.streams = Some(streams);
        Ok(session)
    }

    /// Opens the stream. The connect goes with it: servers do not answer before they are asked.
    async fn begin(&self, object: &Object, deadline: Deadline) -> Result<Streams> {
        let object = sent(object);
        // One request is under way at a time; the second place is for the disconnect after a timeout.
        let (requests, outgoing) = mpsc::channel(2);
        let connect = Ask::Connect(wire::ConnectRequest { resource: Some(to_struct(object.as_map())) });
        let first = wire::Request { named: self.named.clone(), op: Some(connect) };
        self.inner.check_size(first.encoded_len())?;
        requests.try_send(first).expect("an empty channel has a place");
        let wire = self.inner.wire()?;
        let mut client = client(&wire);
        let answers =
            deadline.answer(Verb::Read, client.session(Request::new(ReceiverStream::new(outgoing)))).await?;
        let mut streams = Streams { requests, answers };
        match streams.next(deadline, Verb::Read).await? {
            Answer::Connect(answer) => received(&object, answer.resource, false)?,
            other => return Err(out_of_turn("connect", &other)),
        };
        Ok(streams)
    }

    /// One request and its answer. After any error the stream is of no use.
    async fn ask(&mut self, object: &Object, ask: Ask, deadline: Deadline, verb: Verb) -> Result<Answer> {
        self.inner.check_size(ask.encoded_len())?;
        let mut streams = match self.streams.take() {
            Some(streams) => streams,
            None => self.begin(object, deadline).await?,
        };
        let answer = streams.ask(self.named.clone(), ask, deadline, verb).await?;
        self.streams = Some(streams);
        Ok(answer)
    }
}

impl Streams {
    async fn ask(&mut self, named: String, ask: Ask, deadline: Deadline, verb: Verb) -> Result<Answer> {
        if self.requests.send(wire::Request { named, op: Some(ask) }).await.is_err() {
            // The provider ended the session before we asked; its status says why.
            return self.next(deadline, Verb::Read).await;
        }
        self.next(deadline, verb).await
    }

    async fn next(&mut self, deadline: Deadline, verb: Verb) -> Result<Answer> {
        let next = async { self.answers.message().await.map_err(|e| status::error(&e, verb)) };
        let in_doubt = |error: Error| if verb == Verb::Write { error.in_doubt() } else { error };
        match deadline.within(verb, next).await? {
            Some(wire::Response { op: Some(answer) }) => Ok(answer),
            Some(wire::Response { op: None }) => Err(in_doubt(misbehaved("the provider's answer is empty"))),
            None => Err(in_doubt(misbehaved("the provider ended the session instead of answering"))),
        }
    }
}

fn out_of_turn(asked: &str, answer: &Answer) -> Error {
    let answered = match answer {
        Answer::Connect(_) => "connect",
        Answer::Observe(_) => "observe",
        Answer::Create(_) => "create",
        Answer::Update(_) => "update",
        Answer::Delete(_) => "delete",
        Answer::Disconnect(_) => "disconnect",
    };
    misbehaved(format!("the provider answered {asked} with {answered}"))
}

fn resource(object: &Object) -> Option<Struct> {
    Some(to_struct(object.as_map()))
}

#[async_trait]
impl External for Session {
    async fn observe(&mut self, object: &Object, call: &Call) -> Result<Observation> {
        let object = sent(object);
        let ask = Ask::Observe(wire::ObserveRequest { resource: resource(&object) });
        match self.ask(&object, ask, Deadline::of(call), Verb::Read).await? {
            Answer::Observe(answer) => Ok(Observation {
                exists: answer.resource_exists,
                is_up_to_date: answer.resource_up_to_date,
                diff: Vec::new(),
                delta: received(&object, answer.resource, answer.resource_late_initialized)?,
                connection: answer.connection_details.into_iter().collect::<Details>(),
            }),
            other => Err(out_of_turn("observe", &other)),
        }
    }

    async fn plan(&mut self, object: &Object, call: &Call) -> Result<Plan> {
        let seen = self.observe(object, call).await?;
        Ok(super::plan_of(object, &seen))
    }

    async fn create(&mut self, object: &Object, _: &Token, call: &Call) -> Result<Created> {
        let object = sent(object);
        let ask = Ask::Create(wire::CreateRequest { resource: resource(&object) });
        match self.ask(&object, ask, Deadline::of(call), Verb::Write).await? {
            Answer::Create(answer) => Ok(Created {
                delta: received(&object, answer.resource, false).map_err(Error::in_doubt)?,
                connection: answer.connection_details.into_iter().collect(),
                notes: answer.additional_details.into_iter().collect(),
                ..Created::default()
            }),
            other => Err(out_of_turn("create", &other).in_doubt()),
        }
    }

    async fn update(&mut self, object: &Object, call: &Call) -> Result<Updated> {
        let object = sent(object);
        let ask = Ask::Update(wire::UpdateRequest { resource: resource(&object), ..Default::default() });
        match self.ask(&object, ask, Deadline::of(call), Verb::Write).await? {
            Answer::Update(answer) => Ok(Updated {
                delta: received(&object, answer.resource, false).map_err(Error::in_doubt)?,
                connection: answer.connection_details.into_iter().collect(),
                notes: answer.additional_details.into_iter().collect(),
                ..Updated::default()
            }),
            other => Err(out_of_turn("update", &other).in_doubt()),
        }
    }

    async fn delete(&mut self, object: &Object, call: &Call) -> Result<Deleted> {
        let object = sent(object);
        let ask = Ask::Delete(wire::DeleteRequest { resource: resource(&object) });
        match self.ask(&object, ask, Deadline::of(call), Verb::Write).await? {
            Answer::Delete(answer) => Ok(Deleted {
                delta: received(&object, answer.resource, false).map_err(Error::in_doubt)?,
                notes: answer.additional_details.into_iter().collect(),
                ..Deleted::default()
            }),
            other => Err(out_of_turn("delete", &other).in_doubt()),
        }
    }

    async fn lookup(&mut self, _: &Object, _: &Token, _: &Call) -> Result<Lookup> {
        Ok(Lookup::Unknown)
    }

    /// Says goodbye, closes our half and waits for the provider to close its own.
    async fn disconnect(mut self: Box<Self>, call: &Call) -> Result<()> {
        let Some(mut streams) = self.streams.take() else { return Ok(()) };
        let deadline = Deadline::of(call);
        let ask = Ask::Disconnect(wire::DisconnectRequest {});
        match streams.ask(self.named.clone(), ask, deadline, Verb::Read).await? {
            Answer::Disconnect(_) => {}
            other => return Err(out_of_turn("disconnect", &other)),
        }
        let Streams { requests, mut answers } = streams;
        drop(requests);
        let end = async { answers.message().await.map_err(|e| status::error(&e, Verb::Read)) };
        match deadline.within(Verb::Read, end).await? {
            None => Ok(()),
            Some(_) => Err(misbehaved("the provider went on after disconnect")),
        }
    }
}
