//! Calling a provider.
//!
//! [`connect`] gives a [`Client`], which dials when it is first used, finds out which protocol the
//! provider speaks, and makes a lost connection again by itself.

mod accounts;
mod batch;
mod deadline;
mod dial;
mod endpoint;
mod link;
pub(crate) mod status;
mod v1;
pub(crate) mod v1alpha1;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use concert_model::{Encoded, GroupVersionKind, Object};
use tokio::sync::watch;

pub use endpoint::Endpoint;
pub use link::Link;

use crate::answer::{Observation, Plan, PlanAction};
use crate::contract::{
    Call, Changes, Configuration, Connector, Enumerate, External, Founds, Result, look_once,
};
use crate::error::{Class, Error};
use crate::handshake::{Capabilities, Handshake, Protocol};
use deadline::Deadline;
use dial::Dialer;
use v1::Wire;

/// Room for what goes around an object: names, token, account.
const ENVELOPE_BYTES: usize = 2048;

/// A client for the provider at an endpoint. Nothing is dialled yet.
///
/// # Errors
/// [`Class::Terminal`] if the address is none; [`Class::Denied`] if the certificates cannot be used.
pub fn connect(endpoint: Endpoint) -> Result<Client> {
    let dialer = Dialer::new(endpoint)?;
    let (batcher, accounts) = (batch::Batcher::new(), accounts::Accounts::default());
    Ok(Client(Arc::new(Inner { dialer, batcher, accounts, known: Mutex::default() })))
}

/// The connection to one provider. Cheap to clone.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

/// What all clones and sessions share.
pub(crate) struct Inner {
    dialer: Dialer,
    batcher: batch::Batcher,
    accounts: accounts::Accounts,
    known: Mutex<Option<Known>>,
}

/// What the last handshake said.
#[derive(Clone, Copy)]
struct Known {
    protocol: Protocol,
    capabilities: Capabilities,
    /// How many connections had been lost by then.
    losses: u64,
}

impl Client {
    /// The state of the connection, and how it changes.
    pub fn link(&self) -> watch::Receiver<Link> {
        self.0.dialer.links.subscribe()
    }

    /// Whether there is a connection now.
    pub fn is_connected(&self) -> bool {
        self.0.dialer.links.now().is_up
    }

    /// Completes once the connection on which the last handshake was answered is lost, even if there is
    /// another by now. At once if there was no handshake. That another takes its place because of new
    /// certificates is no loss.
    pub async fn lost(&self) {
        let Some(known) = self.0.known() else { return };
        let gone = |link: &Link| !link.is_up || link.losses != known.losses;
        // The sender lives as long as we do.
        drop(self.link().wait_for(gone).await);
    }
}

impl Inner {
    fn known(&self) -> Option<Known> {
        *self.known.lock().expect("nobody panics with the handshake in hand")
    }

    fn wire(&self) -> Result<Wire> {
        let message_bytes_max = self.dialer.endpoint().message_bytes_max;
        Ok(Wire { channel: self.dialer.channel()?, message_bytes_max })
    }

    fn can(&self, which: impl FnOnce(Capabilities) -> bool) -> bool {
        self.known().is_some_and(|known| which(known.capabilities))
    }

    fn wants_accounts(&self) -> bool {
        self.can(|can| can.configure)
    }

    /// Refuses what is too large before anything is sent: the transport would only break the call, and
    /// nobody could tell whether it had an effect.
    fn check_size(&self, bytes: usize) -> Result<()> {
        let max = self.dialer.endpoint().message_bytes_max;
        if bytes + ENVELOPE_BYTES <= max {
            return Ok(());
        }
        Err(Error::new(
            Class::Terminal,
            format!("the object is too large to send: {bytes} bytes, at most {max}"),
        ))
    }

