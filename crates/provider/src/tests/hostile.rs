//! Peers that break the protocol. They are written against the generated services, not against our own
//! server, which would not let them.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_util::StreamExt;
use prost_types::Struct;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, Streaming};

use super::stage::*;
use crate::alpha::structs::{from_struct, to_struct};
use crate::client::{self, Endpoint};
use crate::wire::v1alpha1::external_service_server::{ExternalService, ExternalServiceServer};
use crate::wire::v1alpha1::request::Op as Ask;
use crate::wire::v1alpha1::response::Op as Answer;
use crate::wire::v1alpha1::{self as wire};
use crate::*;

type Reply = Option<std::result::Result<Answer, Status>>;

/// Answers connect as it should and everything else as it is told.
#[derive(Clone)]
struct Hostile(Arc<dyn Fn(Ask) -> Reply + Send + Sync>);

#[tonic::async_trait]
impl ExternalService for Hostile {
    type SessionStream = Pin<Box<dyn Stream<Item = std::result::Result<wire::Response, Status>> + Send>>;

    async fn discover(
        &self,
        _: Request<wire::DiscoveryRequest>,
    ) -> std::result::Result<Response<wire::DiscoveryResponse>, Status> {
        Ok(Response::new(wire::DiscoveryResponse::default()))
    }

    async fn session(
        &self,
        request: Request<Streaming<wire::Request>>,
    ) -> std::result::Result<Response<Self::SessionStream>, Status> {
        let answer = self.0.clone();
        let replies = request.into_inner().map(move |request| match request.unwrap().op.unwrap() {
            Ask::Connect(ask) => Some(Ok(Answer::Connect(wire::ConnectResponse {
                resource: ask.resource,
                ..Default::default()
            }))),
            other => answer(other),
        });
        let replies = replies.take_while(|it| std::future::ready(it.is_some()));
        let replies = replies.map(|it| it.unwrap().map(|op| wire::Response { op: Some(op) }));
        Ok(Response::new(Box::pin(replies)))
    }
}

async fn serve(answer: impl Fn(Ask) -> Reply + Send + Sync + 'static) -> (Box<dyn External>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let service = ExternalServiceServer::new(Hostile(Arc::new(answer))).max_encoding_message_size(usize::MAX);
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let server = tonic::transport::Server::builder().add_service(service);
        server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
    });
    let client = client::connect(Endpoint::new(address)).unwrap();
    (client.connect(&object("a"), None, &call()).await.unwrap(), serving)
}

fn resource(ask: Ask) -> Option<Struct> {
    match ask {
        Ask::Observe(ask) => ask.resource,
        Ask::Create(ask) => ask.resource,
        Ask::Update(ask) => ask.resource,
        Ask::Delete(ask) => ask.resource,
        Ask::Connect(_) | Ask::Disconnect(_) => None,
    }
}

fn created(resource: Option<Struct>) -> Reply {
    Some(Ok(Answer::Create(wire::CreateResponse { resource, ..Default::default() })))
}

async fn create_error(answer: impl Fn(Ask) -> Reply + Send + Sync + 'static) -> Error {
    let (mut external, _serving) = serve(answer).await;
    external.create(&object("a"), &token("t"), &call()).await.unwrap_err()
}

#[tokio::test]
async fn an_answer_about_another_object_is_thrown_away() {
    let error = create_error(|ask| {
        let mut fields = from_struct(resource(ask).unwrap());
        fields["metadata"]["uid"] = "stranger".into();
        created(Some(to_struct(&fields)))
    })
    .await;
    assert_eq!((error.class, error.effect), (Class::Misbehaved, Effect::Unknown), "{error}");
}

#[tokio::test]
async fn an_empty_or_missing_object_is_thrown_away() {
    for empty in [None, Some(Struct::default())] {
        let error = create_error(move |_| created(empty.clone())).await;
        assert_eq!((error.class, error.effect), (Class::Misbehaved, Effect::Unknown), "{error}");
    }
}

#[tokio::test]
async fn the_answer_to_another_question_is_thrown_away() {
    let error = create_error(|ask| {
        Some(Ok(Answer::Delete(wire::DeleteResponse { resource: resource(ask), ..Default::default() })))
    })
    .await;
    assert_eq!((error.class, error.effect), (Class::Misbehaved, Effect::Unknown), "{error}");
}

#[tokio::test]
async fn a_huge_answer_is_refused_unread() {
    let error = create_error(|ask| {
        let mut fields = from_struct(resource(ask).unwrap());
        fields.insert("status".into(), serde_json::json!({"junk": "x".repeat(100 << 20)}));
        created(Some(to_struct(&fields)))
    })
    .await;
    assert_eq!((error.class, error.effect), (Class::Misbehaved, Effect::Unknown), "{error}");
    assert!(error.message.contains("too large"), "{error}");
}

#[tokio::test]
async fn a_session_that_ends_instead_of_answering_leaves_doubt() {
    let error = create_error(|_| None).await;
    assert_eq!((error.class, error.effect), (Class::Misbehaved, Effect::Unknown), "{error}");
}

#[tokio::test]
async fn an_error_of_a_prototype_handler_is_in_doubt_and_its_text_is_tamed() {
    let error = create_error(|_| Some(Err(Status::unknown("cannot\x1b[31m create\n".repeat(500))))).await;
    assert_eq!((error.class, error.effect), (Class::Transient, Effect::Unknown));
    assert!(error.message.starts_with("cannot\\u{1b}[31m create\\n"), "{error}");
    assert!(error.message.chars().count() < 3000);
}

#[tokio::test]
async fn a_definite_refusal_is_definite() {
    let error = create_error(|_| Some(Err(Status::invalid_argument("no such region")))).await;
    assert_eq!((error.class, error.effect), (Class::Terminal, Effect::None));
}

#[tokio::test]
async fn a_session_is_opened_again_after_an_error() {
    let (mut external, _serving) = serve(|ask| match ask {
        Ask::Create(_) => Some(Err(Status::aborted("again"))),
        Ask::Observe(ask) => Some(Ok(Answer::Observe(wire::ObserveResponse {
            resource: ask.resource,
            resource_exists: true,
            ..Default::default()
        }))),
        Ask::Disconnect(_) => Some(Ok(Answer::Disconnect(wire::DisconnectResponse {}))),
        _ => None,
    })
    .await;
    let error = external.create(&object("a"), &token("t"), &call()).await.unwrap_err();
    assert_eq!(error.class, Class::Conflict);
    assert!(external.observe(&object("a"), &call()).await.unwrap().exists);
    external.disconnect(&call()).await.unwrap();
}

#[tokio::test]
async fn garbage_instead_of_http_is_no_panic() {
    use tokio::io::AsyncWriteExt;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.write_all(&[0xff; 4096]).await);
        }
    });
    let client = client::connect(Endpoint::new(address)).unwrap();
    let error = client.handshake(&call()).await.unwrap_err();
    assert_eq!(error.class, Class::Unreachable, "{error}");
}
