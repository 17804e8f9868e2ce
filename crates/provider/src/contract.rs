//! The seams: how Concert sees a provider, and what an author of one writes.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::{Encoded, GroupVersionKind, Object};
use futures_core::Stream;
use tracing::debug;

use crate::answer::{Created, Deleted, Lookup, Observation, Plan, Updated};
use crate::details::Details;
use crate::error::{Class, Error};
use crate::handshake::Handshake;

/// What every call answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A connection to one provider, whatever it speaks.
///
/// # Guarantees
/// - No call outlives the time its [`Call`] gives it, and no answer beyond the size limits is taken.
/// - Calls run side by side; none waits for another.
/// - An answer about another object than the one asked about is [`Class::Misbehaved`], never passed on.
/// - An error of a mutation says truthfully whether it may have happened ([`crate::Effect`]).
///
/// # Assumptions
/// A connection that is lost is made again by itself; what was under way fails.
#[async_trait]
pub trait Connector: Send + Sync + 'static {
    /// Asks the provider what it is and serves. Asked again after each reconnect.
    ///
    /// # Errors
    /// [`Class::Unreachable`], [`Class::Misbehaved`], [`Class::Denied`].
    async fn handshake(&self, call: &Call) -> Result<Handshake>;

    /// Opens what one reconcile of `object` needs.
    ///
    /// # Errors
    /// Any but [`Class::Terminal`]; nothing has happened to the external thing.
    async fn connect(
        &self,
        object: &Object,
        configuration: Option<&Arc<Configuration>>,
        call: &Call,
    ) -> Result<Box<dyn External>>;

    /// What the external thing of an object looks like that is only looked at: as to connect, observe and
    /// disconnect, but the object need not be taken apart for it. `version` is the one the provider serves.
    ///
    /// # Errors
    /// As theirs.
    async fn glance(
        &self,
        object: &Encoded,
        version: &str,
        configuration: Option<&Arc<Configuration>>,
        call: &Call,
    ) -> Result<Observation> {
        look_once(self, object, version, configuration, call).await
    }

    /// Completes when the connection that the last [`Connector::handshake`] was made over is lost. Never
    /// completes where there is none to lose.
    async fn lost(&self) {
        std::future::pending::<()>().await;
    }

    /// Changes of external things of one kind, pushed until the connection is lost.
    ///
    /// # Errors
    /// [`Class::NotServed`] where the provider does not push.
    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes>;

    /// External things that nobody manages yet.
    ///
    /// # Errors
    /// [`Class::NotServed`] where the provider does not list.
    async fn enumerate(&self, what: &Enumerate, call: &Call) -> Result<Founds>;
}

/// Connects, observes and disconnects.
pub(crate) async fn look_once(
    connector: &(impl Connector + ?Sized),
    object: &Encoded,
    version: &str,
    configuration: Option<&Arc<Configuration>>,
    call: &Call,
) -> Result<Observation> {
    let mut decoded = object.decode();
    decoded.set("apiVersion", object.key().kind.at_version(version).api_version().into());
    let mut external = connector.connect(&decoded, configuration, call).await?;
    let seen = external.observe(&decoded, call).await;
    // What was seen was seen, however the goodbye went.
    if let Err(error) = external.disconnect(call).await {
        debug!(%error, "cannot disconnect from the provider");
    }
    seen
}

/// One object at its provider, for the length of one reconcile.
#[async_trait]
pub trait External: Send {
    /// What the external thing looks like.
    async fn observe(&mut self, object: &Object, call: &Call) -> Result<Observation>;

    /// Whether the provider would take the object at all, asked before anything is done with it. Touches
    /// nothing, neither the external thing nor our own records. Fine where nobody has an opinion.
    ///
    /// # Errors
    /// [`Class::Terminal`], with a message that names field and rule.
    async fn validate(&mut self, object: &Object, call: &Call) -> Result<()> {
        let _ = (object, call);
        Ok(())
    }

    /// What would be done. Touches nothing.
    async fn plan(&mut self, object: &Object, call: &Call) -> Result<Plan>;

