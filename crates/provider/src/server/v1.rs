//! `concert.provider.v1`, the serving side.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tonic::{Request, Response, Status};

use super::desk::{Desk, Job};
use super::peer::Peer;
use crate::alpha::EXTERNAL_NAME;
use crate::answer::Lookup;
use crate::client::status::with_retry_info;
use crate::codec;
use crate::contract::{Call, Configuration, Enumerate, Result, Token};
use crate::error::{Class, Effect, Error};
use crate::wire::v1::{self, provider_service_server::ProviderService};

/// Most items of one Observe.
const ITEMS_MAX: usize = 64;

/// How long a mutation may take whose caller does not say.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Service(pub(crate) Desk);

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service {
    fn account(
        &self,
        peer: &Peer,
        account: Option<v1::AccountReference>,
    ) -> Result<Option<Arc<Configuration>>> {
        account.map(|it| self.0.host.account(peer.identity(), &it.name, &it.fingerprint)).transpose()
    }

    fn job(&self, peer: &Peer, mutation: Option<v1::Mutation>) -> Result<Job> {
        let mutation = mutation.ok_or_else(|| codec::misbehaved("the mutation is missing"))?;
        let object = codec::object_from(&mutation.object)?;
        self.0.check_object(peer, &object)?;
        let account = self.account(peer, mutation.account)?;
        let timeout = codec::duration_from(mutation.deadline).filter(|it| !it.is_zero()).unwrap_or(DEADLINE);
        let fence = Some(mutation.fence).filter(|it| *it > 0);
        Ok(Job { object, account, call: Call { timeout, fence } })
    }

    async fn observe_one(self: Arc<Self>, peer: Arc<Peer>, item: v1::ObserveItem) -> v1::ObserveResponse {
        use v1::observe_response::Outcome;
        let mut uid = String::new();
        let seen = async {
            let object = codec::object_from(&item.object)?;
            uid = object.uid().map(|it| it.to_string()).unwrap_or_default();
            self.0.check_object(&peer, &object)?;
            let account = self.account(&peer, item.account)?;
            let mut seen = self.0.host.provider.observe(&object, account.as_deref()).await?;
            seen.connection = self.0.guard(&peer, seen.connection);
            Ok::<_, Error>(seen)
        };
        let outcome = match seen.await {
            Ok(seen) => Outcome::Done(codec::observation_to(&seen)),
            Err(error) => Outcome::Failed(codec::failure_to(&error)),
        };
        v1::ObserveResponse { id: item.id, uid, outcome: Some(outcome) }
    }
}

/// Refuses a request that breaks the protocol, rather than an object that breaks a rule.
fn status(error: &Error) -> Status {
    let code = match error.class {
        Class::Misbehaved => tonic::Code::InvalidArgument,
        Class::NotServed => tonic::Code::Unimplemented,
        Class::Denied => tonic::Code::PermissionDenied,
        Class::Throttled => tonic::Code::ResourceExhausted,
        _ => tonic::Code::Unavailable,
    };
    match error.retry_after {
        Some(wait) => with_retry_info(code, &error.message, wait),
        None => Status::new(code, &error.message),
    }
}

fn uid(object: &concert_model::Object) -> String {
    object.uid().map(|it| it.to_string()).unwrap_or_default()
}

/// Answers a mutation.
macro_rules! respond {
    ($response:ident, $outcome:path, $uid:expr, $result:expr, $encode:expr) => {{
        use $outcome as Outcome;
        let outcome = match $result {
            Ok(done) => Outcome::Done($encode(&done)),
            Err(error) if error.effect == Effect::Unknown => Outcome::Unknown(codec::failure_to(&error)),
            Err(error) => Outcome::Failed(codec::failure_to(&error)),
        };
        Ok(Response::new(v1::$response { uid: $uid, outcome: Some(outcome) }))
    }};
}

#[tonic::async_trait]
impl ProviderService for Arc<Service> {
    type ObserveStream = Streamed<v1::ObserveResponse>;
    type WatchStream = Streamed<v1::WatchResponse>;
    type EnumerateStream = Streamed<v1::EnumerateResponse>;