    async fn handshake(&self, deadline: Deadline) -> Result<Handshake> {
        let wire = self.wire()?;
        let shake = match self.dialer.endpoint().protocol {
            Some(Protocol::V1) => v1::handshake(&wire, deadline).await?,
            Some(Protocol::V1Alpha1) => v1alpha1::handshake(&wire, deadline).await?,
            None => match v1::handshake(&wire, deadline).await {
                Err(error) if error.class == Class::NotServed => v1alpha1::handshake(&wire, deadline).await?,
                other => other?,
            },
        };
        let losses = self.dialer.links.now().losses;
        let known = Known { protocol: shake.protocol, capabilities: shake.capabilities, losses };
        *self.known.lock().expect("nobody panics with the handshake in hand") = Some(known);
        Ok(shake)
    }

    /// What the provider speaks; asks if nobody has.
    async fn protocol(&self, deadline: Deadline) -> Result<Protocol> {
        match self.known() {
            Some(known) => Ok(known.protocol),
            None => Ok(self.handshake(deadline).await?.protocol),
        }
    }
}

#[async_trait]
impl Connector for Client {
    async fn handshake(&self, call: &Call) -> Result<Handshake> {
        self.0.handshake(Deadline::of(call)).await
    }

    async fn lost(&self) {
        Client::lost(self).await;
    }

    async fn connect(
        &self,
        object: &Object,
        configuration: Option<&Arc<Configuration>>,
        call: &Call,
    ) -> Result<Box<dyn External>> {
        let deadline = Deadline::of(call);
        let inner = Arc::clone(&self.0);
        match self.0.protocol(deadline).await? {
            Protocol::V1 => Ok(Box::new(v1::Session::open(inner, configuration.cloned(), deadline).await?)),
            // Providers of the prototype fetch their configuration themselves.
            Protocol::V1Alpha1 => Ok(Box::new(v1alpha1::Session::open(inner, object, deadline).await?)),
        }
    }

    async fn glance(
        &self,
        object: &Encoded,
        version: &str,
        configuration: Option<&Arc<Configuration>>,
        call: &Call,
    ) -> Result<Observation> {
        let deadline = Deadline::of(call);
        // Whom a field belongs to is no matter of providers, and must be taken out.
        let owned = b"\"managedFields\"";
        let is_bare = !object.body().metadata().windows(owned.len()).any(|it| it == owned);
        match self.0.protocol(deadline).await? {
            Protocol::V1 if is_bare => {
                let session =
                    v1::Session::open(Arc::clone(&self.0), configuration.cloned(), deadline).await?;
                session.look(object.to_json_as(version).into(), &object.head().uid, deadline).await
            }
            _ => look_once(self, object, version, configuration, call).await,
        }
    }

    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        if !self.0.can(|can| can.watch) {
            return Err(Error::new(
                Class::NotServed,
                format!("the provider does not push changes of {kind}"),
            ));
        }
        Ok(v1::watch(self.0.wire()?, kind))
    }

    async fn enumerate(&self, what: &Enumerate, call: &Call) -> Result<Founds> {
        if !self.0.can(|can| can.enumerate) {
            return Err(Error::new(Class::NotServed, format!("the provider does not list {}", what.kind)));
        }
        v1::enumerate(&self.0, what, Deadline::of(call)).await
    }
}

/// The plan that follows from an observation, where the provider makes none itself.
fn plan_of(object: &Object, seen: &Observation) -> Plan {
    let (action, reason) = match (seen.exists, object.deleted_at().is_some()) {
        (true, true) => (PlanAction::Delete, ""),
        (false, true) => (PlanAction::None, ""),
        (false, false) => (PlanAction::Create, ""),
        (true, false) if seen.is_up_to_date => (PlanAction::None, ""),
        (true, false) if seen.diff.is_empty() => {
            (PlanAction::Update, "the provider does not say which fields differ")
        }
        (true, false) if seen.diff.iter().any(|it| it.replaces) => (PlanAction::Replace, ""),
        (true, false) => (PlanAction::Update, ""),
    };
    Plan { action, changes: seen.diff.clone(), reason: reason.to_owned() }
}