    /// Makes the external thing.
    ///
    /// # Guarantees
    /// Where the provider understands tokens, the same token never makes two.
    async fn create(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Created>;

    /// Makes the external thing as declared.
    async fn update(&mut self, object: &Object, call: &Call) -> Result<Updated>;

    /// Removes the external thing. To remove what is not there is fine.
    async fn delete(&mut self, object: &Object, call: &Call) -> Result<Deleted>;

    /// What became of the create with this token.
    async fn lookup(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Lookup>;

    /// Ends it politely. A failure is only worth an event.
    async fn disconnect(self: Box<Self>, call: &Call) -> Result<()>;
}

/// The circumstances of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// How long it may take.
    pub timeout: Duration,
    /// The claim of the caller: a provider refuses mutations that carry an older one than it has seen.
    pub fence: Option<u64>,
}

impl Call {
    /// A call that may take so long.
    pub fn within(timeout: Duration) -> Self {
        Self { timeout, fence: None }
    }
}

/// Names one attempt to create, so that its outcome can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub Arc<str>);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The account to act on: a ProviderConfig and the credentials it names.
#[derive(Clone, PartialEq)]
pub struct Configuration {
    /// Which one; the same name with other contents is a newer state of the same account.
    pub name: String,
    /// Changes with the contents; safe to log.
    pub fingerprint: String,
    /// The ProviderConfig.
    pub object: Object,
    /// What its credentials point at.
    pub credentials: Details,
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Configuration({}, {})", self.name, self.fingerprint)
    }
}

/// An external thing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Of which kind.
    pub kind: GroupVersionKind,
    /// By its external name; empty if only the object is known.
    pub external_name: String,
    /// `namespace/name` or `name` of the object, where the provider knows it; else empty.
    pub object: String,
}

/// Which unmanaged external things.
#[derive(Clone, Debug, PartialEq)]
pub struct Enumerate {
    /// Of which kind.
    pub kind: GroupVersionKind,
    /// Only names that start so.
    pub prefix: String,
    /// In which account.
    pub configuration: Option<Arc<Configuration>>,
}

/// An external thing that nobody manages.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its external name.
    pub external_name: String,
    /// An object that would import it.
    pub object: Object,
}

/// A stream of changes; ends after its first error.
pub type Changes = Pin<Box<dyn Stream<Item = Result<Moved>> + Send>>;

/// A stream of findings; ends after its first error.
pub type Founds = Pin<Box<dyn Stream<Item = Result<Found>> + Send>>;

/// What an author of a provider writes. Serve it with the server side of this crate, or use it in the
/// same process through [`Connector`].
///
/// # Assumptions
/// Calls come side by side, twice, or after their caller has given up.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// What it is and serves.
    fn handshake(&self) -> Handshake;

    /// Whether an object makes sense, asked before it is planned, made or changed.
    ///
    /// # Errors
    /// [`Class::Terminal`], with a message that names field and rule.
    async fn validate(&self, object: &Object) -> Result<()> {
        let _ = object;
        Ok(())
    }

    /// Whether an account can be used. Asked when it is first seen and when it changed.
    ///
    /// # Errors
    /// [`Class::Denied`].
    async fn configure(&self, configuration: &Configuration) -> Result<()> {
        let _ = configuration;
        Ok(())
    }

    /// As [`External::observe`].
    async fn observe(&self, object: &Object, account: Option<&Configuration>) -> Result<Observation>;

    /// As [`External::plan`].
    async fn plan(&self, object: &Object, account: Option<&Configuration>) -> Result<Plan>;

    /// As [`External::create`].
    async fn create(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
        call: &Call,
    ) -> Result<Created>;

    /// As [`External::update`].
    async fn update(&self, object: &Object, account: Option<&Configuration>, call: &Call) -> Result<Updated>;

    /// As [`External::delete`].
    async fn delete(&self, object: &Object, account: Option<&Configuration>, call: &Call) -> Result<Deleted>;

    /// As [`External::lookup`]; a provider that remembers tokens overrides this and says so.
    async fn lookup(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
    ) -> Result<Lookup> {
        let _ = (object, account, token);
        Ok(Lookup::Unknown)
    }

    /// As [`Connector::watch`].
    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        Err(Error::new(Class::NotServed, format!("changes of {kind} are not pushed")))
    }

    /// As [`Connector::enumerate`].
    async fn enumerate(&self, what: &Enumerate) -> Result<Founds> {
        Err(Error::new(Class::NotServed, format!("{} are not listed", what.kind)))
    }
}
