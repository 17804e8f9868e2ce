//! `concert.provider.v1`, the calling side.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use concert_model::{GroupVersionKind, Object, Uid};
use futures_util::{StreamExt, TryStreamExt, stream};
use tonic::transport::Channel;

use super::Inner;
use super::accounts;
use super::deadline::Deadline;
use super::status::{self, Verb};
use crate::alpha::EXTERNAL_NAME;
use crate::alpha::delta::sent;
use crate::answer::{Created, Deleted, Lookup, Observation, Plan, Updated};
use crate::codec::{self, misbehaved};
use crate::contract::{
    Call, Changes, Configuration, Enumerate, External, Found, Founds, Moved, Result, Token,
};
use crate::error::{Class, Error};
use crate::handshake::Handshake;
use crate::wire::v1::{self, provider_service_client::ProviderServiceClient};

/// A channel with the limits of its endpoint.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) channel: Channel,
    pub(crate) message_bytes_max: usize,
}

impl Wire {
    pub(crate) fn client(&self) -> ProviderServiceClient<Channel> {
        ProviderServiceClient::new(self.channel.clone()).max_decoding_message_size(self.message_bytes_max)
    }
}

/// Asks for the handshake. Fails with [`Class::NotServed`] where the protocol is not spoken.
pub(crate) async fn handshake(wire: &Wire, deadline: Deadline) -> Result<Handshake> {
    let caller = concat!("concert/", env!("CARGO_PKG_VERSION")).to_owned();
    let request = deadline.request(v1::HandshakeRequest { caller, revisions: vec![1] });
    let answer = deadline.answer(Verb::Read, wire.client().handshake(request)).await?;
    if answer.revision > 1 {
        return Err(misbehaved(format!("the provider chose revision {}, we offered 1", answer.revision)));
    }
    Ok(codec::handshake_from(answer))
}

/// One object at a provider.
pub(crate) struct Session {
    inner: Arc<Inner>,
    configuration: Option<Arc<Configuration>>,
}

impl Session {
    pub(crate) async fn open(
        inner: Arc<Inner>,
        configuration: Option<Arc<Configuration>>,
        deadline: Deadline,
    ) -> Result<Self> {
        let session = Self { inner, configuration };
        session.account(deadline).await?;
        Ok(session)
    }

    /// Makes sure that the provider knows the account, and names it.
    async fn account(&self, deadline: Deadline) -> Result<Option<v1::AccountReference>> {
        configure(&self.inner, self.configuration.as_ref(), deadline).await
    }

    /// Runs a call, and once more if the provider has forgotten the account meanwhile.
    async fn run<T, F>(
        &self,
        deadline: Deadline,
        call: impl Fn(Option<v1::AccountReference>) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let result = call(self.account(deadline).await?).await;
        match (&result, &self.configuration) {
            (Err(error), Some(configuration)) if needs_configure(error) => {
                self.inner.accounts.forget(&configuration.name);
                call(self.account(deadline).await?).await
            }
            _ => result,
        }
    }

    /// What the external thing of an object looks like that is written down already.
    pub(crate) async fn look(&self, object: Bytes, uid: &Uid, deadline: Deadline) -> Result<Observation> {
        self.inner.check_size(object.len())?;
        let inner = &self.inner;
        let answer = self.run(deadline, |account| {
            let object = object.clone();
            async move {
                let answer = inner.batcher.observe(&inner.wire()?, object, account, deadline).await?;
                check_answer(uid, &answer.uid)?;
                match answer.outcome {
                    Some(v1::observe_response::Outcome::Done(seen)) => codec::observation_from(seen),
                    Some(v1::observe_response::Outcome::Failed(failure)) => Err(codec::failure_from(failure)),
                    None => Err(no_outcome()),
                }
            }
        });
        answer.await
    }

    fn encode(&self, object: &Object) -> Result<Bytes> {
        let bytes = codec::object_to(&sent(object));
        self.inner.check_size(bytes.len())?;
        Ok(bytes)
    }

    fn mutation(&self, object: &Bytes, account: Option<v1::AccountReference>, call: &Call) -> v1::Mutation {
        v1::Mutation {
            object: object.clone(),
            account,
            fence: call.fence.unwrap_or_default(),
            deadline: Some(codec::duration_to(call.timeout)),
        }
    }
}

fn needs_configure(error: &Error) -> bool {
    error.class == Class::Denied && error.message.starts_with(codec::NEEDS_CONFIGURE)
}

