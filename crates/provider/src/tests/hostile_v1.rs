//! Peers that break `concert.provider.v1`. They are written against the generated service, not against our own
//! server, which would not let them.

use std::pin::Pin;

use bytes::Bytes;
use futures_core::Stream;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use super::stage::*;
use crate::client::{self, Client, Endpoint};
use crate::wire::v1::provider_service_server::{ProviderService, ProviderServiceServer};
use crate::wire::v1::{self, create_response, observe_response};
use crate::*;

type Reply<T> = std::result::Result<T, Status>;

type Streamed<T> = Pin<Box<dyn Stream<Item = Reply<T>> + Send>>;

/// What it makes of one item of a batch.
type Seen = fn(v1::ObserveItem) -> Option<v1::ObserveResponse>;

/// Introduces itself as it should, and answers as it is told.
struct Hostile {
    created: v1::CreateResponse,
    seen: Seen,
}

#[tonic::async_trait]
impl ProviderService for Hostile {
    type ObserveStream = Streamed<v1::ObserveResponse>;
    type WatchStream = Streamed<v1::WatchResponse>;
    type EnumerateStream = Streamed<v1::EnumerateResponse>;

    async fn handshake(&self, _: Request<v1::HandshakeRequest>) -> Reply<Response<v1::HandshakeResponse>> {
        let kind = v1::Kind { kind: Some(crate::codec::kind_to(&bucket())), ..Default::default() };
        Ok(Response::new(v1::HandshakeResponse { revision: 1, kinds: vec![kind], ..Default::default() }))
    }

    async fn observe(&self, request: Request<v1::ObserveRequest>) -> Reply<Response<Self::ObserveStream>> {
        let items = request.into_inner().items.into_iter();
        let answers: Vec<Reply<v1::ObserveResponse>> = items.filter_map(self.seen).map(Ok).collect();
        Ok(Response::new(Box::pin(futures_util::stream::iter(answers))))
    }

    async fn create(&self, _: Request<v1::CreateRequest>) -> Reply<Response<v1::CreateResponse>> {
        Ok(Response::new(self.created.clone()))
    }

    async fn configure(&self, _: Request<v1::ConfigureRequest>) -> Reply<Response<v1::ConfigureResponse>> {
        Err(Status::unimplemented("configure"))
    }

    async fn validate(&self, _: Request<v1::ValidateRequest>) -> Reply<Response<v1::ValidateResponse>> {
        Err(Status::unimplemented("validate"))
    }

    async fn plan(&self, _: Request<v1::PlanRequest>) -> Reply<Response<v1::PlanResponse>> {
        Err(Status::unimplemented("plan"))
    }

    async fn update(&self, _: Request<v1::UpdateRequest>) -> Reply<Response<v1::UpdateResponse>> {
        Err(Status::unimplemented("update"))
    }

    async fn delete(&self, _: Request<v1::DeleteRequest>) -> Reply<Response<v1::DeleteResponse>> {
        Err(Status::unimplemented("delete"))
    }

    async fn lookup(&self, _: Request<v1::LookupRequest>) -> Reply<Response<v1::LookupResponse>> {
        Err(Status::unimplemented("lookup"))
    }

    async fn watch(&self, _: Request<v1::WatchRequest>) -> Reply<Response<Self::WatchStream>> {
        Err(Status::unimplemented("watch"))
    }

    async fn enumerate(&self, _: Request<v1::EnumerateRequest>) -> Reply<Response<Self::EnumerateStream>> {
        Err(Status::unimplemented("enumerate"))
    }
}

async fn serve(hostile: Hostile) -> (Client, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let service = ProviderServiceServer::new(hostile).max_encoding_message_size(usize::MAX);
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let server = tonic::transport::Server::builder().add_service(service);
        server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
    });
    (client::connect(Endpoint::new(address)).unwrap(), serving)
}

fn made(delta: v1::Delta) -> Option<create_response::Outcome> {
    let result = v1::Result { delta: Some(delta), ..Default::default() };
    Some(create_response::Outcome::Done(result))
}