    async fn handshake(
        &self,
        request: Request<v1::HandshakeRequest>,
    ) -> Result<Response<v1::HandshakeResponse>, Status> {
        self.0.welcome(&self.0.peer(&request))?;
        let revisions = &request.get_ref().revisions;
        if !revisions.is_empty() && !revisions.contains(&1) {
            return Err(Status::failed_precondition("this provider speaks revision 1 of the protocol"));
        }
        Ok(Response::new(codec::handshake_to(&self.0.host.handshake(), 1)))
    }

    async fn configure(
        &self,
        request: Request<v1::ConfigureRequest>,
    ) -> Result<Response<v1::ConfigureResponse>, Status> {
        use v1::configure_response::Outcome;
        let peer = self.0.peer(&request);
        self.0.welcome(&peer)?;
        let request = request.into_inner();
        let account = request.account.unwrap_or_default();
        let configuration = Configuration {
            name: account.name,
            fingerprint: account.fingerprint,
            object: codec::object_from(&request.object).map_err(|e| status(&e))?,
            credentials: codec::details_from(request.credentials),
        };
        let outcome = match self.0.host.configure(peer.identity(), configuration).await {
            Ok(()) => Outcome::Done(v1::Done {}),
            Err(error) => Outcome::Failed(codec::failure_to(&error)),
        };
        Ok(Response::new(v1::ConfigureResponse { outcome: Some(outcome) }))
    }

    async fn validate(
        &self,
        request: Request<v1::ValidateRequest>,
    ) -> Result<Response<v1::ValidateResponse>, Status> {
        use v1::validate_response::Outcome;
        let peer = self.0.peer(&request);
        let valid = async {
            let object = codec::object_from(&request.get_ref().object)?;
            self.0.check_object(&peer, &object)?;
            self.0.host.provider.validate(&object).await
        };
        let outcome = match valid.await {
            Ok(()) => Outcome::Done(v1::Done {}),
            Err(error) => Outcome::Failed(codec::failure_to(&error)),
        };
        Ok(Response::new(v1::ValidateResponse { outcome: Some(outcome) }))
    }

    async fn observe(
        &self,
        request: Request<v1::ObserveRequest>,
    ) -> Result<Response<Self::ObserveStream>, Status> {
        let peer = self.0.peer(&request);
        let items = request.into_inner().items;
        if items.len() > ITEMS_MAX {
            return Err(Status::invalid_argument(format!("{} items, at most {ITEMS_MAX}", items.len())));
        }
        let answers: FuturesUnordered<_> =
            items.into_iter().map(|item| Arc::clone(self).observe_one(Arc::clone(&peer), item)).collect();
        Ok(Response::new(Box::pin(answers.map(Ok))))
    }

    async fn plan(&self, request: Request<v1::PlanRequest>) -> Result<Response<v1::PlanResponse>, Status> {
        use v1::plan_response::Outcome;
        let peer = self.0.peer(&request);
        let request = request.into_inner();
        let object = codec::object_from(&request.object).map_err(|e| status(&e))?;
        let plan = async {
            self.0.check_object(&peer, &object)?;
            let account = self.account(&peer, request.account)?;
            self.0.host.provider.plan(&object, account.as_deref()).await
        };
        let outcome = match plan.await {
            Ok(plan) => Outcome::Done(codec::plan_to(&plan)),
            Err(error) => Outcome::Failed(codec::failure_to(&error)),
        };
        Ok(Response::new(v1::PlanResponse { uid: uid(&object), outcome: Some(outcome) }))
    }

    async fn create(
        &self,
        request: Request<v1::CreateRequest>,
    ) -> Result<Response<v1::CreateResponse>, Status> {
        let peer = self.0.peer(&request);
        let request = request.into_inner();
        let token = Token(request.token.into());
        let (about, result) = match self.job(&peer, request.mutation) {
            Err(error) => (String::new(), Err(error)),
            Ok(job) => (uid(&job.object), {
                let work = |provider: Arc<dyn crate::Provider>, job: Job| async move {
                    provider.create(&job.object, job.account.as_deref(), &token, &job.call).await
                };
                self.0.mutate(job, work).await.map(|mut made| {
                    made.connection = self.0.guard(&peer, made.connection);
                    made
                })
            }),
        };
        respond!(CreateResponse, v1::create_response::Outcome, about, result, codec::created_to)
    }