async fn configure(
    inner: &Arc<Inner>,
    configuration: Option<&Arc<Configuration>>,
    deadline: Deadline,
) -> Result<Option<v1::AccountReference>> {
    let Some(configuration) = configuration.filter(|_| inner.wants_accounts()) else { return Ok(None) };
    accounts::permit(configuration, inner.dialer.target.is_exposed(), inner.dialer.endpoint().insecure)?;
    let account = v1::AccountReference {
        name: configuration.name.clone(),
        fingerprint: configuration.fingerprint.clone(),
    };
    let tell = async {
        let request = deadline.request(v1::ConfigureRequest {
            account: Some(account.clone()),
            object: codec::object_to(&sent(&configuration.object)),
            credentials: codec::details_to(&configuration.credentials),
        });
        let mut client = inner.wire()?.client();
        match deadline.answer(Verb::Read, client.configure(request)).await?.outcome {
            Some(v1::configure_response::Outcome::Done(_)) => Ok(()),
            Some(v1::configure_response::Outcome::Failed(failure)) => Err(codec::failure_from(failure)),
            None => Err(no_outcome()),
        }
    };
    // Waiting for somebody else's call is bounded by our own deadline.
    let told = inner.accounts.ensure(configuration, &inner.dialer.links, tell);
    deadline.within(Verb::Read, told).await?;
    Ok(Some(account))
}

fn no_outcome() -> Error {
    misbehaved("the provider's answer has no outcome")
}

/// An answer that names another object is thrown away.
fn check_uid(object: &Object, uid: &str) -> Result<()> {
    check_answer(&uid_of(object), uid)
}

fn uid_of(object: &Object) -> Uid {
    object.uid().unwrap_or_else(|| Uid("".into()))
}

fn check_answer(ours: &Uid, theirs: &str) -> Result<()> {
    if theirs.is_empty() || theirs == &*ours.0 {
        return Ok(());
    }
    Err(misbehaved(format!(
        "the provider answered about the object with uid {theirs:?} rather than {:?}",
        &*ours.0
    )))
}

/// The outcome of a mutation. Whatever is wrong with an answer, the mutation may have happened.
macro_rules! outcome {
    ($object:expr, $answer:expr, $outcome:path, $read:expr) => {{
        use $outcome as Outcome;
        let answer = $answer;
        check_uid($object, &answer.uid).map_err(Error::in_doubt)?;
        match answer.outcome {
            Some(Outcome::Done(done)) => $read(done).map_err(Error::in_doubt),
            Some(Outcome::Failed(failure)) => Err(codec::failure_from(failure)),
            Some(Outcome::Unknown(failure)) => Err(codec::failure_from(failure).in_doubt()),
            None => Err(no_outcome().in_doubt()),
        }
    }};
}

#[async_trait]
impl External for Session {
    async fn observe(&mut self, object: &Object, call: &Call) -> Result<Observation> {
        let bytes = codec::object_to(&sent(object));
        self.look(bytes, &uid_of(object), Deadline::of(call)).await
    }

    async fn validate(&mut self, object: &Object, call: &Call) -> Result<()> {
        use v1::validate_response::Outcome;
        let deadline = Deadline::of(call);
        let request = deadline.request(v1::ValidateRequest { object: self.encode(object)? });
        let mut client = self.inner.wire()?.client();
        let answer = match deadline.answer(Verb::Read, client.validate(request)).await {
            // A provider without the call has no opinion.
            Err(error) if error.class == Class::NotServed => return Ok(()),
            answer => answer?,
        };
        match answer.outcome {
            Some(Outcome::Done(_)) => Ok(()),
            Some(Outcome::Failed(failure)) => Err(codec::failure_from(failure)),
            None => Err(no_outcome()),
        }
    }

    async fn plan(&mut self, object: &Object, call: &Call) -> Result<Plan> {
        let deadline = Deadline::of(call);
        if !self.inner.can(|can| can.plan) {
            let seen = self.observe(object, call).await?;
            return Ok(super::plan_of(object, &seen));
        }
        let bytes = self.encode(object)?;
        let inner = &self.inner;
        let answer = self.run(deadline, |account| {
            let request = deadline.request(v1::PlanRequest { object: bytes.clone(), account });
            async move {
                let mut client = inner.wire()?.client();
                let answer = deadline.answer(Verb::Read, client.plan(request)).await?;
                check_uid(object, &answer.uid)?;
                match answer.outcome {
                    Some(v1::plan_response::Outcome::Done(plan)) => codec::plan_from(plan),
                    Some(v1::plan_response::Outcome::Failed(failure)) => Err(codec::failure_from(failure)),
                    None => Err(no_outcome()),
                }
            }
        });
        answer.await
    }