/// What comes of an answer to a create that nobody can make sense of.
async fn create_error(uid: &str, outcome: Option<create_response::Outcome>) -> Error {
    let created = v1::CreateResponse { uid: uid.to_owned(), outcome };
    let (client, _serving) = serve(Hostile { created, seen: |_| None }).await;
    let mut external = client.connect(&object("a"), None, &call()).await.unwrap();
    external.create(&object("a"), &token("t"), &call()).await.unwrap_err()
}

/// An honest answer.
fn there(item: &v1::ObserveItem) -> v1::ObserveResponse {
    let object = crate::codec::object_from(&item.object).unwrap();
    let seen = v1::Observation { exists: true, ..Default::default() };
    let outcome = Some(observe_response::Outcome::Done(seen));
    v1::ObserveResponse { id: item.id, uid: object.uid().unwrap().to_string(), outcome }
}

/// What is seen of two objects that are looked at in the same moment.
async fn look(seen: Seen) -> [Result<Observation>; 2] {
    let (client, _serving) = serve(Hostile { created: v1::CreateResponse::default(), seen }).await;
    let (one, two, call) = (object("one"), object("two"), call());
    let mut first = client.connect(&one, None, &call).await.unwrap();
    let mut second = client.connect(&two, None, &call).await.unwrap();
    let (first, second) = tokio::join!(first.observe(&one, &call), second.observe(&two, &call));
    [first, second]
}

#[tokio::test]
async fn an_answer_about_another_object_is_thrown_away() {
    let error = create_error("stranger", made(v1::Delta::default())).await;
    assert_eq!((error.class, error.effect), (Class::Misbehaved, Effect::Unknown), "{error}");
    let [one, two] = look(|item| {
        let mut answer = there(&item);
        if answer.uid == "uid-one" {
            answer.uid = "stranger".to_owned();
        }
        Some(answer)
    })
    .await;
    assert_eq!(one.unwrap_err().class, Class::Misbehaved);
    assert!(two.unwrap().exists);
}

#[tokio::test]
async fn an_answer_without_an_outcome_is_none() {
    let error = create_error("uid-a", None).await;
    assert_eq!((error.class, error.effect), (Class::Misbehaved, Effect::Unknown), "{error}");
    let [one, two] = look(|item| {
        let answer = there(&item);
        let is_first = answer.uid == "uid-one";
        Some(if is_first { v1::ObserveResponse { outcome: None, ..answer } } else { answer })
    })
    .await;
    assert_eq!(one.unwrap_err().class, Class::Misbehaved);
    assert!(two.unwrap().exists);
}

#[tokio::test]
async fn an_object_that_is_left_out_of_a_batch_is_no_object_that_is_absent() {
    let [one, two] = look(|item| Some(there(&item)).filter(|it| it.uid != "uid-one")).await;
    let error = one.unwrap_err();
    assert_eq!(error.class, Class::Misbehaved);
    assert!(error.message.contains("left an object out"), "{error}");
    assert!(two.unwrap().exists);
}

#[tokio::test]
async fn a_delta_that_is_no_json_leaves_doubt() {
    for bad in ["{", "[]", "\"text\""] {
        let status = v1::Delta { status: Bytes::from_static(bad.as_bytes()), ..Default::default() };
        let spec = v1::Delta { spec: Bytes::from_static(bad.as_bytes()), ..Default::default() };
        for delta in [status, spec] {
            let error = create_error("uid-a", made(delta)).await;
            assert_eq!((error.class, error.effect), (Class::Misbehaved, Effect::Unknown), "{bad}: {error}");
        }
    }
}

#[tokio::test]
async fn a_huge_answer_is_refused_unread() {
    let status = Bytes::from(vec![b' '; 100 << 20]);
    let error = create_error("uid-a", made(v1::Delta { status, ..Default::default() })).await;
    assert_eq!((error.class, error.effect), (Class::Misbehaved, Effect::Unknown), "{error}");
    assert!(error.message.contains("too large"), "{error}");
}