    async fn update(
        &self,
        request: Request<v1::UpdateRequest>,
    ) -> Result<Response<v1::UpdateResponse>, Status> {
        let peer = self.0.peer(&request);
        let (about, result) = match self.job(&peer, request.into_inner().mutation) {
            Err(error) => (String::new(), Err(error)),
            Ok(job) => (uid(&job.object), {
                let work = |provider: Arc<dyn crate::Provider>, job: Job| async move {
                    provider.update(&job.object, job.account.as_deref(), &job.call).await
                };
                self.0.mutate(job, work).await.map(|mut made| {
                    made.connection = self.0.guard(&peer, made.connection);
                    made
                })
            }),
        };
        respond!(UpdateResponse, v1::update_response::Outcome, about, result, codec::created_to)
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteRequest>,
    ) -> Result<Response<v1::DeleteResponse>, Status> {
        let peer = self.0.peer(&request);
        let request = request.into_inner();
        let (about, result) = match self.job(&peer, request.mutation) {
            Err(error) => (String::new(), Err(error)),
            Ok(job) => (uid(&job.object), {
                let named = job.object.annotation(EXTERNAL_NAME).unwrap_or_default();
                if request.expected_identity == named {
                    let work = |provider: Arc<dyn crate::Provider>, job: Job| async move {
                        provider.delete(&job.object, job.account.as_deref(), &job.call).await
                    };
                    self.0.mutate(job, work).await
                } else {
                    let expected = &request.expected_identity;
                    let message = format!("the object is about {named:?}, {expected:?} is expected");
                    Err(Error::new(Class::Conflict, message))
                }
            }),
        };
        respond!(DeleteResponse, v1::delete_response::Outcome, about, result, codec::deleted_to)
    }

    async fn lookup(
        &self,
        request: Request<v1::LookupRequest>,
    ) -> Result<Response<v1::LookupResponse>, Status> {
        use v1::lookup_response::Outcome;
        let peer = self.0.peer(&request);
        let request = request.into_inner();
        let object = codec::object_from(&request.object).map_err(|e| status(&e))?;
        let found = async {
            self.0.check_object(&peer, &object)?;
            let account = self.account(&peer, request.account)?;
            let token = Token(request.token.into());
            self.0.host.provider.lookup(&object, account.as_deref(), &token).await
        };
        let outcome = match found.await {
            Ok(Lookup::Found(delta)) => Outcome::Found(codec::delta_to(&delta)),
            Ok(Lookup::CertainlyNone) => Outcome::CertainlyNone(v1::Done {}),
            Ok(Lookup::Unknown) => Outcome::Unknown(v1::Done {}),
            Err(error) => Outcome::Failed(codec::failure_to(&error)),
        };
        Ok(Response::new(v1::LookupResponse { uid: uid(&object), outcome: Some(outcome) }))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let peer = self.0.peer(&request);
        let kind = codec::kind_from(request.into_inner().kind).map_err(|e| status(&e))?;
        self.0.check(&peer, &kind).map_err(|e| status(&e))?;
        let changes = self.0.host.provider.watch(&kind).await.map_err(|e| status(&e))?;
        let changes = changes.map(|item| match item {
            Ok(moved) => Ok(v1::WatchResponse {
                kind: Some(codec::kind_to(&moved.kind)),
                external_name: moved.external_name,
                object: moved.object,
            }),
            Err(error) => Err(status(&error)),
        });
        let ending = self.0.ending.clone().cancelled_owned().boxed();
        Ok(Response::new(Box::pin(changes.take_until(ending))))
    }

    async fn enumerate(
        &self,
        request: Request<v1::EnumerateRequest>,
    ) -> Result<Response<Self::EnumerateStream>, Status> {
        let peer = self.0.peer(&request);
        let request = request.into_inner();
        let kind = codec::kind_from(request.kind).map_err(|e| status(&e))?;
        self.0.check(&peer, &kind).map_err(|e| status(&e))?;
        let configuration = self.account(&peer, request.account).map_err(|e| status(&e))?;
        let what = Enumerate { kind, prefix: request.prefix, configuration };
        let founds = self.0.host.provider.enumerate(&what).await.map_err(|e| status(&e))?;
        Ok(Response::new(Box::pin(founds.map(|item| match item {
            Ok(found) => Ok(v1::EnumerateResponse {
                external_name: found.external_name,
                object: codec::object_to(&found.object),
            }),
            Err(error) => Err(status(&error)),
        }))))
    }
}