    async fn create(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Created> {
        let deadline = Deadline::of(call);
        let bytes = self.encode(object)?;
        let inner = &self.inner;
        let answer = self.run(deadline, |account| {
            let mutation = Some(self.mutation(&bytes, account, call));
            let request = deadline.request(v1::CreateRequest { mutation, token: token.to_string() });
            async move {
                let mut client = inner.wire()?.client();
                let answer = deadline.answer(Verb::Write, client.create(request)).await?;
                outcome!(object, answer, v1::create_response::Outcome, codec::created_from)
            }
        });
        answer.await
    }

    async fn update(&mut self, object: &Object, call: &Call) -> Result<Updated> {
        let deadline = Deadline::of(call);
        let bytes = self.encode(object)?;
        let inner = &self.inner;
        let answer = self.run(deadline, |account| {
            let mutation = Some(self.mutation(&bytes, account, call));
            let request = deadline.request(v1::UpdateRequest { mutation });
            async move {
                let mut client = inner.wire()?.client();
                let answer = deadline.answer(Verb::Write, client.update(request)).await?;
                outcome!(object, answer, v1::update_response::Outcome, codec::created_from)
            }
        });
        answer.await
    }

    async fn delete(&mut self, object: &Object, call: &Call) -> Result<Deleted> {
        let deadline = Deadline::of(call);
        let bytes = self.encode(object)?;
        let inner = &self.inner;
        let answer = self.run(deadline, |account| {
            let mutation = Some(self.mutation(&bytes, account, call));
            let expected_identity = object.annotation(EXTERNAL_NAME).unwrap_or_default().to_owned();
            let request = deadline.request(v1::DeleteRequest { mutation, expected_identity });
            async move {
                let mut client = inner.wire()?.client();
                let answer = deadline.answer(Verb::Write, client.delete(request)).await?;
                outcome!(object, answer, v1::delete_response::Outcome, codec::deleted_from)
            }
        });
        answer.await
    }

    async fn lookup(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Lookup> {
        if !self.inner.can(|can| can.lookup) {
            return Ok(Lookup::Unknown);
        }
        let deadline = Deadline::of(call);
        let bytes = self.encode(object)?;
        let inner = &self.inner;
        let answer = self.run(deadline, |account| {
            let message = v1::LookupRequest { object: bytes.clone(), account, token: token.to_string() };
            let request = deadline.request(message);
            async move {
                use v1::lookup_response::Outcome;
                let mut client = inner.wire()?.client();
                let answer = deadline.answer(Verb::Read, client.lookup(request)).await?;
                check_uid(object, &answer.uid)?;
                match answer.outcome {
                    Some(Outcome::Found(delta)) => codec::delta_from(Some(delta)).map(Lookup::Found),
                    Some(Outcome::CertainlyNone(_)) => Ok(Lookup::CertainlyNone),
                    Some(Outcome::Unknown(_)) => Ok(Lookup::Unknown),
                    Some(Outcome::Failed(failure)) => Err(codec::failure_from(failure)),
                    None => Err(no_outcome()),
                }
            }
        });
        answer.await
    }

    async fn disconnect(self: Box<Self>, _: &Call) -> Result<()> {
        // There is nothing to end: the connection is everybody's.
        Ok(())
    }
}

/// External changes. The call is made when the stream is first read, because some servers answer
/// nothing at all before the first change.
pub(crate) fn watch(wire: Wire, kind: &GroupVersionKind) -> Changes {
    let request = v1::WatchRequest { kind: Some(codec::kind_to(kind)) };
    let begin = async move {
        let stream = wire.client().watch(request).await.map_err(|e| status::error(&e, Verb::Read))?;
        let end = stream::once(async { Err(Error::new(Class::Unreachable, "the provider ended the watch")) });
        let changes = stream.into_inner().map(|item| match item {
            Ok(moved) => Ok(Moved {
                kind: codec::kind_from(moved.kind)?,
                external_name: moved.external_name,
                object: moved.object,
            }),
            Err(status) => Err(status::error(&status, Verb::Read)),
        });
        Ok::<_, Error>(changes.chain(end))
    };
    Box::pin(until_error(stream::once(begin).try_flatten()))
}

/// Things that nobody manages.
pub(crate) async fn enumerate(inner: &Arc<Inner>, what: &Enumerate, deadline: Deadline) -> Result<Founds> {
    let account = configure(inner, what.configuration.as_ref(), deadline).await?;
    let message =
        v1::EnumerateRequest { kind: Some(codec::kind_to(&what.kind)), prefix: what.prefix.clone(), account };
    let request = deadline.request(message);
    let mut client = inner.wire()?.client();
    let stream = deadline.answer(Verb::Read, client.enumerate(request)).await?;
    let founds = stream::unfold(stream, move |mut stream| async move {
        let next = async { stream.message().await.map_err(|e| status::error(&e, Verb::Read)) };
        let item = match deadline.within(Verb::Read, next).await {
            Ok(None) => return None,
            Ok(Some(found)) => codec::object_from(&found.object)
                .map(|object| Found { external_name: found.external_name, object }),
            Err(error) => Err(error),
        };
        Some((item, stream))
    });
    Ok(Box::pin(until_error(founds)))
}

/// Ends a stream after its first error.
fn until_error<T>(
    stream: impl futures_core::Stream<Item = Result<T>>,
) -> impl futures_core::Stream<Item = Result<T>> {
    stream.scan(false, |has_failed, item| {
        let is_over = std::mem::replace(has_failed, item.is_err());
        std::future::ready((!is_over).then_some(item))
    })
}
